use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;
use vcc_port::AttachOptions;
use vcc_port::bench::Spread;

use super::super::treatment::Treatment;
use super::wire::Wire;
use crate::output;

const WARM_UP: Duration = Duration::from_millis(300);
const MEASURED: Duration = Duration::from_millis(1000);

/// What vcc costs a bulk transfer between two namespaces
///
/// A guest sends over a veth pair, super-segments and all, with vcc attached and without in
/// turns; each pair of neighbours gives a ratio.
#[derive(clap::Args)]
pub struct Arguments {
    /// Pairs of transfers
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,

    /// Also write the figures to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    #[command(flatten)]
    treatment: Treatment,
}

#[derive(Serialize)]
struct Report {
    attached_gbit_s: Spread,
    detached_gbit_s: Spread,
    /// Attached over detached, pair by pair.
    ratio: Spread,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let wire = Wire::create()?;
    let options = arguments.treatment.options();
    let (mut attached, mut detached) = (Vec::new(), Vec::new());
    for run in 0..arguments.runs {
        // Every other pair the other way round: a machine that slows down favours neither.
        if run % 2 == 0 {
            attached.push(with_vcc(&wire, &options)?);
            detached.push(without_vcc(&wire)?);
        } else {
            detached.push(without_vcc(&wire)?);
            attached.push(with_vcc(&wire, &options)?);
        }
    }
    let ratios = attached.iter().zip(&detached).map(|(with, without)| with / without).collect();
    let report = Report {
        ratio: Spread::of(ratios),
        attached_gbit_s: Spread::of(attached),
        detached_gbit_s: Spread::of(detached),
    };
    output::say(&text(&report));
    if let Some(path) = &arguments.json {
        output::write_json(path, &report)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn with_vcc(wire: &Wire, options: &AttachOptions) -> anyhow::Result<f64> {
    let port = wire.attach(options)?;
    let gbit_s = without_vcc(wire)?;
    let flows = port.flows()?;
    anyhow::ensure!(!flows.is_empty(), "vcc saw nothing of the transfer");
    port.detach()?;
    Ok(gbit_s)
}

fn without_vcc(wire: &Wire) -> anyhow::Result<f64> {
    Ok(wire.transfer(WARM_UP, MEASURED)? / 1e9)
}

fn text(report: &Report) -> String {
    let line = |name: &str, spread: &Spread, unit: &str| {
        let Spread { median, p10, p90, .. } = spread;
        format!("{name:<9} {median:>7.3}{unit}  (p10 {p10:.3}, p90 {p90:.3})\n")
    };
    [
        line("attached", &report.attached_gbit_s, " Gbit/s"),
        line("detached", &report.detached_gbit_s, " Gbit/s"),
        line("ratio", &report.ratio, ""),
    ]
    .concat()
}

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use vcc_command::output;
use vcc_command::treatment::DeviceTreatment;
use vcc_port::AttachOptions;
use vcc_results::report::bench::{Measurements, Spread, Throughput};

use super::Origin;
use super::wire::Wire;

const WARM_UP: Duration = Duration::from_millis(300);
const MEASURED: Duration = Duration::from_millis(1000);

/// Throughput of a bulk transfer between two namespaces, with vcc and without
///
/// A guest sends super-segments over a veth pair, in turns with vcc attached, with programs
/// attached that only parse each segment, by the detour of `vcc domain --device`, and without any; ratios are of
/// neighbouring turns.
#[derive(clap::Args)]
pub struct Arguments {
    /// Rounds of transfers
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,

    /// Also write the figures to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    #[command(flatten)]
    treatment: DeviceTreatment,
}

#[derive(Clone, Copy)]
enum Way {
    Attached,
    Parsed,
    Detour,
    Detached,
}

const WAYS: [Way; 4] = [Way::Attached, Way::Parsed, Way::Detour, Way::Detached];

pub fn run(arguments: &Arguments, origin: &Origin) -> anyhow::Result<ExitCode> {
    let wire = Wire::create()?;
    let options = arguments.treatment.options();
    let mut gbit_s = WAYS.map(|_| Vec::new());
    for round in 0..arguments.runs as usize {
        // Each round begins with another way, so that a machine that slows down favours none.
        for turn in 0..WAYS.len() {
            let way = WAYS[(round + turn) % WAYS.len()];
            gbit_s[way as usize].push(transfer(&wire, way, &options)?);
        }
    }
    let [attached, parsed, detour, detached] = gbit_s;
    let over_detached = |with: &[f64]| with.iter().zip(&detached).map(|(a, b)| a / b).collect();
    let of = |samples: Vec<f64>| Spread::from_samples(samples);
    let measured = Throughput {
        ratio: of(over_detached(&attached)),
        parsed_ratio: of(over_detached(&parsed)),
        detour_ratio: of(over_detached(&detour)),
        attached_gbit_s: of(attached),
        parsed_gbit_s: of(parsed),
        detour_gbit_s: of(detour),
        detached_gbit_s: of(detached),
    };
    output::say(&text(&measured));
    if let Some(path) = &arguments.json {
        origin.write(path, Measurements::Throughput(measured))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn transfer(wire: &Wire, way: Way, options: &AttachOptions) -> anyhow::Result<f64> {
    let bulk = || Ok(wire.transfer(WARM_UP, MEASURED)? / 1e9);
    match way {
        Way::Attached => {
            let port = wire.attach(options)?;
            let gbit_s = bulk();
            anyhow::ensure!(!port.flows()?.is_empty(), "vcc saw nothing of the transfer");
            port.detach()?;
            gbit_s
        }
        Way::Parsed => {
            let _attached = wire.attach_yardstick()?;
            bulk()
        }
        Way::Detour => {
            let detour = wire.start_detour()?;
            let gbit_s = bulk();
            detour.end()?;
            gbit_s
        }
        Way::Detached => bulk(),
    }
}

fn text(report: &Throughput) -> String {
    let line = |name: &str, spread: &Spread, unit: &str| {
        let Spread { median, p10, p90, .. } = spread;
        format!("{name:<22} {median:>7.3}{unit}  (p10 {p10:.3}, p90 {p90:.3})\n")
    };
    [
        line("attached", &report.attached_gbit_s, " Gbit/s"),
        line("parsed", &report.parsed_gbit_s, " Gbit/s"),
        line("detour", &report.detour_gbit_s, " Gbit/s"),
        line("detached", &report.detached_gbit_s, " Gbit/s"),
        line("attached over detached", &report.ratio, ""),
        line("parsed over detached", &report.parsed_ratio, ""),
        line("detour over detached", &report.detour_ratio, ""),
    ]
    .concat()
}

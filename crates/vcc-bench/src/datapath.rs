use std::path::PathBuf;
use std::process::ExitCode;

use vcc_command::output;
use vcc_command::table::{Align, Table};
use vcc_command::use_underlay;
use vcc_results::report::bench::{Cost, Measurements};

use super::Origin;
use crate::measure::{self, Measurement};

/// Nanoseconds per packet in each program, under BPF_PROG_RUN
///
/// The cases take turns of 10,000 runs each. Data is new and in order, ACKs acknowledge it. NS is
/// the median net of the harness, GROSS the median with it. RATIO is NS over that of `rewriter`, a
/// window rewriter without congestion control.
#[derive(clap::Args)]
pub struct Arguments {
    /// Also write the figures to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Also measure connections under the underlay in FILE, which `vcc underlay build` has made
    #[arg(long, value_name = "FILE.o")]
    load: Option<PathBuf>,

    /// Turns of each case
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    repeat: u32,
}

pub fn run(arguments: &Arguments, origin: &Origin) -> anyhow::Result<ExitCode> {
    let loaded = arguments.load.as_deref().map(use_underlay).transpose()?;
    let measurements = measure::datapath(arguments.repeat, loaded)?;
    output::say(&table(&measurements));
    if let Some(path) = &arguments.json {
        origin.write(path, Measurements::Datapath(measurements.iter().map(cost).collect()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn cost(measurement: &Measurement) -> Cost {
    Cost {
        name: measurement.name.into(),
        what: measurement.what.into(),
        gross_ns: measurement.gross_ns,
        ns: measurement.ns,
    }
}

fn table(measurements: &[Measurement]) -> String {
    let mut table = Table::new([
        ("CASE", Align::Left),
        ("NS", Align::Right),
        ("P10", Align::Right),
        ("P90", Align::Right),
        ("RATIO", Align::Right),
        ("GROSS", Align::Right),
        ("WHAT", Align::Left),
    ]);
    let rewriter = measurements.iter().find(|it| it.name == measure::REWRITER);
    for Measurement { name, what, ns, gross_ns } in measurements {
        table.row([
            (*name).into(),
            format!("{:.0}", ns.median),
            format!("{:.0}", ns.p10),
            format!("{:.0}", ns.p90),
            rewriter.map_or_else(String::new, |it| format!("{:.2}", ns.median / it.ns.median)),
            format!("{:.0}", gross_ns.median),
            (*what).into(),
        ]);
    }
    table.render()
}

use std::path::PathBuf;
use std::process::ExitCode;

use vcc_command::output;
use vcc_command::table::{Align, Table};
use vcc_results::report::bench::{Measurements, SegmentCost};

use super::Origin;
use crate::measure;

/// Nanoseconds per segment at the driver domain's port, which holds segments
///
/// Frames cross the port in memory, in one thread; the cases take turns of 880 segments each. NS is
/// the median for a segment of 1440 bytes, or for an ACK where the case has no data. Of a bulk
/// transfer, it includes the ACKs, and GBIT/S is the payload.
#[derive(clap::Args)]
pub struct Arguments {
    /// Also write the figures to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Turns of each case
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    repeat: u32,
}

pub fn run(arguments: &Arguments, origin: &Origin) -> anyhow::Result<ExitCode> {
    let measured: Vec<_> = measure::domain(arguments.repeat)?.iter().map(cost).collect();
    output::say(&table(&measured));
    if let Some(path) = &arguments.json {
        origin.write(path, Measurements::Domain(measured))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn cost(measured: &measure::SegmentCost) -> SegmentCost {
    SegmentCost {
        name: measured.name.into(),
        what: measured.what.into(),
        ns: measured.ns,
        gbit_s: measured.gbit_s,
    }
}

fn table(costs: &[SegmentCost]) -> String {
    let mut table = Table::new([
        ("CASE", Align::Left),
        ("NS", Align::Right),
        ("P10", Align::Right),
        ("P90", Align::Right),
        ("GBIT/S", Align::Right),
        ("WHAT", Align::Left),
    ]);
    for SegmentCost { name, what, ns, gbit_s } in costs {
        table.row([
            name.clone(),
            format!("{:.0}", ns.median),
            format!("{:.0}", ns.p10),
            format!("{:.0}", ns.p90),
            gbit_s.map(|it| format!("{:.1}", it.median)).unwrap_or_default(),
            what.clone(),
        ]);
    }
    table.render()
}

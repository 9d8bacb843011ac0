use std::path::PathBuf;
use std::process::ExitCode;

use vcc_command::output;
use vcc_command::table::{Align, Table};
use vcc_results::report::bench::{CrowdCost, Measurements};

use super::Origin;
use crate::measure;

/// Nanoseconds per packet with up to a million connections
///
/// Segments of all connections, in random order, at a host of its own without devices. NS is the
/// median net of the harness, OVER how many times as much as with the first number. The yardstick
/// looks up an entry in a map of the same size, locks it and touches its cache lines: what memory
/// alone takes.
#[derive(clap::Args)]
pub struct Arguments {
    /// Numbers of connections; a million takes 1.5 GB of memory
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1000,10000,100000,1000000", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    connections: Vec<u32>,

    /// Turns of each number
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,

    /// Also write the figures to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub fn run(arguments: &Arguments, origin: &Origin) -> anyhow::Result<ExitCode> {
    let measured = measure::connections(&arguments.connections, arguments.repeat)?;
    let costs: Vec<CrowdCost> = measured.iter().map(cost).collect();
    output::say(&table(&costs));
    if let Some(path) = &arguments.json {
        origin.write(path, Measurements::Connections(costs))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn cost(measured: &measure::CrowdCost) -> CrowdCost {
    CrowdCost {
        connections: measured.connections,
        name: measured.name.into(),
        what: measured.what.into(),
        ns: measured.ns,
        over_fewest: measured.over_fewest,
    }
}

fn table(costs: &[CrowdCost]) -> String {
    let mut table = Table::new([
        ("CONNECTIONS", Align::Right),
        ("CASE", Align::Left),
        ("NS", Align::Right),
        ("P10", Align::Right),
        ("P90", Align::Right),
        ("OVER", Align::Right),
        ("WHAT", Align::Left),
    ]);
    for CrowdCost { connections, name, what, ns, over_fewest } in costs {
        table.row([
            connections.to_string(),
            name.clone(),
            format!("{:.0}", ns.median),
            format!("{:.0}", ns.p10),
            format!("{:.0}", ns.p90),
            format!("{over_fewest:.2}"),
            what.clone(),
        ]);
    }
    table.render()
}

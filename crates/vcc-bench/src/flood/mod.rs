mod bed;
mod figures;
mod load;
mod turn;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use vcc_command::output;
use vcc_results::report::bench::Measurements;

use super::Origin;
use bed::Bed;
use figures::{Pair, Round};

/// The effect of a flood of SYNs at one port on connections at others
///
/// Three guests in namespaces of their own. One sends SYNs, a quarter of which are answered and a
/// quarter refused, while the two others transfer data and open connections: at a rate that leaves
/// CPUs idle, and as fast as they can. Runs alternate with and without the flood, and with and
/// without vcc; ratios compare adjacent runs.
#[derive(clap::Args)]
pub struct Arguments {
    /// SYNs a minute
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(60..=10_000_000))]
    syns: u32,

    /// Rounds of four turns
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,

    /// Also write the figures to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub fn run(arguments: &Arguments, origin: &Origin) -> anyhow::Result<ExitCode> {
    let measured = vcc_port::isolated(|| measure(arguments));
    let figures =
        figures::from_rounds(&measured.context("cannot make namespaces (it takes root)")??);
    output::say(&figures::table(&figures));
    if let Some(path) = &arguments.json {
        origin.write(path, Measurements::Flood(figures))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn measure(arguments: &Arguments) -> anyhow::Result<Vec<Round>> {
    let mut bed = Bed::create()?;
    let syns_a_second = arguments.syns / 60;
    let mut rounds = Vec::new();
    for round in 0..arguments.runs {
        // Each begins with another turn, so that a machine that slows down favours none.
        let (flood_first, ports_first) = (round & 1 != 0, round & 2 != 0);
        let mut with = None;
        let mut without = None;
        for is_attached in [ports_first, !ports_first] {
            if is_attached {
                bed.attach()?;
                with = Some(pair(&mut bed, syns_a_second, flood_first)?);
                bed.detach()?;
            } else {
                without = Some(pair(&mut bed, syns_a_second, flood_first)?);
            }
        }
        rounds.extend(with.zip(without).map(|(with, without)| Round { with, without }));
    }
    Ok(rounds)
}

fn pair(bed: &mut Bed, syns_a_second: u32, flood_first: bool) -> anyhow::Result<Pair> {
    let mut quiet = None;
    let mut flooded = None;
    for is_flooded in [flood_first, !flood_first] {
        let turn = turn::take(bed, is_flooded.then_some(syns_a_second))?;
        *(if is_flooded { &mut flooded } else { &mut quiet }) = Some(turn);
    }
    quiet.zip(flooded).map(|(quiet, flooded)| Pair { quiet, flooded }).context("two turns")
}

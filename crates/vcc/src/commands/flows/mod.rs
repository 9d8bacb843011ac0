mod watch;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;

use super::{seconds, swept};
use crate::seen::filter::Filter;
use crate::seen::sort::{Sort, SortKey};
use crate::seen::{Sampler, Snapshot, columns};
use crate::{interrupt, output};

/// Show the connections at ports
///
/// CWND is the underlay's window in segments, WINDOW the one that the guest was shown last, FLIGHT
/// what it has sent beyond what was acknowledged. Where the guest's ECN is its own, nothing is
/// computed. ALPHA is DCTCP's mean of marks. LIMITED-BY says what keeps the rate from growing. Policed
/// segments were dropped for they were beyond the window, forged feedback was not believed.
/// docs/seeing.md explains every column; the JSON has more.
#[derive(clap::Args)]
pub struct Arguments {
    /// Ports to look at [default: all]
    #[arg(value_name = "DEV")]
    devices: Vec<String>,

    #[command(flatten)]
    filter: Filter,

    /// In this order: the most first, names from A to Z [default: place]
    #[arg(long, value_name = "KEY", help_heading = "How they are shown")]
    sort: Option<SortKey>,

    /// In the opposite order
    #[arg(long, help_heading = "How they are shown")]
    reverse: bool,

    /// No more than the first N
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "How they are shown")]
    top: Option<usize>,

    /// Show all columns, also those that rarely matter
    #[arg(long, conflicts_with = "json", help_heading = "How they are shown")]
    wide: bool,

    /// Show them again every SECONDS, with rates, until Ctrl-C
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1", value_parser = seconds::from_a_tenth, help_heading = "How they are shown")]
    watch: Option<Duration>,

    /// Print the connections as JSON; with --watch a line each time
    #[arg(long, help_heading = "How they are shown")]
    json: bool,
}

/// A rate takes two reads, this far apart where nobody said how often.
const BETWEEN_READS: Duration = Duration::from_millis(500);

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut sampler = Sampler::new(&arguments.devices);
    if let Some(interval) = arguments.watch {
        watch::run(arguments, &mut sampler, interval)?;
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.sort == Some(SortKey::Rate) {
        interrupt::listen()?;
        sampler.note()?;
        if !interrupt::wait(BETWEEN_READS) {
            bail!("interrupted between the two reads that a rate takes");
        }
    }
    let snapshot = chosen(arguments, sampler.snapshot()?);
    if arguments.json {
        output::say_json(&snapshot.flows)?;
    } else {
        output::say(&columns::table(&snapshot.flows, arguments.wide));
    }
    Ok(ExitCode::SUCCESS)
}

/// Those that were asked for, in their order.
fn chosen(arguments: &Arguments, mut snapshot: Snapshot) -> Snapshot {
    snapshot.gone.iter().for_each(|device| output::complain(&swept(device)));
    snapshot.flows.retain(|flow| arguments.filter.admits(flow));
    let key = arguments.sort.unwrap_or(SortKey::Place);
    Sort { key, reverse: arguments.reverse }.apply(&mut snapshot.flows);
    snapshot.flows.truncate(arguments.top.unwrap_or(usize::MAX));
    snapshot
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|count| *count > 0).ok_or_else(|| "a number from 1 on".to_owned())
}

pub mod table;
pub mod watch;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use vcc_command::output;
use vcc_command::seconds;
use vcc_view::{FlowView, Once, READ_EVERY, Sampler, Snapshot};

use super::selection::{FilterArguments, OrderArguments};
use super::tenants::Tenants;
use super::{swept, why_none};
use crate::interrupt;

/// Show the connections at ports
///
/// Most columns describe the underlay's sender, which computes nothing for a connection whose guest uses
/// ECN itself. JSON has more columns than the table: docs/seeing.md lists its keys.
#[derive(clap::Args)]
#[command(after_long_help = table::help())]
pub struct Arguments {
    /// Ports to show [default: all]
    #[arg(value_name = "DEV")]
    devices: Vec<String>,

    #[command(flatten)]
    filter: Box<FilterArguments>,

    #[command(flatten)]
    order: OrderArguments,

    /// Show all columns
    #[arg(long, conflicts_with = "json", help_heading = "How they are shown")]
    wide: bool,

    /// Show them every SECONDS, with rates, until Ctrl-C
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1", value_parser = seconds::from_a_tenth, help_heading = "How they are shown")]
    watch: Option<Duration>,

    /// Print the connections as JSON; with --watch one line per read
    #[arg(long, help_heading = "How they are shown")]
    json: bool,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut sampler = Sampler::new(&arguments.devices);
    if let Some(interval) = arguments.watch {
        watch::run(arguments, &mut sampler, interval)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut flows = if arguments.order.is_by_rate() {
        interrupt::listen()?;
        sampler.note()?;
        if !interrupt::wait(READ_EVERY) {
            bail!("interrupted before the second of the two reads that rates need");
        }
        chosen(arguments, sampler.snapshot()?).flows
    } else {
        let filter = arguments.filter.filter();
        let Once { mut flows, gone } = Once::read(&arguments.devices, |flow| filter.admits(flow))?;
        complain_of(&gone);
        order(arguments, &mut flows);
        flows
    };
    Tenants::ask().name(&mut flows);
    if arguments.json {
        output::say_json_rows(&flows)?;
    } else if flows.is_empty() {
        let all = Once::read(&arguments.devices, |_| true)?.flows;
        output::say(&format!("{}\n", why_none(&arguments.devices, all.len())?));
    } else {
        output::say(&table::table(&flows, arguments.wide));
    }
    Ok(ExitCode::SUCCESS)
}

/// The flows that the arguments select, in their order.
fn chosen(arguments: &Arguments, mut snapshot: Snapshot) -> Snapshot {
    complain_of(&snapshot.gone);
    let filter = arguments.filter.filter();
    snapshot.flows.retain(|flow| filter.admits(flow));
    order(arguments, &mut snapshot.flows);
    snapshot
}

fn complain_of(gone: &[String]) {
    gone.iter().for_each(|device| output::complain(&swept(device)));
}

/// Sorts, and keeps the first that the arguments ask for.
fn order(arguments: &Arguments, flows: &mut Vec<FlowView>) {
    arguments.order.sort().apply(flows);
    arguments.order.keep_first(flows);
}

//! What underlays at ports in shadow mode would change.

mod report;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::ValueEnum;
use vcc_command::{output, seconds};
use vcc_daemon::OF_CLUSTER;
use vcc_view::trial::Tally;
use vcc_view::{Cost, CostWatch, Counting, Once, Watch};

use super::sources_of;
use super::tenants::Tenants;
use crate::interrupt;

/// Measure what the underlays at ports in shadow mode would change
///
/// Reads the connections at these ports repeatedly, and compares what is in flight with the window that the
/// underlay would have shown. Changes nothing. How a guest would have answered smaller windows is not known:
/// the figures show how often, and for how much, a window would have mattered.
#[derive(clap::Args)]
pub struct Arguments {
    /// Ports in shadow mode [default: all]
    #[arg(value_name = "DEV")]
    devices: Vec<String>,

    /// Watch for SECONDS; Ctrl-C ends it earlier
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds::from_a_tenth)]
    duration: Duration,

    /// Read every SECONDS
    #[arg(long, value_name = "SECONDS", default_value = "0.1", value_parser = seconds::from_a_hundredth)]
    every: Duration,

    /// A row for each of these
    #[arg(long, value_enum, default_value_t = By::Port)]
    by: By,

    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

/// How connections come into shadow mode here: by the daemon's policy if there is a daemon.
fn next_step() -> String {
    match super::policy::daemon().status() {
        Ok(status) if status.config == OF_CLUSTER => {
            "set `mode: shadow` in a rule of the cluster's VccPolicy".to_owned()
        }
        Ok(status) => format!(
            "set mode = \"shadow\" in [default] or in a rule of {}, then `vcc policy apply`",
            status.config
        ),
        Err(_) => {
            "`vcc attach DEV --mode shadow`, or `vcc set DEV --mode shadow` at a port".to_owned()
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    Port,
    Rule,
    Tenant,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    interrupt::listen()?;
    let mut tally = Tally::default();
    let mut tenants = Tenants::ask();
    let sources = sources_of(&arguments.devices)?;
    let counting = Counting::begin();
    let costs = CostWatch::begin(&sources);
    let began = Instant::now();
    let mut next = began;
    loop {
        let Once { mut flows, gone } = Once::read(&arguments.devices, |_| true)?;
        if let Some(device) = gone.first() {
            output::complain(&super::swept(device));
        }
        tenants.name(&mut flows);
        tally.note(began.elapsed(), &flows);
        next += arguments.every;
        // A read may take longer than the interval.
        next = next.max(Instant::now());
        if next - began > arguments.duration || !interrupt::wait(next - Instant::now()) {
            break;
        }
    }
    let costs: Vec<Cost> = costs.end(&sources).into_iter().flatten().collect();
    drop(counting);
    if tally.is_empty() {
        bail!(
            "no connection in shadow mode was seen in {:.0} s: {}, and wait for new connections",
            began.elapsed().as_secs_f64(),
            next_step()
        );
    }
    let report = report::Report::new(&tally, arguments.by, &costs);
    if arguments.json {
        output::say_json(&report)?;
    } else {
        output::say(&report.text());
    }
    Ok(ExitCode::SUCCESS)
}

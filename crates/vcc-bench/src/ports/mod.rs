mod churn;
mod daemon;
mod memory;
mod start;
mod talk;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use vcc_command::seconds;
use vcc_results::report::bench::{Figure, Measurements};

use super::Origin;
use super::figures::run_isolated;

/// How fast `vcc run` makes devices ports, and what many ports cost
///
/// In namespaces of their own, with veth pairs as devices and their default settings: a start with
/// all devices there, a restart, an upgrade while connections talk, devices one at a time, and
/// devices that come and go.
#[derive(clap::Args)]
pub struct Arguments {
    /// Devices there at the start
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(2..=4096))]
    ports: u32,

    /// Devices created one at a time
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    singles: u32,

    /// Devices created a second while devices come and go, each for a second
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    churn: u32,

    /// For how long they come and go
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds::from_a_tenth)]
    churn_time: Duration,

    /// Also write the figures to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub fn run(arguments: &Arguments, origin: &Origin) -> anyhow::Result<ExitCode> {
    run_isolated(origin, arguments.json.as_deref(), Measurements::Ports, || measure(arguments))
}

fn measure(arguments: &Arguments) -> anyhow::Result<Vec<Figure>> {
    let mut figures = start::measure(arguments.ports)?;
    figures.extend(churn::measure(arguments.singles, arguments.churn, arguments.churn_time)?);
    Ok(figures)
}

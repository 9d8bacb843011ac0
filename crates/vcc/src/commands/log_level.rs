use std::process::ExitCode;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use vcc_command::output;
use vcc_daemon::{Client, LogLevel, RuntimeDir};

/// Show or set the daemon's log level
///
/// The daemon logs events of this level and of the more urgent ones before it, until it ends; it starts
/// with that of `vcc run --log-level`. `debug` explains why a device is no port, and names each request
/// and what was slow.
#[derive(clap::Args)]
pub struct Arguments {
    /// The level from now on [default: show the present one]
    #[arg(value_name = "LEVEL", value_parser = parser())]
    level: Option<LogLevel>,
}

pub fn parser() -> impl TypedValueParser<Value = LogLevel> {
    PossibleValuesParser::new(LogLevel::ALL.map(LogLevel::name))
        .try_map(|name| name.parse::<LogLevel>())
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let level = Client::new(&RuntimeDir::of_environment()).log_level(arguments.level)?;
    output::say(&format!("{level}\n"));
    Ok(ExitCode::SUCCESS)
}

use std::path::PathBuf;
use std::process::ExitCode;

use vcc_command::output;

use super::{counted, read};

/// Check a policy file, and list all errors and warnings
///
/// A warning is about a valid policy that may not be what was meant.
#[derive(clap::Args)]
pub struct Arguments {
    file: PathBuf,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let policy = read(&arguments.file)?;
    let rules = policy.count();
    let ports = counted(policy.ports().len(), "pattern");
    let pools = counted(policy.pools().len(), "pool");
    let file = arguments.file.display();
    output::say(&format!("{file} is valid: {rules}, {pools}, {ports} of ports\n"));
    Ok(ExitCode::SUCCESS)
}

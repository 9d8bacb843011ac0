use std::process::ExitCode;

use vcc_command::output;

/// Print the JSON schema of policy files, for editors
#[derive(clap::Args)]
pub struct Arguments {}

pub fn run(_: &Arguments) -> anyhow::Result<ExitCode> {
    output::say(&vcc_policy::schema());
    Ok(ExitCode::SUCCESS)
}

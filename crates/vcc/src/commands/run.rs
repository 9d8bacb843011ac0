use std::path::PathBuf;
use std::process::ExitCode;

use vcc_daemon::{Error, Options, RuntimeDir};

use super::policy;

/// Keep this host's ports under a policy: the daemon
///
/// Attaches to every device that the policy calls a port, now and as they appear; adopts what an
/// earlier daemon left. SIGHUP reads the policy again. When it ends, however it ends, everything stays
/// attached, and connections go on: `vcc detach --all` takes vcc off.
#[derive(clap::Args)]
pub struct Arguments {
    /// The policy
    #[arg(long, value_name = "FILE", default_value = "/etc/vcc/policy.toml")]
    config: PathBuf,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let options =
        Options { config: arguments.config.clone(), runtime_dir: RuntimeDir::of_environment() };
    vcc_daemon::run(options).inspect_err(|error| {
        if let Error::BadPolicy { problems, .. } = error {
            policy::complain(&problems.problems);
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

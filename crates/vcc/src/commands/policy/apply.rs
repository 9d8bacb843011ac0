use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use vcc_daemon::{ClientError, read_policy};
use vcc_policy::RuleCount;

use super::{counted, daemon};
use crate::output;

/// Bring a policy into force, without a pause for any connection
///
/// The daemon (`vcc run`) does it, or nothing of it: a policy with errors changes nothing. Without
/// FILE, processes of `vcc domain` under a policy are told to read theirs again as well.
#[derive(clap::Args)]
pub struct Arguments {
    /// The policy, in force until the next reload or start [default: the daemon's own file, anew]
    file: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let policy = match &arguments.file {
        Some(path) => {
            let name = path.display().to_string();
            Some((read_policy(path).with_context(|| format!("cannot read {name}"))?, name))
        }
        None => None,
    };
    let temporary = policy.is_some();
    let applied = daemon().apply(policy).inspect_err(|error| {
        if let ClientError::Refused { problems, .. } = error {
            problems.iter().for_each(|problem| output::complain_at_length(problem));
        }
    })?;
    for warning in &applied.warnings {
        output::complain_at_length(warning);
    }
    output::say(&format!(
        "{} is in force{}: epoch {}, {} at {}, {} judged again in {:.1} ms\n",
        applied.file_name,
        if temporary { " until the next reload" } else { "" },
        applied.epoch,
        RuleCount { rules: applied.rules - 1, has_default: applied.has_default },
        counted(applied.ports, "port"),
        counted(applied.flows as usize, "connection"),
        applied.took_us as f64 / 1e3,
    ));
    // Each reads its own file, and tells in its journal what is wrong with it.
    let reloading = if temporary { Vec::new() } else { vcc_view::reload_all() };
    if !reloading.is_empty() {
        output::say(&format!("told to read theirs again: {}\n", reloading.join(", ")));
    }
    for problem in &applied.problems {
        output::say(&format!("problem: {problem}\n"));
    }
    Ok(ExitCode::SUCCESS)
}

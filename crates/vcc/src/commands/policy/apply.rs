use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, ensure};
use vcc_command::output;
use vcc_daemon::{ClientError, OF_CLUSTER, read_policy};
use vcc_policy::{Policy, RuleCount};
use vcc_view::DomainPort;

use super::{counted, daemon};

/// Put a policy in force, without interrupting any connection
///
/// The daemon (`vcc run`) applies it as a whole; a policy with errors changes nothing. Without FILE,
/// processes of `vcc domain` that use the daemon's file read it again as well, and each answers.
///
/// A file without rules, default and ports may be a mistake, and is refused.
#[derive(clap::Args)]
pub struct Arguments {
    /// The policy, in force until the next reload or start [default: read the daemon's own file again]
    file: Option<PathBuf>,

    /// Also apply an empty policy, with which the daemon detaches from all devices
    #[arg(long)]
    allow_empty: bool,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let policy = match &arguments.file {
        Some(path) => {
            let name = path.display().to_string();
            Some((read_policy(path).with_context(|| format!("cannot read {name}"))?, name))
        }
        None => None,
    };
    if !arguments.allow_empty {
        match &policy {
            Some((text, name)) => refuse_empty(text, name)?,
            None => refuse_empty_file()?,
        }
    }
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
    for problem in &applied.problems {
        output::say(&format!("problem: {problem}\n"));
    }
    let all_obey = temporary || reload_domains(&applied.file_name);
    Ok(if all_obey { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// An invalid policy is no concern of this: the daemon refuses it, with all errors.
fn refuse_empty(text: &str, name: &str) -> anyhow::Result<()> {
    let Ok(checked) = Policy::parse(text, name) else { return Ok(()) };
    let policy = checked.policy;
    let is_empty = policy.count() == RuleCount { rules: 0, has_default: false };
    ensure!(
        !is_empty || !policy.ports().is_empty(),
        "{name} is empty: it has no [[rules]], no [default] and no [[ports]], so the daemon would detach from \
         all devices; if that is the intention, add --allow-empty"
    );
    Ok(())
}

/// The same of the daemon's own file, which need not be the one in force. What cannot be read is left to
/// the daemon, which reports it.
fn refuse_empty_file() -> anyhow::Result<()> {
    let Ok(status) = daemon().status() else { return Ok(()) };
    let path = Path::new(&status.config);
    // A pipe would be waited for.
    if status.config == OF_CLUSTER || !path.is_file() {
        return Ok(());
    }
    read_policy(path).map_or(Ok(()), |text| refuse_empty(&text, &status.config))
}

/// Has the processes of `vcc domain` under this file read it again, and prints what each answers.
/// Returns whether it is in force at all of them.
fn reload_domains(file: &str) -> bool {
    let mut all_obey = true;
    for port in DomainPort::list() {
        let name = &port.name;
        let reloaded = match (port.policy(), &port.status) {
            (Some(own), _) if is_same(own, file) => port.reload(),
            (Some(own), _) => Ok(format!("uses {own}, which was not read again")),
            (None, Ok(_)) => continue,
            (None, Err(failure)) => Err(failure.clone()),
        };
        match reloaded {
            Ok(line) => output::say(&format!("{name}: {line}\n")),
            Err(line) => {
                output::complain(&format!("{name}: {line}"));
                all_obey = false;
            }
        }
    }
    all_obey
}

fn is_same(one: &str, other: &str) -> bool {
    let whole = |path: &str| fs::canonicalize(path).ok();
    one == other || whole(one).is_some_and(|one| Some(one) == whole(other))
}

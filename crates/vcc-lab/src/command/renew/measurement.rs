//! A measurement, in a process of its own: a signal ends it as it ends `vcc-lab run`, and its record
//! names the command that repeats it.

use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::{env, io};

use anyhow::Context;
use tempfile::TempDir;
use vcc_command::signals::Signals;
use vcc_results::report::read_results;

use super::item::Item;
use crate::report::{write_confirmation, write_records};

/// How often a child is looked at.
const POLL_MS: libc::c_int = 200;

pub enum End {
    Interrupted,
    /// With what; a record may have been written or not.
    Exited(String),
}

/// What a repetition has shown.
pub enum Confirmed {
    Interrupted,
    /// With what.
    Failed(String),
    Same,
    /// In these cases.
    Differs(Vec<String>),
}

pub struct Runner {
    signals: Signals,
    /// Where figures are kept.
    results: Option<PathBuf>,
    /// Where those of benchmarks are, until they are recorded.
    temporary: TempDir,
}

impl Runner {
    pub fn new(results: Option<&Path>) -> anyhow::Result<Self> {
        Ok(Self {
            signals: Signals::block().context("cannot watch for Ctrl-C")?,
            results: results.map(Into::into),
            temporary: tempfile::tempdir().context("cannot create a temporary directory")?,
        })
    }

    /// Repeats the first run of each case of a record.
    pub fn confirm(&self, item: &Item) -> anyhow::Result<Confirmed> {
        let json = self.temporary.path().join(format!("{}.json", item.name));
        let mut command = Command::new(env::current_exe()?);
        command.args(without_runs(&item.arguments)).args(["--runs", "1", "--json"]).arg(&json);
        let Some(status) = self.status(&mut command)? else { return Ok(Confirmed::Interrupted) };
        // It ends with an error also if a run is not valid, which is a difference.
        let Ok(results) = read_results(&[json]) else {
            return Ok(Confirmed::Failed(status.to_string()));
        };
        let differing = write_confirmation(&item.name, &results.files[0].report)?;
        Ok(match differing.is_empty() {
            true => Confirmed::Same,
            false => Confirmed::Differs(differing),
        })
    }

    /// Measures and records it.
    pub fn measure(&self, item: &Item) -> anyhow::Result<End> {
        let mut command = Command::new(env::current_exe()?);
        command.args(&item.arguments);
        let file =
            |directory: &Path, extension| directory.join(format!("{}.{extension}", item.name));
        let is_bench = item.arguments[0] == "bench";
        if is_bench {
            let directory = self.results.as_deref().unwrap_or(self.temporary.path());
            let json = file(directory, "json");
            return match self.status(command.arg("--json").arg(&json))? {
                Some(status) if status.success() => {
                    write_records(&read_results(&[json])?)?;
                    Ok(End::Exited(status.to_string()))
                }
                status => Ok(end(status)),
            };
        }
        command.arg("--record");
        if let Some(directory) = &self.results {
            command.arg("--json").arg(file(directory, "json"));
            command.arg("--plot").arg(file(directory, "svg"));
        }
        Ok(end(self.status(&mut command)?))
    }

    /// None if a signal has ended it.
    fn status(&self, command: &mut Command) -> anyhow::Result<Option<ExitStatus>> {
        // SAFETY: both calls only set attributes of the child, and allocate nothing.
        unsafe {
            command.pre_exec(|| {
                Signals::unblock();
                // If this process is killed, the child ends and removes what it has made.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
                Ok(())
            });
        }
        let mut child = command.spawn().context("cannot start vcc-lab")?;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(Some(status));
            }
            if self.is_signalled()? {
                end_child(&mut child)?;
                return Ok(None);
            }
        }
    }

    /// Waits for a signal, for a moment.
    fn is_signalled(&self) -> io::Result<bool> {
        let fd = self.signals.as_raw_fd();
        let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: `poll` is one entry, and lives until the call returns.
        match unsafe { libc::poll(&mut poll, 1, POLL_MS) } {
            -1 => Err(io::Error::last_os_error()),
            count => Ok(count > 0),
        }
    }
}

/// Arguments of `vcc-lab run` without `--runs N`.
fn without_runs(arguments: &[String]) -> impl Iterator<Item = &String> {
    let is_runs = |at: usize| arguments.get(at).is_some_and(|it| it == "--runs");
    let kept = move |at: &usize| !is_runs(*at) && !at.checked_sub(1).is_some_and(is_runs);
    (0..arguments.len()).filter(kept).map(|at| &arguments[at])
}

fn end(status: Option<ExitStatus>) -> End {
    status.map_or(End::Interrupted, |status| End::Exited(status.to_string()))
}

/// Waits until it has removed what it has made. Ctrl-C has reached it already, SIGTERM may not have.
fn end_child(child: &mut Child) -> io::Result<()> {
    // SAFETY: a plain system call, at a child that has not been waited for.
    unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGTERM) };
    child.wait().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repetition_has_all_options_but_the_number_of_runs() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (given, kept) in [
            ("run x --runs 11 --stack modern", "run x --stack modern"),
            ("run x --seed 3 --runs 11", "run x --seed 3"),
            ("run x", "run x"),
        ] {
            assert_eq!(
                without_runs(&words(given)).collect::<Vec<_>>(),
                words(kept).iter().collect::<Vec<_>>()
            );
        }
    }
}

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
use crate::report::write_records;

/// How often a child is looked at.
const POLL_MS: libc::c_int = 200;

pub enum End {
    Interrupted,
    /// With what; a record may have been written or not.
    Exited(String),
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

fn end(status: Option<ExitStatus>) -> End {
    status.map_or(End::Interrupted, |status| End::Exited(status.to_string()))
}

/// Waits until it has removed what it has made. Ctrl-C has reached it already, SIGTERM may not have.
fn end_child(child: &mut Child) -> io::Result<()> {
    // SAFETY: a plain system call, at a child that has not been waited for.
    unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGTERM) };
    child.wait().map(drop)
}

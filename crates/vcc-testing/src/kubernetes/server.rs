//! A server that ends with whom it serves.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

/// A running process. It is killed when this is dropped or when the calling process ends, however
/// that ends.
pub(super) struct Server {
    pid: libc::pid_t,
    log: PathBuf,
    /// Until this is dropped, the keeper leaves the process alone.
    end: Option<Sender<()>>,
    keeper: Option<JoinHandle<()>>,
}

impl Server {
    /// Its messages are appended to `log`.
    pub fn start(mut command: Command, log: &Path) -> Self {
        let file = File::options().append(true).create(true).open(log).expect("a log");
        command.stdout(file.try_clone().expect("a descriptor")).stderr(file);
        // SAFETY: prctl is a system call and no more, as is allowed after fork.
        unsafe {
            command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            });
        }
        let (started, pid) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        // The kernel sends PDEATHSIG when the thread that has forked ends, and a test's thread may end
        // before those of other tests that use the server.
        let keeper = thread::spawn(move || {
            let child = command.spawn();
            let child = child.unwrap_or_else(|e| panic!("{:?}: {e}", command.get_program()));
            started.send(child.id()).expect("the caller waits");
            let _ = ended.recv();
            kill(child);
        });
        let pid = pid.recv().expect("the program starts");
        let pid = pid.try_into().expect("a process id");
        Self { pid, log: log.into(), end: Some(end), keeper: Some(keeper) }
    }

    /// Panics with its last messages if it has ended by itself.
    pub fn assert_runs(&self) {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).expect("not reaped");
        let (_, fields) = stat.rsplit_once(") ").expect("a name in parentheses");
        assert!(!fields.starts_with('Z'), "it has ended:\n{}", self.last_messages());
    }

    pub fn last_messages(&self) -> String {
        let log = fs::read_to_string(&self.log).expect("a log");
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    pub fn signal(&self, signal: libc::c_int) {
        // SAFETY: the call takes no pointers. The id is the server's until the keeper has reaped it.
        let status = unsafe { libc::kill(self.pid, signal) };
        assert_eq!(status, 0, "kill: {}", io::Error::last_os_error());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.end.take());
        let _ = self.keeper.take().expect("only taken here").join();
    }
}

/// SIGKILL also ends what SIGSTOP has stopped.
fn kill(mut child: std::process::Child) {
    let _ = child.kill();
    let _ = child.wait();
}

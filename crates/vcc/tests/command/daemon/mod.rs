//! `vcc run`, and the commands that ask it.

mod asking;
mod chaos;
mod costing;
mod devices;
mod domains;
mod hostile;
mod logging;
mod recording;
mod reloading;
mod restarting;
mod soak;
mod still;
mod telling;
mod upgrading;
pub mod watching;

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::{CommandOutput, command};

const POLICY: &str = "[[ports]]\ndevice = \"port*\"\ntenant = \"acme\"\n\
                      [default]\nunderlay = \"dctcp\"\n";

/// The directory of a daemon's policy and socket, removed with the test.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new(name: &str, policy: &str) -> Self {
        let mut directory = tempfile::Builder::new();
        // Other users must be refused by the daemon.
        directory.prefix(name).permissions(Permissions::from_mode(0o755));
        let place = Self(directory.tempdir().expect("a directory"));
        fs::create_dir(place.path("run")).expect("a directory");
        place.write(policy);
        place
    }

    /// At once: a daemon that reads the file meanwhile finds the one or the other.
    pub(crate) fn write(&self, policy: &str) {
        let next = self.path("policy.next");
        fs::write(&next, policy).expect("a file");
        fs::rename(next, self.config()).expect("a file");
    }

    /// For `--hosts HOSTS`.
    pub(crate) fn write_hosts(&self, hosts: &str) {
        fs::write(self.path("hosts"), hosts).expect("a file");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn config(&self) -> PathBuf {
        self.path("policy.toml")
    }

    fn socket(&self) -> PathBuf {
        self.path("run/control")
    }

    /// Knows where the daemon is.
    fn command(&self) -> Command {
        self.knowing(command())
    }

    fn knowing(&self, mut command: Command) -> Command {
        command.env("RUNTIME_DIRECTORY", self.path("run")).env_remove("JOURNAL_STREAM");
        command
    }

    /// A run of the command, with FILE in its arguments as the policy's.
    pub(crate) fn vcc(&self, arguments: &str) -> CommandOutput {
        let file = self.config();
        let hosts = self.path("hosts");
        let arguments = arguments.replace("FILE", file.to_str().expect("UTF-8"));
        let arguments = arguments.replace("HOSTS", hosts.to_str().expect("UTF-8"));
        self.command().args(arguments.split_whitespace()).output().expect("the command").into()
    }

    /// A run of the command in this directory.
    pub(crate) fn command_in(&self, directory: &Path, arguments: &[&str]) -> CommandOutput {
        let mut command = self.command();
        command.current_dir(directory).args(arguments).output().expect("the command").into()
    }

    pub(crate) fn status(&self) -> Value {
        serde_json::from_str(&self.vcc("status --json").well()).expect("JSON")
    }

    /// Devices and indices of the ports.
    fn ports(&self) -> Vec<(String, u64)> {
        let status = self.status();
        let ports = status["ports"].as_array().expect("ports");
        let of = |port: &Value| {
            let device = port["device"].as_str().expect("a name").to_owned();
            (device, port["index"].as_u64().expect("an index"))
        };
        ports.iter().map(of).collect()
    }

    pub(crate) fn run(&self) -> Daemon {
        self.run_by(self.command())
    }

    /// Watched over HTTP at this address.
    pub(crate) fn run_at(&self, listen: &str) -> Daemon {
        self.run_with(self.command(), listen)
    }

    /// By a command that becomes `vcc`.
    fn run_by(&self, command: Command) -> Daemon {
        self.run_with(command, "off")
    }

    /// With more options of `vcc run`.
    fn run_and(&self, options: &[&str]) -> Daemon {
        let mut command = self.command();
        command.args(["run", "--listen", "off", "--config"]).arg(self.config()).args(options);
        Self::spawn(command)
    }

    fn run_with(&self, mut command: Command, listen: &str) -> Daemon {
        command.args(["run", "--listen", listen, "--config"]).arg(self.config());
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> Daemon {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the command");
        let stderr = BufReader::new(child.stderr.take().expect("its complaints"));
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Daemon { child, lines }
    }

    pub(crate) fn connect(&self) -> UnixStream {
        UnixStream::connect(self.socket()).expect("a connection")
    }
}

/// One in the background; killed at its end, if it has not ended before.
pub(crate) struct Daemon {
    child: Child,
    lines: Receiver<String>,
}

impl Daemon {
    /// Waits for a line of the log, and returns it. Fails after two minutes.
    #[track_caller]
    pub(crate) fn wait_for_log(&self, part: &str) -> String {
        const PATIENCE: Duration = Duration::from_secs(120);
        let mut before = Vec::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(part) => return line,
                Ok(line) => before.push(line),
                Err(_) => panic!("it did not say `{part}`, but {before:#?}"),
            }
        }
    }

    /// The first line with that part; None if it ends before.
    fn log_before_its_end(&self, part: &str) -> Option<String> {
        std::iter::from_fn(|| self.lines.recv().ok()).find(|line| line.contains(part))
    }

    #[track_caller]
    pub(crate) fn is_ready(&self) -> String {
        self.wait_for_log(", epoch ")
    }

    fn signal(&self, signal: libc::c_int) {
        // SAFETY: the call takes no pointers; the child has not been waited for.
        let status = unsafe { libc::kill(self.child.id() as libc::pid_t, signal) };
        assert_eq!(status, 0);
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("its end");
    }

    /// The exit of a daemon that ended by itself.
    fn end(mut self) -> i32 {
        self.child.wait().expect("its end").code().expect("a code")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! Other programs. Those that configure devices act in the namespace of the calling thread; those
//! that run as long as the network does enter theirs.

use super::Netns;
use crate::base::error::{Doing, Error, Result};
use crate::base::system::check;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};

/// Runs `ip` once over many commands, one per line.
pub fn ip_batch(place: &str, commands: &str) -> Result<()> {
    batch("ip", place, commands)
}

/// Runs `tc` once over many commands, one per line.
pub fn tc_batch(place: &str, commands: &str) -> Result<()> {
    batch("tc", place, commands)
}

fn batch(program: &str, place: &str, commands: &str) -> Result<()> {
    let mut command = Command::new(program);
    command.args(["-batch", "-"]).stdin(Stdio::piped());
    let output = start(command, program, "iproute2", |child| {
        child.write_all(commands.as_bytes()).doing(|| format!("pass commands to {program}"))
    })?;
    finish(program, place, output)
}

pub fn ethtool(place: &str, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("ethtool");
    command.args(arguments).stdin(Stdio::null());
    let output = start(command, "ethtool", "ethtool", |_| Ok(()))?;
    finish("ethtool", place, output)
}

fn start(
    mut command: Command,
    program: &str,
    package: &str,
    feed: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<Output> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = spawn(&mut command, program, package)?;
    if let Some(mut stdin) = child.stdin.take() {
        feed(&mut stdin)?;
    }
    child.wait_with_output().doing(|| format!("wait for {program}"))
}

fn spawn(command: &mut Command, program: &str, package: &str) -> Result<Child> {
    command.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound => missing(program, package),
        _ => Error::System { action: format!("run {program}"), source: error },
    })
}

pub fn missing(program: &str, package: &str) -> Error {
    Error::Missing {
        what: format!("the program '{program}'"),
        remedy: format!("install the package {package}"),
    }
}

/// Starts a program in a namespace. Not even kill -9 of the lab leaves it behind, for it ends with
/// the calling thread.
pub fn spawn_inside(namespace: &Netns, command: &mut Command, package: &str) -> Result<Child> {
    Entry::open(namespace)?.enter(command);
    let program = command.get_program().to_string_lossy().into_owned();
    spawn(command, &program, package)
}

/// The way into a namespace.
pub struct Entry(File);

impl Entry {
    pub fn open(namespace: &Netns) -> Result<Self> {
        let path = namespace.path();
        File::open(&path).map(Self).doing(|| format!("open {path}"))
    }

    /// The program will run there, and end with the thread that starts it.
    pub fn enter(self, command: &mut Command) {
        let enter = move || {
            // SAFETY: takes no pointers, and the descriptor is open.
            check(unsafe { libc::setns(self.0.as_raw_fd(), libc::CLONE_NEWNET) })?;
            // SAFETY: takes no pointers.
            check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) }).map(drop)
        };
        // SAFETY: between fork and exec, these are two system calls and nothing else.
        unsafe { command.pre_exec(enter) };
    }
}

fn finish(program: &str, place: &str, output: Output) -> Result<()> {
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let output = text.split_whitespace().collect::<Vec<_>>().join(" ");
    Err(Error::Program { program: program.into(), place: place.into(), output })
}

//! The programs that configure devices. They act in the namespace of the calling thread.

use crate::base::error::{Doing, Error, Result};
use std::io::{ErrorKind, Write};
use std::process::{Command, Output, Stdio};

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
    let mut child = command.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound => Error::Missing {
            what: format!("the program '{program}'"),
            remedy: format!("install the package {package}"),
        },
        _ => Error::System { action: format!("run {program}"), source: error },
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        feed(&mut stdin)?;
    }
    child.wait_with_output().doing(|| format!("wait for {program}"))
}

fn finish(program: &str, place: &str, output: Output) -> Result<()> {
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let output = text.split_whitespace().collect::<Vec<_>>().join(" ");
    Err(Error::Program { program: program.into(), place: place.into(), output })
}

//! `vcc domain --device` as a child, in the calling thread's network namespace.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use anyhow::{Context, bail};
use tempfile::TempDir;
use vcc_command::{CANNOT_RUN_OPERATOR, operator};

use super::process::Process;

const COMMAND: &str = "vcc domain --device";

/// Killed when dropped.
pub struct Detour {
    process: Process,
    _runtime: TempDir,
}

impl Detour {
    /// Starts it, and waits until it serves the device.
    pub fn start(device: &str) -> anyhow::Result<Self> {
        let runtime = tempfile::tempdir().context("cannot create a temporary directory")?;
        let mut child = operator()
            .env("RUNTIME_DIRECTORY", runtime.path())
            .args(["domain", "--device", device])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context(CANNOT_RUN_OPERATOR)?;
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        let process = Process::new(child, COMMAND);
        let output = output.context("vcc has no standard output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).context("cannot read what vcc prints")?;
        if !line.starts_with("serving ") {
            let mut complaint = String::new();
            errors.context("vcc has no standard error")?.read_to_string(&mut complaint)?;
            bail!("`{COMMAND} {device}` ended early: {}", complaint.trim());
        }
        Ok(Self { process, _runtime: runtime })
    }

    /// Ends it, which takes its programs and taps away.
    pub fn end(self) -> anyhow::Result<()> {
        self.process.end()
    }
}

//! `vcc domain --device` as a child, in the calling thread's network namespace.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

use anyhow::{Context, bail};
use tempfile::TempDir;
use vcc_command::{CANNOT_RUN_OPERATOR, operator};

/// Killed when dropped.
pub struct Detour {
    child: Child,
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
        let output = child.stdout.take().context("vcc has no standard output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).context("cannot read what vcc prints")?;
        let mut detour = Self { child, _runtime: runtime };
        if !line.starts_with("serving ") {
            let mut complaint = String::new();
            if let Some(mut errors) = detour.child.stderr.take() {
                errors.read_to_string(&mut complaint)?;
            }
            bail!("`vcc domain --device {device}` ended early: {}", complaint.trim());
        }
        Ok(detour)
    }

    /// Ends it, which takes its programs and taps away.
    pub fn end(mut self) -> anyhow::Result<()> {
        // SAFETY: the call takes no pointers, and the child has not been waited for.
        unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGTERM) };
        let status = self.child.wait()?;
        if !status.success() {
            bail!("`vcc domain --device` ended with {status}");
        }
        Ok(())
    }
}

impl Drop for Detour {
    fn drop(&mut self) {
        // It may have ended before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

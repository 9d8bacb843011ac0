//! A process of `vcc` that runs until it is ended.

use std::process::Child;

use anyhow::bail;

/// Killed when dropped.
pub struct Process {
    child: Child,
    command: &'static str,
}

impl Process {
    /// `command`: for people.
    pub fn new(child: Child, command: &'static str) -> Self {
        Self { child, command }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it by SIGTERM.
    pub fn end(mut self) -> anyhow::Result<()> {
        // SAFETY: the call takes no pointers, and the child has not been waited for.
        unsafe { libc::kill(self.pid() as libc::pid_t, libc::SIGTERM) };
        let status = self.child.wait()?;
        if !status.success() {
            bail!("`{}` ended with {status}", self.command);
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! Promises of `split` in a file that outlives the process.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use vcc_daemon::RuntimeDir;
use vcc_vhost::{Card, FileLedger, Server};

/// The file of a tap.
pub struct Promises {
    path: PathBuf,
    is_kept: bool,
}

impl Promises {
    pub fn of(tap: &str) -> Self {
        let path = RuntimeDir::of_environment().path().join("ledgers").join(tap);
        Self { path, is_kept: false }
    }

    /// Ends what a process before this one has promised.
    pub fn end_left(&mut self, server: &mut Server) -> anyhow::Result<()> {
        let left = FileLedger::left(&self.path).with_context(|| self.cannot("read"))?;
        if left.is_empty() {
            let _ = fs::remove_file(&self.path);
            return Ok(());
        }
        server.end_promises(left);
        self.keep(&server.card())
    }

    /// Writes down what this process promises from now on.
    pub fn keep(&mut self, card: &Card) -> anyhow::Result<()> {
        if self.is_kept {
            return Ok(());
        }
        let mut builder = DirBuilder::new();
        let directory = self.path.parent().expect("a file is in a directory");
        builder
            .recursive(true)
            .mode(0o750)
            .create(directory)
            .with_context(|| self.cannot("make"))?;
        let written = card.change(|port| {
            let ledger = Arc::new(FileLedger::create(&self.path, port.ledger_slots())?);
            // With what is left of the process before this one.
            port.keep_ledger(ledger.clone());
            ledger.publish()
        });
        written.with_context(|| self.cannot("write"))?;
        self.is_kept = true;
        Ok(())
    }

    fn cannot(&self, what: &str) -> String {
        format!("cannot {what} the ledger of promises {}", self.path.display())
    }
}

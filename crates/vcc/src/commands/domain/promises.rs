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
        let slots = card.change(|port| port.ledger_slots());
        let ledger = FileLedger::create(&self.path, slots);
        let ledger = Arc::new(ledger.with_context(|| self.cannot("write"))?);
        card.change(|port| port.keep_ledger(ledger));
        self.is_kept = true;
        Ok(())
    }

    fn cannot(&self, what: &str) -> String {
        format!("cannot {what} the ledger of promises {}", self.path.display())
    }
}

//! Promises of `split` in a file that outlives the process.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::Arc;

use vcc_command::output;
use vcc_daemon::RuntimeDir;
use vcc_vhost::{Card, FileLedger};
use vcc_view::NO_PROMISES;

/// The file of a tap or device. The guest has its link even if the file is unusable.
pub struct Promises {
    path: PathBuf,
    is_kept: bool,
}

impl Promises {
    pub fn for_device(device: &str) -> Self {
        let path = RuntimeDir::of_environment().path().join("ledgers").join(device);
        Self { path, is_kept: false }
    }

    /// Resets the connections with open promises of an earlier process. A file that cannot be read is set aside.
    pub fn end_left(&mut self, card: &Card) {
        let left = FileLedger::left(&self.path).unwrap_or_else(|error| {
            output::complain(&self.set_aside(&error));
            Vec::new()
        });
        if left.is_empty() {
            let _ = fs::remove_file(&self.path);
            return;
        }
        card.end_promises(left);
        self.keep(card);
    }

    fn set_aside(&self, error: &io::Error) -> String {
        let file = self.path.display();
        let unknown = "connections with promises of the previous process end by timeouts";
        match FileLedger::set_aside(&self.path) {
            Ok(name) => format!(
                "cannot read the ledger of promises {file}: {error}; {unknown}; set aside as {}",
                name.display()
            ),
            Err(why) => format!(
                "cannot read the ledger of promises {file}: {error}; {unknown}; cannot set it aside: {why}"
            ),
        }
    }

    /// Records the promises of this process from now on. Without such a file, it makes no promises.
    pub fn keep(&mut self, card: &Card) {
        if self.is_kept {
            return;
        }
        match self.begin(card) {
            Ok(()) => self.is_kept = true,
            Err(error) => {
                let file = self.path.display();
                let why = format!(
                    "cannot create the ledger of promises {file}: {error}; free space, or lower \
                     `max_flows`, then restart `vcc domain` or run `vcc policy apply`"
                );
                card.change(|port| port.promise_nothing(&why));
                output::complain(&format!("{NO_PROMISES}: {why}"));
            }
        }
    }

    fn begin(&self, card: &Card) -> io::Result<()> {
        let directory = self.path.parent().expect("a file is in a directory");
        DirBuilder::new().recursive(true).mode(0o750).create(directory)?;
        // On the port's thread, because it reserves room.
        let ledger =
            Arc::new(FileLedger::create(&self.path, card.with_port(|port| port.ledger_slots()))?);
        card.change(|port| {
            // With the open promises of the previous process.
            port.keep_ledger(ledger.clone());
            ledger.publish()
        })
    }
}

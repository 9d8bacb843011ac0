//! What comes of the records of connections, for all that show it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// What came of the records since the daemon began.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) written: AtomicU64,
    pub(crate) lost: AtomicU64,
    /// Why none can be written now, as on a full disk.
    pub(crate) failure: Mutex<Option<String>>,
}

/// Shows what comes of the records.
#[derive(Clone, Debug)]
pub(crate) struct State {
    target: String,
    counts: Arc<Counts>,
}

impl State {
    /// Of records that go to `target`.
    pub(crate) fn new(target: String) -> Self {
        Self { target, counts: Arc::default() }
    }

    pub(crate) fn counts(&self) -> Arc<Counts> {
        self.counts.clone()
    }

    pub(crate) fn view(&self) -> vcc_web::snapshot::Records {
        let Counts { written, lost, failure } = &*self.counts;
        vcc_web::snapshot::Records {
            target: self.target.clone(),
            written: written.load(Relaxed),
            lost: lost.load(Relaxed),
            failure: failure.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

//! How much the engine has been asked, as a measure of the work that was done.

use std::sync::atomic::{AtomicU64, Ordering};

static STEPS: AtomicU64 = AtomicU64::new(0);

/// Calls of the engine by this process.
pub fn steps() -> u64 {
    STEPS.load(Ordering::Relaxed)
}

pub(crate) fn count() {
    STEPS.fetch_add(1, Ordering::Relaxed);
}

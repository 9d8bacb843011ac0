//! A measure of the work that was done: calls of the engine, frames, texts and the like.

use std::sync::atomic::{AtomicU64, Ordering};

static STEPS: AtomicU64 = AtomicU64::new(0);

/// Steps of this process.
pub fn steps() -> u64 {
    STEPS.load(Ordering::Relaxed)
}

pub(crate) fn count() {
    STEPS.fetch_add(1, Ordering::Relaxed);
}

//! Waiting for what the kernel finishes after the call that asked for it, and being waited for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Waits until `holds`, for a minute at most.
#[track_caller]
pub fn eventually(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..6000 {
        if holds() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("not after a minute: {what}");
}

/// Signals the end of a test to its background threads, also if the test panics: the end of a scope waits for
/// its threads, so the test would not end otherwise.
pub struct EndOnDrop<'a>(pub &'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

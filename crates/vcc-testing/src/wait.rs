//! Waiting for what the kernel finishes after the call that asked for it.

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

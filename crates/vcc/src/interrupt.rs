//! SIGINT, SIGTERM and SIGHUP, for commands that run until they are interrupted and then clean up.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;

static CAME: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_signal: libc::c_int) {
    CAME.store(true, Ordering::Relaxed);
}

/// From now on, the first of these signals is recorded, and the second ends the process.
pub fn listen() -> anyhow::Result<()> {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: all-zero bytes are a valid sigaction.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = note as extern "C" fn(libc::c_int) as libc::sighandler_t;
        action.sa_flags = libc::SA_RESETHAND;
        // SAFETY: the handler does no more than an atomic store, which a handler may, and the
        // structure outlives the call.
        if unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) } < 0 {
            return Err(io::Error::last_os_error()).context("cannot wait for Ctrl-C");
        }
    }
    Ok(())
}

pub fn came() -> bool {
    CAME.load(Ordering::Relaxed)
}

/// Waits, but not beyond a signal; true if none came.
pub fn wait(duration: Duration) -> bool {
    const LOOK: Duration = Duration::from_millis(50);
    let until = Instant::now() + duration;
    while !came() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        thread::sleep(left.min(LOOK));
    }
    false
}

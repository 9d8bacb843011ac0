//! Ctrl-C: a run ends early, and with everything removed.

use crate::base::error::{Doing, Error, Result};
use crate::base::system::check;
use std::sync::atomic::{AtomicBool, Ordering};

static PENDING: AtomicBool = AtomicBool::new(false);
const SIGNALS: [libc::c_int; 2] = [libc::SIGINT, libc::SIGTERM];

/// While this lives, SIGINT and SIGTERM end runs instead of the process.
pub struct Watch {
    before: Vec<libc::sigaction>,
}

extern "C" fn note(_signal: libc::c_int) {
    PENDING.store(true, Ordering::Relaxed);
}

impl Watch {
    pub fn start() -> Result<Self> {
        PENDING.store(false, Ordering::Relaxed);
        let mut watch = Self { before: Vec::new() };
        for signal in SIGNALS {
            // SAFETY: all-zero is a valid sigaction: no flags, an empty mask.
            let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
            action.sa_sigaction = note as *const () as libc::sighandler_t;
            // SAFETY: as above.
            let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
            // SAFETY: both are valid; the handler does nothing but store to an atomic.
            check(unsafe { libc::sigaction(signal, &action, &mut before) })
                .doing(|| "watch for Ctrl-C".into())?;
            watch.before.push(before);
        }
        Ok(watch)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        for (signal, before) in SIGNALS.iter().zip(&self.before) {
            // SAFETY: `before` is what the kernel gave us for this signal.
            unsafe { libc::sigaction(*signal, before, std::ptr::null_mut()) };
        }
    }
}

/// Ends the runs that are under way, as Ctrl-C does.
pub fn end_runs() {
    PENDING.store(true, Ordering::Relaxed);
}

pub fn is_pending() -> bool {
    PENDING.load(Ordering::Relaxed)
}

/// An interrupted run reports only that: Ctrl-C also ends the programs that it started, and their errors
/// say nothing else.
pub fn or_interrupted<T>(result: Result<T>) -> Result<T> {
    if is_pending() { Err(Error::Interrupted) } else { result }
}

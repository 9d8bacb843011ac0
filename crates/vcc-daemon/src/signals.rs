//! SIGHUP, SIGINT and SIGTERM.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::{Error, Result};

/// The request that a signal makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Reload,
    End,
}

static ENDING: AtomicBool = AtomicBool::new(false);

/// Whether the daemon was asked to end. Long operations poll this, because the signal itself may be
/// queued behind events of hundreds of devices.
pub(crate) fn is_ending() -> bool {
    ENDING.load(Ordering::Relaxed)
}

/// Calls `send` for each signal from now on, on a thread of its own, until it returns false.
pub(crate) fn listen(send: impl Fn(Asked) -> bool + Send + 'static) -> Result<()> {
    let failed = |e| Error::system("wait for signals", e);
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM]).map_err(failed)?;
    let forward = move || {
        for signal in signals.forever() {
            let asked = if signal == SIGHUP { Asked::Reload } else { Asked::End };
            ENDING.fetch_or(asked == Asked::End, Ordering::Relaxed);
            if !send(asked) {
                return;
            }
        }
    };
    thread::Builder::new().name("signals".into()).spawn(forward).map_err(failed)?;
    Ok(())
}

//! Signals become events.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::event::Event;
use crate::{Error, Result};

static ENDING: AtomicBool = AtomicBool::new(false);

/// Whether the daemon was told to end. What takes long looks here: the event may have to wait behind
/// hundreds of devices.
pub(crate) fn is_ending() -> bool {
    ENDING.load(Ordering::Relaxed)
}

pub(crate) fn listen(events: Sender<Event>) -> Result<()> {
    let failed = |e| Error::system("wait for signals", e);
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM]).map_err(failed)?;
    let forward = move || {
        for signal in signals.forever() {
            let event = if signal == SIGHUP { Event::Reload } else { Event::End };
            ENDING.fetch_or(matches!(event, Event::End), Ordering::Relaxed);
            if events.send(event).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("signals".into()).spawn(forward).map_err(failed)?;
    Ok(())
}

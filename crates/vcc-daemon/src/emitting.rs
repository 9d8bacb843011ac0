//! Sending duplicate ACKs and window updates to the guest of a port, on a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use vcc_port::{Emitter, Port};

use crate::{Error, Result, journal};

/// Maximum time to end the thread.
const LOOK: Duration = Duration::from_millis(100);

pub(crate) struct Emitting {
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Emitting {
    pub(crate) fn begin(port: &Port) -> Result<Self> {
        let mut emitter = port.emitter()?;
        let device = port.device().to_owned();
        let end = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&end);
        let serve = move || {
            if let Err(error) = serve(&mut emitter, &told) {
                journal::warning(&format!("{device}: sending to the guest ended: {error}"));
            }
        };
        let thread = thread::Builder::new().name("emitting".into()).spawn(serve);
        let thread =
            thread.map_err(|e| Error::system("start a thread that sends to a guest", e))?;
        Ok(Self { end, thread: Some(thread) })
    }

    /// False after a failure.
    pub(crate) fn goes_on(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }
}

fn serve(emitter: &mut Emitter, end: &AtomicBool) -> vcc_port::Result<()> {
    while !end.load(Ordering::Relaxed) {
        emitter.serve(LOOK)?;
    }
    Ok(())
}

impl Drop for Emitting {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        // A panic was reported when it happened, and affects no other port.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

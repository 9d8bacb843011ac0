//! Reading the ring buffers of the datapath.

use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};
use vcc_engine::sys;

use crate::clock::monotonic;
use crate::plain::from_bytes;
use crate::{Error, Result};

/// One of a port's ring buffers. There must be one reader only, because the kernel keeps one
/// position.
pub(crate) struct Ring {
    ring: RingBuffer<'static>,
    received: Receiver<sys::vcc_event>,
    /// Older events are ignored.
    since_us: u64,
}

impl Ring {
    /// Starts with the next event: unread older events are discarded.
    pub(crate) fn open(map: &MapHandle) -> Result<Self> {
        let failed = |e| Error::system("open the ring of a port's events", e);
        let (to, received) = mpsc::channel();
        let mut builder = RingBufferBuilder::new();
        builder
            .add(map, move |bytes| {
                // The receiver cannot be closed: it is in the same value.
                if let Some(event) = from_bytes(bytes) {
                    let _ = to.send(event);
                }
                0
            })
            .map_err(failed)?;
        let ring = Self { ring: builder.build().map_err(failed)?, received, since_us: now_us() };
        ring.ring.consume().map_err(failed)?;
        while ring.received.try_recv().is_ok() {}
        Ok(ring)
    }

    /// The next event; None after a signal or `timeout`.
    pub(crate) fn next(&self, timeout: Duration) -> Result<Option<sys::vcc_event>> {
        if let Some(event) = self.received_already() {
            return Ok(Some(event));
        }
        match self.ring.poll(timeout) {
            Err(e) if e.kind() != libbpf_rs::ErrorKind::Interrupted => {
                Err(Error::system("read a port's events", e))
            }
            _ => Ok(self.received_already()),
        }
    }

    fn received_already(&self) -> Option<sys::vcc_event> {
        self.received.try_iter().find(|event| event.now_us >= self.since_us)
    }
}

pub(crate) fn now_us() -> u64 {
    monotonic().as_micros() as u64
}

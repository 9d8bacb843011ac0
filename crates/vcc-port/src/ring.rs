//! Reading the ring buffers of the datapath.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, RingBuffer, RingBufferBuilder, libbpf_sys};
use vcc_engine::sys;

use crate::clock::monotonic;
use crate::plain::from_bytes;
use crate::{Error, Result, maps};

/// A ring buffer into which the datapath writes a port's events, until it is dropped. Its reader makes
/// it: without one, no port takes memory for it.
pub(crate) struct Ring {
    ring: RingBuffer<'static>,
    received: Receiver<sys::vcc_event>,
    /// The map of all ports' rings, in which this one has the port's index.
    rings: MapHandle,
    port: u32,
    id: u32,
}

impl Ring {
    /// Replaces a ring of a process that was killed.
    pub(crate) fn open(rings: &MapHandle, port: u32, bytes: u32) -> Result<Self> {
        const DOING: &str = "make a ring of a port's events";
        let failed = |e| Error::system(DOING, e);
        let map = create("vcc_ring", bytes).map_err(failed)?;
        let (to, received) = mpsc::channel();
        let mut builder = RingBufferBuilder::new();
        builder
            .add(&map, move |bytes| {
                // The receiver cannot be closed: it is in the same value.
                if let Some(event) = from_bytes(bytes) {
                    let _ = to.send(event);
                }
                0
            })
            .map_err(failed)?;
        let ring = builder.build().map_err(failed)?;
        let fd = map.as_fd().as_raw_fd().to_ne_bytes();
        rings.update(&port.to_ne_bytes(), &fd, MapFlags::ANY).map_err(failed)?;
        let id = map.info().map_err(failed)?.info.id;
        Ok(Self { ring, received, rings: maps::keep(rings)?, port, id })
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

    /// Readable when an event has come.
    pub(crate) fn poll_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: libbpf closes it with the ring.
        unsafe { BorrowedFd::borrow_raw(self.ring.epoll_fd()) }
    }

    fn received_already(&self) -> Option<sys::vcc_event> {
        self.received.try_iter().next()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // If the port was detached meanwhile, another one with its index may have a ring there.
        if found_id(&self.rings, self.port) == Some(self.id) {
            // Without a reader, it is full at some time and takes no more events.
            let _ = remove(&self.rings, self.port);
        }
    }
}

/// A ring buffer of this size: a power of two, and a multiple of the size of a page.
pub(crate) fn create(name: &str, bytes: u32) -> libbpf_rs::Result<MapHandle> {
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
        ..Default::default()
    };
    MapHandle::create(MapType::RingBuf, Some(name), 0, 0, bytes, &options)
}

/// The ID of a port's ring.
fn found_id(rings: &MapHandle, port: u32) -> Option<u32> {
    let id = rings.lookup(&port.to_ne_bytes(), MapFlags::ANY).ok()??;
    from_bytes(&id)
}

/// Removes a port's ring, if there is one.
pub(crate) fn remove(rings: &MapHandle, port: u32) -> Result<()> {
    match rings.delete(&port.to_ne_bytes()) {
        Err(e) if e.kind() != libbpf_rs::ErrorKind::NotFound => {
            Err(Error::system("remove a ring of a port's events", e))
        }
        _ => Ok(()),
    }
}

pub(crate) fn now_us() -> u64 {
    monotonic().as_micros() as u64
}

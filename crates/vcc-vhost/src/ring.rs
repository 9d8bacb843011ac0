//! A ring's set-up: where it lies, and the descriptors for kicks and interrupts.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering;

use vcc_net::vhost_user::{End, Message};
use virtio_queue::{Queue, QueueT};

use crate::dirty::GuestMemory;
use crate::memory::Memory;
use crate::rings::RING_MAX;

pub(crate) struct Ring {
    pub queue: Queue,
    /// The guest's available index before the turn's work.
    pub seen: u16,
    kick: Option<OwnedFd>,
    call: Option<File>,
    is_enabled: bool,
}

impl Ring {
    pub(crate) fn new() -> Self {
        let queue = Queue::new(RING_MAX).expect("a power of two");
        Ring { queue, seen: 0, kick: None, call: None, is_enabled: false }
    }

    /// Does the guest use it?
    pub(crate) fn is_up(&self) -> bool {
        self.is_enabled && self.is_started()
    }

    /// Has it been set up? One that is not enabled as well carries nothing.
    pub(crate) fn is_started(&self) -> bool {
        self.queue.ready()
    }

    /// Notes how much the guest has queued by now. A ring that cannot be read is stopped by the work
    /// on it.
    pub(crate) fn note_queued(&mut self, memory: &GuestMemory) {
        if !self.is_started() {
            return;
        }
        if let Ok(seen) = self.queue.avail_idx(memory, Ordering::Acquire) {
            self.seen = seen.0;
        }
    }

    pub(crate) fn enable(&mut self, is_enabled: bool) {
        self.is_enabled = is_enabled;
    }

    pub(crate) fn set_event_idx(&mut self, event_idx: bool) {
        self.queue.set_event_idx(event_idx);
    }

    /// VHOST_USER_SET_VRING_NUM.
    pub(crate) fn set_size(&mut self, number: u32, entries: u32) -> Result<(), End> {
        let size = u16::try_from(entries).ok();
        size.and_then(|size| self.queue.try_set_size(size).ok())
            .ok_or_else(|| End::refused(format!("ring {number} of {entries} entries")))
    }

    /// VHOST_USER_SET_VRING_ADDR: index and flags, then descriptors, used and available ring.
    pub(crate) fn set_addresses(&mut self, message: &Message, memory: &Memory) -> Result<(), End> {
        let number = message.word(0)?;
        let at = |place: usize| {
            let front_end_at = message.long(place)?;
            let outside = || format!("ring {number} at {front_end_at:#x}, in no memory");
            memory.guest_at(front_end_at).ok_or_else(|| End::refused(outside()))
        };
        let (descriptors, used, available) = (at(1)?, at(2)?, at(3)?);
        let queue = &mut self.queue;
        queue
            .try_set_desc_table_address(descriptors)
            .and_then(|()| queue.try_set_used_ring_address(used))
            .and_then(|()| queue.try_set_avail_ring_address(available))
            .map_err(|error| End::refused(format!("ring {number}: {error}")))
    }

    /// VHOST_USER_SET_VRING_BASE.
    pub(crate) fn set_base(&mut self, next_avail: u32) {
        self.queue.set_next_avail(next_avail as u16);
    }

    /// VHOST_USER_SET_VRING_KICK starts the ring. The guest's used index shows where a process
    /// before this one has ended, perhaps before it called: the guest is called once, even if it
    /// wants no call.
    pub(crate) fn start(
        &mut self,
        number: usize,
        kick: OwnedFd,
        memory: &GuestMemory,
        event_idx: bool,
    ) -> Result<(), End> {
        let kick = only_eventfd(kick, || format!("kicks of ring {number}"))?;
        let used = self.queue.used_idx(memory, Ordering::Acquire);
        let used = used.map_err(|error| End::refused(format!("ring {number}: {error}")))?;
        self.queue.set_next_used(used.0);
        self.queue.set_event_idx(event_idx);
        self.queue.set_ready(true);
        self.kick = Some(kick);
        self.call();
        Ok(())
    }

    /// VHOST_USER_GET_VRING_BASE stops it. Returns where it continues.
    pub(crate) fn stop(&mut self) -> u32 {
        self.queue.set_ready(false);
        (self.kick, self.call) = (None, None);
        self.queue.next_avail().into()
    }

    /// VHOST_USER_SET_VRING_CALL; None if the guest polls.
    pub(crate) fn set_call(&mut self, number: u32, call: Option<OwnedFd>) -> Result<(), End> {
        let what = || format!("interrupts of ring {number}");
        self.call = call.map(|call| only_eventfd(call, what)).transpose()?.map(File::from);
        if self.queue.ready() {
            self.call();
        }
        Ok(())
    }

    pub(crate) fn kick_fd(&self) -> Option<RawFd> {
        self.kick.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Interrupts the guest. If its descriptor does not take that, it is the guest's loss.
    pub(crate) fn call(&self) {
        if let Some(mut call) = self.call.as_ref().filter(|call| takes_more(call.as_raw_fd())) {
            let _ = call.write(&1_u64.to_ne_bytes());
        }
    }
}

/// Only an eventfd wakes us once for each write without being read, and is written to without waiting
/// unless it is full. The front end has it too, and could make it one that waits.
fn only_eventfd(fd: OwnedFd, what: impl FnOnce() -> String) -> Result<OwnedFd, End> {
    let link = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()));
    match link {
        Ok(link) if link.as_os_str() == "anon_inode:[eventfd]" => Ok(fd),
        _ => Err(End::refused(format!("{} by no eventfd", what()))),
    }
}

/// Can an eventfd be written to without waiting?
fn takes_more(fd: RawFd) -> bool {
    let mut poll = libc::pollfd { fd, events: libc::POLLOUT, revents: 0 };
    // SAFETY: the call reads and writes one pollfd, which `poll` is.
    unsafe { libc::poll(&mut poll, 1, 0) == 1 && poll.revents & libc::POLLOUT != 0 }
}

//! A guest with its front end, by hand, so that it can say anything, for tests.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemoryMmap};
use vmm_sys_util::eventfd::{EFD_NONBLOCK, EventFd};
use vmm_sys_util::sock_ctrl_msg::ScmSocket;

/// Long enough for any machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub const MEMORY_BYTES: usize = 4 << 20;
/// Where the front end claims to have the guest's memory.
pub const FRONT_END_AT: u64 = 0x7f00_0000_0000;
const RING_BYTES: u64 = 0x1_0000;
pub const AVAILABLE_AT: u64 = 0x4000;
pub const USED_AT: u64 = 0x8000;
/// The guest's buffers are behind its rings.
pub const BUFFERS_AT: u64 = 0x10_0000;

pub const RING_ENTRIES: u16 = 256;
pub const NEXT: u16 = 1;
pub const WRITE: u16 = 2;
pub const INDIRECT: u16 = 4;

/// VIRTIO_NET_F_*, as in the specification.
pub const CSUM: u64 = 1 << 0;
pub const GUEST_CSUM: u64 = 1 << 1;
pub const GUEST_TSO4: u64 = 1 << 7;
pub const HOST_TSO4: u64 = 1 << 11;
pub const MERGEABLE: u64 = 1 << 15;
pub const INDIRECT_DESC: u64 = 1 << 28;
pub const EVENT_IDX: u64 = 1 << 29;
pub const PROTOCOL_FEATURES: u64 = 1 << 30;
pub const VERSION_1: u64 = 1 << 32;
pub const USUAL: u64 = CSUM
    | GUEST_CSUM
    | GUEST_TSO4
    | HOST_TSO4
    | MERGEABLE
    | INDIRECT_DESC
    | PROTOCOL_FEATURES
    | VERSION_1;

/// VHOST_F_LOG_ALL.
pub const LOG_ALL: u64 = 1 << 26;
/// VHOST_USER_PROTOCOL_F_*.
pub const MQ: u64 = 1 << 0;
pub const LOG_SHMFD: u64 = 1 << 1;
pub const RARP: u64 = 1 << 2;
pub const REPLY_ACK: u64 = 1 << 3;
pub const DEVICE_STATE: u64 = 1 << 19;
/// VHOST_TRANSFER_STATE_DIRECTION_*.
pub const SAVE: u32 = 0;
pub const LOAD: u32 = 1;

pub const RECEIVE: usize = 0;
pub const SEND: usize = 1;

/// A guest's memory, which outlives its card's process.
pub struct Guest {
    file: File,
    pub memory: GuestMemoryMmap,
    rings: Vec<Side>,
}

/// Memory that can be shared.
pub fn memory_file(bytes: u64) -> File {
    // SAFETY: the name ends with a zero byte, and the descriptor is new.
    let file = unsafe {
        let fd = libc::memfd_create(c"memory".as_ptr(), libc::MFD_CLOEXEC);
        assert!(fd >= 0, "a memfd");
        File::from_raw_fd(fd)
    };
    file.set_len(bytes).expect("memory");
    file
}

/// A pipe: its end to read, and that to write.
pub fn pipe() -> (File, File) {
    let mut ends = [-1; 2];
    // SAFETY: the call writes two descriptors, which are new.
    unsafe {
        assert_eq!(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC), 0, "a pipe");
        (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1]))
    }
}

/// The driver's side of a ring.
struct Side {
    kick: EventFd,
    call: EventFd,
    available: u16,
}

impl Guest {
    pub fn new(rings: usize) -> Self {
        let file = memory_file(MEMORY_BYTES as u64);
        let offset = FileOffset::new(file.try_clone().expect("a duplicate"), 0);
        let range = (GuestAddress(0), MEMORY_BYTES, Some(offset));
        let memory = GuestMemoryMmap::from_ranges_with_files([range]).expect("mapped");
        let event = || EventFd::new(EFD_NONBLOCK).expect("an eventfd");
        let side = |_| Side { kick: event(), call: event(), available: 0 };
        Guest { file, memory, rings: (0..rings).map(side).collect() }
    }

    /// Its memory, as it is shared.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The descriptors for a ring's kicks and interrupts.
    pub fn events_of(&self, ring: usize) -> [RawFd; 2] {
        let Side { kick, call, .. } = &self.rings[ring];
        [kick.as_raw_fd(), call.as_raw_fd()]
    }

    /// Writes a descriptor.
    pub fn describe(&self, ring: usize, index: u16, at: u64, bytes: u32, flags: u16, next: u16) {
        let descriptor = self.start(ring) + 16 * u64::from(index);
        self.write_descriptor(descriptor, at, bytes, flags, next);
    }

    pub fn write_descriptor(&self, place: u64, at: u64, bytes: u32, flags: u16, next: u16) {
        let words = u64::from(bytes) | u64::from(flags) << 32 | u64::from(next) << 48;
        self.write(place, &[at.to_le_bytes(), words.to_le_bytes()].concat());
    }

    /// Makes the chain that begins at this descriptor available.
    pub fn offer(&mut self, ring: usize, head: u16) {
        let slot = self.rings[ring].available % RING_ENTRIES;
        let at = self.start(ring) + AVAILABLE_AT;
        self.write(at + 4 + 2 * u64::from(slot), &head.to_le_bytes());
        self.skip(ring, 1);
    }

    /// Moves the available index on.
    pub fn skip(&mut self, ring: usize, entries: u16) {
        let side = &mut self.rings[ring];
        side.available = side.available.wrapping_add(entries);
        let available = side.available;
        self.write(self.start(ring) + AVAILABLE_AT + 2, &available.to_le_bytes());
    }

    pub fn kick(&self, ring: usize) {
        self.rings[ring].kick.write(1).expect("a kick");
    }

    /// Fills the descriptor for interrupts, and lets whoever reads or writes these two wait.
    pub fn make_descriptors_wait(&self, ring: usize) {
        let Side { kick, call, .. } = &self.rings[ring];
        let _ = call.read();
        call.write(u64::MAX - 1).expect("an eventfd that is full");
        for event in [kick, call] {
            // SAFETY: the call takes no pointers, and the descriptor is open.
            assert_eq!(unsafe { libc::fcntl(event.as_raw_fd(), libc::F_SETFL, 0) }, 0);
        }
    }

    /// Takes a kick away from the card, if there is one that it has not read.
    pub fn take_kicks(&self, ring: usize) {
        let fd = self.rings[ring].kick.as_raw_fd();
        let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: the call reads and writes one pollfd, which `poll` is.
        if unsafe { libc::poll(&mut poll, 1, 0) } == 1 {
            self.rings[ring].kick.read().expect("a count");
        }
    }

    /// Has the card interrupted the guest since the last question?
    pub fn was_called(&self, ring: usize) -> bool {
        self.rings[ring].call.read().is_ok()
    }

    /// Sends a frame behind its header, in one descriptor of its own.
    pub fn send(&mut self, header: [u8; 12], frame: &[u8]) {
        self.send_on(SEND, header, frame);
    }

    pub fn send_on(&mut self, ring: usize, header: [u8; 12], frame: &[u8]) {
        self.queue(ring, header, frame);
        self.kick(ring);
    }

    fn queue(&mut self, ring: usize, header: [u8; 12], frame: &[u8]) {
        let index = self.rings[ring].available % RING_ENTRIES;
        let at = BUFFERS_AT + 0x1000 * u64::from(index);
        let bytes = [&header[..], frame].concat();
        assert!(bytes.len() <= 0x1000, "a frame for one buffer");
        self.write(at, &bytes);
        self.describe(ring, index, at, bytes.len() as u32, 0, 0);
        self.offer(ring, index);
    }

    /// Sends a frame, and kicks only if the card wants it (virtio 1.2, 2.7.10).
    pub fn send_quietly(&mut self, header: [u8; 12], frame: &[u8]) {
        let before = self.rings[SEND].available;
        while before.wrapping_sub(self.used(SEND)) >= RING_ENTRIES {
            std::thread::yield_now();
        }
        self.queue(SEND, header, frame);
        self.kick_if_wanted(SEND, before);
    }

    /// Kicks if what was offered since `before` reaches the entry for which the card wants it.
    fn kick_if_wanted(&self, ring: usize, before: u16) {
        fence(Ordering::SeqCst);
        let wanted = self.read_u16(self.start(ring) + USED_AT + 4 + 8 * u64::from(RING_ENTRIES));
        let now = self.rings[ring].available;
        if now.wrapping_sub(wanted).wrapping_sub(1) < now.wrapping_sub(before) {
            self.kick(ring);
        }
    }

    /// Offers receive buffers of this size, whose descriptors have the buffers' numbers.
    pub fn offer_buffers(&mut self, ring: usize, count: u16, bytes: u32) {
        self.add_buffers(ring, count, bytes);
        self.kick(ring);
    }

    /// Likewise, and kicks only if the card wants it.
    pub fn offer_buffers_quietly(&mut self, ring: usize, count: u16, bytes: u32) {
        let before = self.rings[ring].available;
        self.add_buffers(ring, count, bytes);
        self.kick_if_wanted(ring, before);
    }

    fn add_buffers(&mut self, ring: usize, count: u16, bytes: u32) {
        for _ in 0..count {
            let index = self.rings[ring].available % RING_ENTRIES;
            let at = BUFFERS_AT + 0x10_0000 + u64::from(index) * 0x1000;
            self.describe(ring, index, at, bytes, WRITE, 0);
            self.offer(ring, index);
        }
    }

    pub fn used(&self, ring: usize) -> u16 {
        self.read_u16(self.start(ring) + USED_AT + 2)
    }

    /// A used entry of the card: the descriptor, and the bytes that it has written.
    pub fn used_entry(&self, ring: usize, entry: u16) -> (u32, u32) {
        let at = self.start(ring) + USED_AT + 4 + 8 * u64::from(entry % RING_ENTRIES);
        let word = |at: u64| -> u32 { self.memory.read_obj(GuestAddress(at)).expect("in memory") };
        (word(at), word(at + 4))
    }

    /// The bytes of the receive buffers from this used entry on.
    pub fn received(&self, ring: usize, entry: u16, buffers: u16) -> Vec<u8> {
        let mut bytes = Vec::new();
        for entry in entry..entry + buffers {
            let (index, written) = self.used_entry(ring, entry);
            let mut part = vec![0; written as usize];
            let at = BUFFERS_AT + 0x10_0000 + u64::from(index) * 0x1000;
            self.memory.read_slice(&mut part, GuestAddress(at)).expect("in memory");
            bytes.extend(part);
        }
        bytes
    }

    pub fn write(&self, at: u64, bytes: &[u8]) {
        self.memory.write_slice(bytes, GuestAddress(at)).expect("in memory");
    }

    pub fn read_u16(&self, at: u64) -> u16 {
        self.memory.read_obj(GuestAddress(at)).expect("in memory")
    }

    pub fn start(&self, ring: usize) -> u64 {
        RING_BYTES * ring as u64
    }

    /// Forgets its rings, as a driver that begins anew.
    pub fn forget(&mut self) {
        self.write(0, &vec![0; self.rings.len() * RING_BYTES as usize]);
        self.rings.iter_mut().for_each(|side| side.available = 0);
    }
}

/// A front end's connection.
pub struct FrontEnd {
    stream: UnixStream,
}

impl AsRawFd for FrontEnd {
    fn as_raw_fd(&self) -> RawFd {
        self.stream.as_raw_fd()
    }
}

impl FrontEnd {
    pub fn connect(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).expect("a card that listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        FrontEnd { stream }
    }

    /// Neither waits for the card to read nor for its answers.
    pub fn without_waiting(self) -> Self {
        self.stream.set_nonblocking(true).expect("a socket");
        self
    }

    /// Takes what the card has answered by now.
    pub fn drain(&mut self) {
        while matches!(self.stream.read(&mut [0; 4096]), Ok(1..)) {}
    }

    /// Connects and sets everything up, as QEMU does; the rings continue at their used index.
    pub fn ready(guest: &Guest, socket: &Path, features: u64) -> Self {
        let mut front_end = FrontEnd::connect(socket);
        front_end.ask(3, &[], &[]);
        front_end.set_up(guest, features);
        front_end
    }

    pub fn set_up(&mut self, guest: &Guest, features: u64) {
        self.share(guest, features);
        for ring in 0..guest.rings.len() {
            self.start(guest, ring);
        }
    }

    pub fn share(&mut self, guest: &Guest, features: u64) {
        // Before the features, as QEMU does for a card with one pair of rings.
        self.ask(18, &words(&[0, 1]), &[]);
        self.ask(18, &words(&[1, 1]), &[]);
        self.ask(2, &features.to_ne_bytes(), &[]);
        let region = [1, 0, MEMORY_BYTES as u64, FRONT_END_AT, 0];
        self.ask(5, &longs(&region), &[guest.file.as_raw_fd()]);
    }

    pub fn start(&mut self, guest: &Guest, ring: usize) {
        self.begin(guest, ring);
        // All of it has been done when this is answered.
        self.features();
    }

    pub fn begin(&mut self, guest: &Guest, ring: usize) {
        let number = ring as u32;
        let at = FRONT_END_AT + guest.start(ring);
        self.ask(8, &words(&[number, RING_ENTRIES.into()]), &[]);
        self.ask(10, &words(&[number, guest.used(ring).into()]), &[]);
        let addresses = [number.into(), at, at + USED_AT, at + AVAILABLE_AT, 0];
        self.ask(9, &longs(&addresses), &[]);
        let side = &guest.rings[ring];
        self.ask(13, &longs(&[number.into()]), &[side.call.as_raw_fd()]);
        self.ask(12, &longs(&[number.into()]), &[side.kick.as_raw_fd()]);
        self.ask(18, &words(&[number, 1]), &[]);
    }

    /// VHOST_USER_GET_FEATURES.
    pub fn features(&mut self) -> u64 {
        self.ask(1, &[], &[]);
        u64::from_ne_bytes(self.answer(8).try_into().expect("a long"))
    }

    /// Returns when all that has come so far has been worked on: a turn comes after 64 messages at
    /// most.
    pub fn settle(&mut self) {
        for _ in 0..=64 {
            self.features();
        }
    }

    /// As QEMU does that moves a card's state: VHOST_USER_SET_PROTOCOL_FEATURES, with LOG_SHMFD and
    /// DEVICE_STATE.
    pub fn moves(&mut self) {
        self.ask(16, &(MQ | LOG_SHMFD | RARP | REPLY_ACK | DEVICE_STATE).to_ne_bytes(), &[]);
    }

    /// VHOST_USER_SET_DEVICE_STATE_FD: the card writes its state to a pipe, or reads it there. Returns
    /// the answer.
    pub fn pass_state(&mut self, direction: u32, pipe: RawFd) -> u64 {
        self.ask(42, &words(&[direction, 0]), &[pipe]);
        u64::from_ne_bytes(self.answer(8).try_into().expect("a long"))
    }

    /// VHOST_USER_CHECK_DEVICE_STATE.
    pub fn check_state(&mut self) -> u64 {
        self.ask(43, &[], &[]);
        u64::from_ne_bytes(self.answer(8).try_into().expect("a long"))
    }

    /// VHOST_USER_GET_VRING_BASE.
    pub fn stop(&mut self, ring: u32) -> u32 {
        self.ask(11, &words(&[ring, 0]), &[]);
        u32::from_ne_bytes(*self.answer(8).last_chunk().expect("a word"))
    }

    pub fn ask(&mut self, request: u32, payload: &[u8], fds: &[RawFd]) {
        self.ask_with(request, 1, payload, fds);
    }

    pub fn ask_with(&mut self, request: u32, flags: u32, payload: &[u8], fds: &[RawFd]) {
        let header = words(&[request, flags, payload.len() as u32]);
        let message = [header, payload.to_vec()].concat();
        // It fails if the card has ended the connection.
        let _ = self.stream.send_with_fds(&[&message[..]], fds);
    }

    pub fn write(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Sends bytes with its own end of the connection.
    pub fn write_with_itself(&mut self, bytes: &[u8]) {
        let _ = self.stream.send_with_fds(&[bytes], &[self.stream.as_raw_fd()]);
    }

    pub fn answer(&mut self, bytes: usize) -> Vec<u8> {
        let mut answer = vec![0; 12 + bytes];
        self.stream.read_exact(&mut answer).expect("an answer");
        answer.split_off(12)
    }

    /// Waits until the card has ended the connection.
    pub fn sees_its_end(mut self) -> bool {
        let mut byte = [0];
        loop {
            match self.stream.read(&mut byte) {
                Ok(0) => return true,
                Err(error) => return error.kind() != ErrorKind::WouldBlock,
                Ok(_) => {}
            }
        }
    }
}

pub fn words(values: &[u32]) -> Vec<u8> {
    values.iter().copied().flat_map(u32::to_ne_bytes).collect()
}

pub fn longs(values: &[u64]) -> Vec<u8> {
    values.iter().copied().flat_map(u64::to_ne_bytes).collect()
}

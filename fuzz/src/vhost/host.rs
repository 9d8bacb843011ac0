//! The host's side: the card, with a wire in memory.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fs, io};

use tempfile::TempDir;
use vcc_domain::{BufferSpec, Port};
use vcc_engine::{BufferPolicy, Params};
use vcc_vhost::testing::*;
use vcc_vhost::{Event, HEADER_BYTES, Offload, Server, Wire};

const MAX_FLOWS: usize = 3;
/// Turns that any number of frames takes which a guest has left behind.
const MOST_TURNS: usize = 1000;
/// Ethernet's header, and a super-segment with it and a tag.
const FRAME_BYTES: std::ops::RangeInclusive<usize> = 14..=14 + 4 + 0xffff;
const MOST_LINE_BYTES: usize = 400;
/// A header without offloads, and as the guest gets it.
const PLAIN: [u8; HEADER_BYTES] = [0; HEADER_BYTES];
const IN_ONE_BUFFER: [u8; HEADER_BYTES] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0];

/// Descriptors are counted, so one runs at a time.
static ALONE: Mutex<()> = Mutex::new(());

#[derive(Default)]
struct Frames {
    /// With their headers, as all here.
    arriving: VecDeque<Vec<u8>>,
    sent: Vec<Vec<u8>>,
    is_down: bool,
}

#[derive(Clone, Default)]
struct Cable(Arc<Mutex<Frames>>);

impl Cable {
    fn frames(&self) -> MutexGuard<'_, Frames> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A cable's end with a descriptor, by which a card learns that frames wait. Here it looks anyway.
struct End {
    cable: Cable,
    fd: fs::File,
}

impl AsRawFd for End {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl Wire for End {
    fn receive(&mut self, frame: &mut [u8]) -> io::Result<usize> {
        let arrived = self.cable.frames().arriving.pop_front();
        let arrived = arrived.ok_or(io::ErrorKind::WouldBlock)?;
        frame[..arrived.len()].copy_from_slice(&arrived);
        Ok(arrived.len())
    }

    fn send(&mut self, header: &[u8; HEADER_BYTES], frame: &[u8]) -> io::Result<()> {
        let mut frames = self.cable.frames();
        if frames.is_down {
            return Err(io::ErrorKind::NetworkDown.into());
        }
        assert_makes_sense(header, frame);
        frames.sent.push([&header[..], frame].concat());
        Ok(())
    }

    fn set_offload(&mut self, _offload: Offload) -> io::Result<()> {
        Ok(())
    }
}

/// What the kernel takes from a tap's owner, and a guest may say (virtio 1.2, 5.1.6.2).
fn assert_makes_sense(header: &[u8; HEADER_BYTES], frame: &[u8]) {
    assert!(FRAME_BYTES.contains(&frame.len()), "a frame of {} bytes", frame.len());
    let [flags, gso_type, ..] = *header;
    let word = |at: usize| usize::from(u16::from_le_bytes([header[at], header[at + 1]]));
    let needs_checksum = flags & 1 != 0;
    assert!(flags & 2 == 0, "a guest vouches for a checksum: {header:?}");
    if needs_checksum {
        assert!(word(6) + word(8) + 2 <= frame.len(), "a checksum beyond the frame: {header:?}");
    }
    match gso_type & 0x7f {
        0 => {}
        1 | 4 => assert!(needs_checksum && word(4) > 0, "a super-segment: {header:?}"),
        _ => panic!("nothing that was negotiated: {header:?}"),
    }
}

pub struct Host {
    server: Server,
    cable: Cable,
    socket: PathBuf,
    /// Of this process, without a guest.
    descriptors: usize,
    _directory: TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Host {
    pub fn new(params: Params) -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let directory = tempfile::tempdir().expect("a directory");
        let socket = directory.path().join("socket");
        let buffer = BufferSpec { size_bytes: 20_000, policy: BufferPolicy::Fair };
        let port = Port::with_buffer(params, MAX_FLOWS, buffer);
        let cable = Cable::default();
        let fd = eventfd();
        let wire = End { cable: cable.clone(), fd };
        let server = Server::new(&socket, port, Box::new(wire), Box::new(|event| check(&event)));
        let server = server.expect("a server");
        let descriptors = descriptors();
        Host { server, cable, socket, descriptors, _directory: directory, _alone: alone }
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// True if the card has more to do.
    pub fn turn(&mut self) -> bool {
        let more = self.server.turn().expect("the card keeps running");
        self.cable.frames().sent.clear();
        more
    }

    pub fn arrive(&mut self, header: [u8; HEADER_BYTES], frame: &[u8]) {
        self.cable.frames().arriving.push_back([&header[..], frame].concat());
    }

    pub fn set_down(&mut self, is_down: bool) {
        self.cable.frames().is_down = is_down;
    }

    /// The front end has gone: all that it gave is closed.
    pub fn forgets(&mut self) {
        self.set_down(false);
        let mut turns = 0;
        // One hears of its end, which may wait behind others that have connected and gone.
        while self.turn() || self.server.card().front_end() != 0 || turns < 2 {
            turns += 1;
            assert!(turns < MOST_TURNS, "the card does not come to rest");
        }
        assert_eq!(descriptors(), self.descriptors, "descriptors without a guest");
    }

    /// An honest guest connects, sends and receives.
    pub fn serves_another(&mut self) {
        let mut guest = Guest::new(2);
        let mut front_end = FrontEnd::connect(&self.socket).without_waiting();
        front_end.ask(3, &[], &[]);
        front_end.share(&guest, USUAL);
        for ring in [RECEIVE, SEND] {
            front_end.begin(&guest, ring);
        }
        guest.offer_buffers(RECEIVE, 8, 2048);
        self.cable.frames().arriving.clear();
        self.rest();
        let received_before = guest.used(RECEIVE);
        self.arrive(PLAIN, &other_frame(1));
        self.rest();
        let received = guest.used(RECEIVE);
        assert_eq!(received, received_before + 1, "frames for the guest");
        let expected = [&IN_ONE_BUFFER[..], &other_frame(1)].concat();
        assert_eq!(guest.received(RECEIVE, received_before, 1), expected);
        guest.send(PLAIN, &other_frame(2));
        self.server.turn().expect("the card keeps running");
        assert_eq!(guest.used(SEND), 1, "frames of the guest");
        let expected = [&IN_ONE_BUFFER[..], &other_frame(2)].concat();
        assert!(self.cable.frames().sent.contains(&expected), "it is not on the wire");
    }

    fn rest(&mut self) {
        for _ in 0..MOST_TURNS {
            if !self.turn() {
                return;
            }
        }
        panic!("the card does not come to rest");
    }
}

/// Of no protocol that a port looks at.
fn other_frame(number: u8) -> Vec<u8> {
    let mut frame = vec![number; 60];
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame
}

fn check(event: &Event) {
    let line = event.to_string();
    assert!(line.len() <= MOST_LINE_BYTES, "a long line: {line}");
    assert!(!line.contains('\n'), "two lines: {line}");
}

/// Open ones but for files, which other threads may have open.
fn descriptors() -> usize {
    let all = fs::read_dir("/proc/self/fd").expect("a list");
    let links = all.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let kinds = ["anon_inode:", "/memfd:", "socket:", "pipe:"];
    let is_one = |link: &PathBuf| kinds.iter().any(|kind| link.to_string_lossy().starts_with(kind));
    links.filter(is_one).count()
}

pub fn eventfd() -> fs::File {
    use std::os::fd::FromRawFd;
    // SAFETY: the call takes no pointers, and the descriptor is new and nobody else's.
    unsafe {
        let fd = libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC);
        assert!(fd >= 0, "an eventfd");
        fs::File::from_raw_fd(fd)
    }
}

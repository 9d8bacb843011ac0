//! Frames on both sides of a port: the test is the fabric on one, and listens on the other.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use vcc_frames::wire::*;
use vcc_frames::{Packet, checksum};
use vcc_testing::tun;

/// What has not come by then does not come. Nothing takes as long unless the test fails.
pub const PATIENCE: Duration = Duration::from_secs(20);
const FRAME_MAX_BYTES: usize = 1 << 16;
const ECHO_REQUEST: u8 = 8;
const ECHO_REPLY: u8 = 0;
const ICMP_BYTES: usize = 8;

/// A frame of a TCP segment, as it was seen.
#[derive(Clone, Debug)]
pub struct Seen {
    pub packet: Packet,
    pub frame: Vec<u8>,
}

impl Seen {
    fn read(frame: &[u8]) -> Option<Self> {
        Some(Seen { packet: Packet::read_ipv4(frame)?, frame: frame.to_vec() })
    }
}

/// Waits until a descriptor is ready for `events`, until `deadline` at most.
pub fn wait_for(fd: &impl AsRawFd, events: libc::c_short, deadline: Instant) -> bool {
    let left = deadline.saturating_duration_since(Instant::now());
    let mut polled = libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 };
    // SAFETY: one live pollfd.
    let ready = unsafe { libc::poll(&mut polled, 1, left.as_millis().max(1) as libc::c_int) };
    ready > 0
}

/// The fabric behind a port: a TAP device, from which whole frames come with complete checksums.
pub struct Fabric {
    tap: File,
    came: VecDeque<Seen>,
    /// The last ping that the guest has answered here.
    replied: u32,
}

impl Fabric {
    /// A device of the calling thread's namespace.
    pub fn create(device: &str) -> Self {
        let tap = tun::create(device, libc::IFF_TAP, libc::O_NONBLOCK);
        Self { tap, came: VecDeque::new(), replied: 0 }
    }

    pub fn send(&mut self, frame: &[u8]) {
        let written = self.tap.write(frame).expect("a frame is sent to the guest");
        assert_eq!(written, frame.len());
    }

    fn drain(&mut self) {
        let mut bytes = vec![0; FRAME_MAX_BYTES];
        loop {
            match self.tap.read(&mut bytes) {
                Ok(read) => self.take(&bytes[..read]),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(e) => panic!("read the fabric's device: {e}"),
            }
        }
    }

    fn take(&mut self, frame: &[u8]) {
        if let Some(seen) = Seen::read(frame) {
            assert!(checksum::verify(frame, &seen.packet.headers()), "checksums of {seen:?}");
            self.came.push_back(seen);
        } else if is_icmp(frame, ECHO_REPLY) {
            self.replied = read_u32(frame, ETHERNET_BYTES + IPV4_BYTES + 4);
        }
    }

    /// The next segment from the guest; None if none comes by then.
    pub fn next(&mut self, deadline: Instant) -> Option<Seen> {
        loop {
            self.drain();
            let next = self.came.pop_front();
            if next.is_some() || !wait_for(&self.tap, libc::POLLIN, deadline) {
                return next;
            }
        }
    }

    /// The next segment that has come.
    pub fn poll(&mut self) -> Option<Seen> {
        self.drain();
        self.came.pop_front()
    }

    /// Waits until the guest has answered a ping, and so has processed what came before it.
    pub fn fence(&mut self, like: &Packet) {
        let ping = self.ping(like);
        self.await_reply(ping);
    }

    /// Sends a ping, and returns its number.
    pub fn ping(&mut self, like: &Packet) -> u32 {
        static PINGS: AtomicU32 = AtomicU32::new(1);
        let number = PINGS.fetch_add(1, Ordering::Relaxed);
        self.send(&echo_request(like, number));
        number
    }

    /// Waits until the guest has answered a ping by this device.
    pub fn await_reply(&mut self, ping: u32) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.drain();
            if self.replied == ping {
                return;
            }
            assert!(wait_for(&self.tap, libc::POLLIN, deadline), "the guest answers no ping");
        }
    }
}

fn is_icmp(frame: &[u8], kind: u8) -> bool {
    frame.len() >= ETHERNET_BYTES + IPV4_BYTES + ICMP_BYTES
        && read_u16(frame, ETHERNET_BYTES - 2) == ETHERTYPE_IPV4
        && frame[ETHERNET_BYTES + 9] == PROTOCOL_ICMP
        && frame[ETHERNET_BYTES + IPV4_BYTES] == kind
}

/// A ping between the ends of a segment (RFC 792).
fn echo_request(like: &Packet, number: u32) -> Vec<u8> {
    let mut frame = like.frame();
    let at = like.headers();
    frame.truncate(at.l4);
    // The identifier and the sequence number are one number here.
    let mut icmp = vec![ECHO_REQUEST, 0, 0, 0, 0, 0, 0, 0];
    write_u32(&mut icmp, 4, number);
    let check = checksum::checksum(&icmp);
    write_u16(&mut icmp, 2, check);
    write_u16(&mut frame, at.l3 + 2, (IPV4_BYTES + ICMP_BYTES) as u16);
    frame[at.l3 + 9] = PROTOCOL_ICMP;
    checksum::fill_ipv4(&mut frame[at.l3..at.l4]);
    frame.extend(icmp);
    frame
}

/// What passes the guest's device, between its stack and the port.
pub struct Listener {
    socket: OwnedFd,
    from_guest: VecDeque<Seen>,
    to_guest: VecDeque<Seen>,
}

impl Listener {
    /// On a device of the calling thread's namespace.
    pub fn open(device: &str) -> io::Result<Self> {
        let all = (libc::ETH_P_ALL as u16).to_be();
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        let name = std::ffi::CString::new(device)?;
        // SAFETY: plain data, and zeros are a value of it.
        let mut place: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        place.sll_family = libc::AF_PACKET as u16;
        place.sll_protocol = all;
        // SAFETY: the name is a C string.
        place.sll_ifindex = unsafe { libc::if_nametoindex(name.as_ptr()) } as i32;
        // SAFETY: no pointers; the descriptor is nobody else's.
        let socket = unsafe {
            let raw = checked(libc::socket(libc::AF_PACKET, kind, i32::from(all)))?;
            OwnedFd::from_raw_fd(raw)
        };
        // SAFETY: the address lives, and has so many bytes.
        checked(unsafe {
            libc::bind(socket.as_raw_fd(), (&raw const place).cast(), size_of_val(&place) as u32)
        })?;
        Ok(Self { socket, from_guest: VecDeque::new(), to_guest: VecDeque::new() })
    }

    fn drain(&mut self) {
        let mut bytes = vec![0; FRAME_MAX_BYTES];
        loop {
            // SAFETY: plain data, and zeros are a value of it.
            let mut from: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
            let mut from_bytes = size_of_val(&from) as libc::socklen_t;
            // SAFETY: the buffers live, and have so many bytes.
            let read = unsafe {
                libc::recvfrom(
                    self.socket.as_raw_fd(),
                    bytes.as_mut_ptr().cast(),
                    bytes.len(),
                    0,
                    (&raw mut from).cast(),
                    &mut from_bytes,
                )
            };
            let Ok(read) = usize::try_from(read) else {
                let error = io::Error::last_os_error();
                assert_eq!(error.kind(), ErrorKind::WouldBlock, "listen to the guest: {error}");
                return;
            };
            let Some(seen) = Seen::read(&bytes[..read]) else { continue };
            match from.sll_pkttype == libc::PACKET_OUTGOING {
                true => self.from_guest.push_back(seen),
                false => self.to_guest.push_back(seen),
            }
        }
    }

    fn queue(&mut self, from_guest: bool) -> &mut VecDeque<Seen> {
        self.drain();
        if from_guest { &mut self.from_guest } else { &mut self.to_guest }
    }

    /// The next segment that has passed in this direction.
    pub fn poll(&mut self, from_guest: bool) -> Option<Seen> {
        self.queue(from_guest).pop_front()
    }

    /// Likewise, or the next that passes until then.
    pub fn next(&mut self, from_guest: bool, deadline: Instant) -> Option<Seen> {
        loop {
            let next = self.poll(from_guest);
            if next.is_some() || !wait_for(&self.socket, libc::POLLIN, deadline) {
                return next;
            }
        }
    }
}

pub fn checked(status: libc::c_int) -> io::Result<libc::c_int> {
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(status) }
}

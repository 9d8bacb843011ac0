//! One transfer between the guest and its peer, by the peer's clock.

use super::network::PEER;
use crate::base::error::{Error, Result};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::{Duration, Instant};
use vcc_qemu::Vm;
use vcc_traffic::acknowledged;

/// The guest's.
pub const LISTENING_PORT: u16 = 5002;
/// Likewise; it sends back what comes.
pub const ECHO_PORT: u16 = 5003;
const PEER_PORT: u16 = 5001;
/// A transfer that takes longer has failed.
const LIMIT: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_micros(100);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From the guest's SYN to the last byte at the peer.
    From,
    /// From the peer's SYN until its last byte is acknowledged.
    To,
    /// From the peer's SYN until it has been answered for the last time.
    Ask,
}

impl Direction {
    pub const TIMED: [Self; 2] = [Self::From, Self::To];

    pub fn name(self) -> &'static str {
        match self {
            Self::From => "from",
            Self::To => "to",
            Self::Ask => "ask",
        }
    }

    pub fn briefly(self) -> &'static str {
        match self {
            Self::From => "from the guest",
            Self::To => "to the guest",
            Self::Ask => "to the guest and back",
        }
    }

    pub fn phrase(self) -> &'static str {
        match self {
            Self::From => "from the guest, from its SYN to the last byte at the peer",
            Self::To => "to the guest, from connecting until the last byte is acknowledged",
            Self::Ask => "to the guest and back, so often on a connection",
        }
    }
}

/// How the transfers of an experiment are made.
#[derive(Clone, Copy)]
pub struct Terms {
    /// Where the peer reaches the guest.
    pub guest: SocketAddr,
    pub asks: u32,
    pub peer_window_bytes: Option<u32>,
}

/// Runs in the peer's namespace. Returns how long it took.
pub fn run(direction: Direction, bytes: u32, vm: &mut Vm, terms: &Terms) -> Result<f64> {
    let time = match direction {
        Direction::From => from_guest(bytes, vm, terms.peer_window_bytes),
        Direction::To => to_guest(bytes, terms.guest),
        Direction::Ask => ask_guest(bytes, terms.asks, terms.guest),
    };
    time.map(|time| time.as_secs_f64()).map_err(|error| {
        let problem = format!("a transfer of {bytes} bytes {} failed: {error}", direction.phrase());
        Error::Traffic { flow: 1, problem }
    })
}

fn from_guest(bytes: u32, vm: &mut Vm, window_bytes: Option<u32>) -> io::Result<Duration> {
    let listener = TcpListener::bind((PEER, PEER_PORT))?;
    if let Some(window_bytes) = window_bytes {
        clamp_window(&listener, window_bytes)?;
    }
    SockRef::from(&listener).set_read_timeout(Some(LIMIT))?;
    let frames = Socket::new(Domain::PACKET, Type::DGRAM, Some(all_ipv4()))?;
    frames.set_read_timeout(Some(LIMIT))?;
    // busybox's nc reads 1 KB at a time itself.
    vm.begin(&format!("nc {PEER} {PEER_PORT} -e cat /tmp/{bytes}"))?;
    let mut packet = [0; 64];
    while !{
        let read = (&frames).read(&mut packet)?;
        is_syn(&packet[..read])
    } {}
    let begun = Instant::now();
    drop(frames);
    let (mut stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(LIMIT))?;
    let mut left = bytes as usize;
    let mut room = vec![0; 1 << 18];
    while left > 0 {
        match stream.read(&mut room)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            read => left = left.saturating_sub(read),
        }
    }
    let time = begun.elapsed();
    drop(stream);
    vm.finish()?;
    Ok(time)
}

/// For the connections that it accepts.
fn clamp_window(listener: &TcpListener, window_bytes: u32) -> io::Result<()> {
    // SAFETY: the value is an int, of the size given.
    let status = unsafe {
        libc::setsockopt(
            listener.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_WINDOW_CLAMP,
            (&raw const window_bytes).cast(),
            size_of::<u32>() as libc::socklen_t,
        )
    };
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn all_ipv4() -> Protocol {
    Protocol::from(i32::from((libc::ETH_P_IP as u16).to_be()))
}

/// A SYN to the peer's port (RFC 791, 3.1; RFC 9293, 3.1).
fn is_syn(packet: &[u8]) -> bool {
    const TCP: u8 = 6;
    const SYN: u8 = 2;
    let header_bytes = packet.first().map_or(0, |first| usize::from(first & 15) * 4);
    let Some(tcp) = packet.get(header_bytes..header_bytes + 14) else { return false };
    packet.get(9) == Some(&TCP)
        && tcp[2..4] == PEER_PORT.to_be_bytes()
        && tcp[13] & (SYN | 16) == SYN
}

fn to_guest(bytes: u32, guest: SocketAddr) -> io::Result<Duration> {
    let data = vec![0; bytes as usize];
    let begun = Instant::now();
    let mut stream = TcpStream::connect_timeout(&guest, LIMIT)?;
    stream.set_write_timeout(Some(LIMIT))?;
    stream.write_all(&data)?;
    let socket = Socket::from(stream.try_clone()?);
    while !acknowledged::is_all(&socket).map_err(io::Error::other)? {
        if begun.elapsed() > LIMIT {
            return Err(ErrorKind::TimedOut.into());
        }
        thread::sleep(LOOK_AGAIN);
    }
    let time = begun.elapsed();
    // The guest has read all when it closes.
    stream.shutdown(Shutdown::Write)?;
    stream.set_read_timeout(Some(LIMIT))?;
    match stream.read(&mut [0])? {
        0 => Ok(time),
        _ => Err(io::Error::other("the guest sends something")),
    }
}

fn ask_guest(bytes: u32, asks: u32, guest: SocketAddr) -> io::Result<Duration> {
    let (asked, mut answer) = (vec![0; bytes as usize], vec![0; bytes as usize]);
    let begun = Instant::now();
    let guest = SocketAddr::new(guest.ip(), ECHO_PORT);
    let mut stream = TcpStream::connect_timeout(&guest, LIMIT)?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_write_timeout(Some(LIMIT))?;
    for _ in 0..asks {
        stream.write_all(&asked)?;
        stream.read_exact(&mut answer)?;
    }
    Ok(begun.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_syn_to_the_port_is_distinguished_from_the_rest() {
        let mut packet = [0; 40];
        (packet[0], packet[9], packet[33]) = (0x45, 6, 2);
        packet[22..24].copy_from_slice(&PEER_PORT.to_be_bytes());
        assert!(is_syn(&packet));
        assert!(!is_syn(&packet[..30]) && !is_syn(&[]));
        for (at, value) in [(9, 17), (23, 0), (33, 16), (33, 18)] {
            let mut other = packet;
            other[at] = value;
            assert!(!is_syn(&other), "{at}");
        }
    }
}

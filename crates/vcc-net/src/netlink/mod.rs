//! Questions to the kernel by rtnetlink(7) and sock_diag(7), in the calling thread's network namespace.

mod message;

use std::io;

use netlink_sys::protocols::{NETLINK_ROUTE, NETLINK_SOCK_DIAG};
use netlink_sys::{Socket, SocketAddr};

use message::HEADER_BYTES;
pub use message::{Attributes, Message, attribute, bytes, messages};

/// Asks for one object; returns its payload. `body` is the request's behind struct nlmsghdr.
pub fn get(kind: u16, body: &[u8]) -> io::Result<Vec<u8>> {
    ask_once(kind, 0, body)?.ok_or(io::ErrorKind::NotFound.into())
}

/// Asks for all objects of a kind; returns their payloads.
pub fn dump(kind: u16, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    dump_by(open, kind, body)
}

/// Asks for those objects of a kind that the body's attributes describe.
pub fn dump_some(kind: u16, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    // Without this the kernel does not look at attributes of a request for all objects.
    let strict = || {
        let socket = open()?;
        socket.set_netlink_get_strict_chk(true)?;
        Ok(socket)
    };
    dump_by(strict, kind, body)
}

/// Asks for all sockets that the body, a request of sock_diag(7), describes; returns their payloads.
pub fn dump_sockets(body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    /// SOCK_DIAG_BY_FAMILY.
    const BY_FAMILY: u16 = 20;
    dump_by(|| open_of(NETLINK_SOCK_DIAG), BY_FAMILY, body)
}

/// Creates an object, which must not be there; returns when the kernel has.
pub fn create(kind: u16, body: &[u8]) -> io::Result<()> {
    ask_once(kind, libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL, body).map(drop)
}

/// A question with one answer: an object's payload, or None for an acknowledgement.
fn ask_once(kind: u16, flags: libc::c_int, body: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let socket = open()?;
    ask(&socket, kind, flags, body)?;
    let (datagram, _) = socket.recv_from_full()?;
    let answer = messages(&datagram).next().ok_or(io::ErrorKind::InvalidData)?;
    match answer_of(&answer)? {
        Answer::Object => Ok(Some(answer.payload.to_vec())),
        Answer::Done => Ok(None),
    }
}

fn dump_by(open: fn() -> io::Result<Socket>, kind: u16, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    const TRIES: usize = 10;
    'again: for _ in 0..TRIES {
        let socket = open()?;
        ask(&socket, kind, libc::NLM_F_DUMP, body)?;
        let mut objects = Vec::new();
        let mut torn = false;
        loop {
            let (datagram, _) = socket.recv_from_full()?;
            for message in messages(&datagram) {
                torn |= message.was_interrupted();
                match answer_of(&message)? {
                    Answer::Done if torn => continue 'again,
                    Answer::Done => return Ok(objects),
                    Answer::Object => objects.push(message.payload.to_vec()),
                }
            }
        }
    }
    Err(io::Error::other(format!("it changed during each of {TRIES} attempts")))
}

/// A socket of rtnetlink with an address of its own.
pub fn open() -> io::Result<Socket> {
    open_of(NETLINK_ROUTE)
}

fn open_of(protocol: isize) -> io::Result<Socket> {
    let mut socket = Socket::new(protocol)?;
    socket.bind_auto()?;
    Ok(socket)
}

fn ask(socket: &Socket, kind: u16, flags: libc::c_int, body: &[u8]) -> io::Result<()> {
    let mut request = Vec::with_capacity(HEADER_BYTES + body.len());
    request.extend(((HEADER_BYTES + body.len()) as u32).to_ne_bytes());
    request.extend(kind.to_ne_bytes());
    request.extend(((libc::NLM_F_REQUEST | flags) as u16).to_ne_bytes());
    // Sequence number and port: each question has a socket of its own.
    request.extend([0; 8]);
    request.extend(body);
    socket.send_to(&request, &SocketAddr::new(0, 0), 0)?;
    Ok(())
}

enum Answer {
    Object,
    Done,
}

fn answer_of(message: &Message<'_>) -> io::Result<Answer> {
    match libc::c_int::from(message.kind) {
        libc::NLMSG_DONE => Ok(Answer::Done),
        libc::NLMSG_ERROR => message.error().map_or(Ok(Answer::Done), Err),
        _ => Ok(Answer::Object),
    }
}

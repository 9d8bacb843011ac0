//! The guest's application: socket calls, none of which blocks.

use std::io::{self, ErrorKind};
use std::mem::size_of_val;
use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::thread;
use std::time::{Duration, Instant};

use vcc_traffic::TcpInfo;

use crate::bed::CHILDREN;
use crate::wire::{PATIENCE, checked, wait_for};

const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// The options by name, with their level.
const OPTIONS: [(&str, libc::c_int, libc::c_int); 16] = [
    ("SO_KEEPALIVE", libc::SOL_SOCKET, libc::SO_KEEPALIVE),
    ("SO_RCVBUF", libc::SOL_SOCKET, libc::SO_RCVBUF),
    ("SO_SNDBUF", libc::SOL_SOCKET, libc::SO_SNDBUF),
    ("SO_OOBINLINE", libc::SOL_SOCKET, libc::SO_OOBINLINE),
    ("TCP_CORK", libc::IPPROTO_TCP, libc::TCP_CORK),
    ("TCP_DEFER_ACCEPT", libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT),
    ("TCP_FASTOPEN", libc::IPPROTO_TCP, libc::TCP_FASTOPEN),
    ("TCP_KEEPCNT", libc::IPPROTO_TCP, libc::TCP_KEEPCNT),
    ("TCP_KEEPIDLE", libc::IPPROTO_TCP, libc::TCP_KEEPIDLE),
    ("TCP_KEEPINTVL", libc::IPPROTO_TCP, libc::TCP_KEEPINTVL),
    ("TCP_LINGER2", libc::IPPROTO_TCP, libc::TCP_LINGER2),
    ("TCP_MAXSEG", libc::IPPROTO_TCP, libc::TCP_MAXSEG),
    ("TCP_NODELAY", libc::IPPROTO_TCP, libc::TCP_NODELAY),
    ("TCP_SYNCNT", libc::IPPROTO_TCP, libc::TCP_SYNCNT),
    ("TCP_USER_TIMEOUT", libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT),
    ("TCP_WINDOW_CLAMP", libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP),
];

const ERRORS: [(&str, i32); 7] = [
    ("ECONNREFUSED", libc::ECONNREFUSED),
    ("ECONNRESET", libc::ECONNRESET),
    ("EHOSTUNREACH", libc::EHOSTUNREACH),
    ("EPIPE", libc::EPIPE),
    ("ETIMEDOUT", libc::ETIMEDOUT),
    ("EPROTO", libc::EPROTO),
    ("ENETUNREACH", libc::ENETUNREACH),
];

/// States of TCP_INFO, from 1 (linux/tcp_states.h).
const STATES: [&str; 11] = [
    "ESTABLISHED",
    "SYN_SENT",
    "SYN_RECV",
    "FIN_WAIT1",
    "FIN_WAIT2",
    "TIME_WAIT",
    "CLOSE",
    "CLOSE_WAIT",
    "LAST_ACK",
    "LISTEN",
    "CLOSING",
];

pub type Outcome = Result<(), String>;

/// The byte at this offset of a stream.
pub fn pattern(offset: i64, bytes: usize) -> Vec<u8> {
    (offset..).take(bytes).map(|at| (at.rem_euclid(251)) as u8).collect()
}

/// A socket, and the one that it was accepted from.
#[derive(Default)]
pub struct Application {
    socket: Option<OwnedFd>,
    listener: Option<OwnedFd>,
    sent_bytes: i64,
    read_bytes: i64,
}

fn failed(what: &str) -> String {
    format!("{what}: {}", io::Error::last_os_error())
}

fn address(of: SocketAddrV4) -> libc::sockaddr_in {
    // SAFETY: plain data, and zeros are a value of it.
    let mut address: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    address.sin_family = libc::AF_INET as u16;
    address.sin_port = of.port().to_be();
    address.sin_addr.s_addr = u32::from_ne_bytes(of.ip().octets());
    address
}

fn is_in_progress(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EINPROGRESS)
}

impl Application {
    /// The socket, which the first call makes.
    fn socket(&mut self) -> Result<RawFd, String> {
        if let Some(socket) = &self.socket {
            return Ok(socket.as_raw_fd());
        }
        let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers.
        let raw = unsafe { libc::socket(libc::AF_INET, kind, 0) };
        let raw = checked(raw).map_err(|e| format!("socket: {e}"))?;
        // SAFETY: the descriptor is nobody else's.
        self.socket = Some(unsafe { OwnedFd::from_raw_fd(raw) });
        self.set(libc::SOL_SOCKET, libc::SO_REUSEADDR, &1)?;
        Ok(raw)
    }

    fn set<T>(&mut self, level: libc::c_int, option: libc::c_int, value: &T) -> Outcome {
        let socket = self.socket()?;
        // SAFETY: the value lives, and has so many bytes.
        let status = unsafe {
            let value: *const T = value;
            libc::setsockopt(socket, level, option, value.cast(), size_of::<T>() as u32)
        };
        checked(status).map(drop).map_err(|e| format!("setsockopt: {e}"))
    }

    pub fn set_option(&mut self, name: &str, value: libc::c_int) -> Outcome {
        let known = OPTIONS.iter().find(|(known, ..)| *known == name);
        let (_, level, option) = known.ok_or_else(|| format!("{name} is not in the list"))?;
        self.set(*level, *option, &value)
    }

    fn bind(&mut self, guest: SocketAddrV4) -> Result<RawFd, String> {
        let (socket, guest) = (self.socket()?, address(guest));
        // SAFETY: the address lives, and has so many bytes.
        let status =
            unsafe { libc::bind(socket, (&raw const guest).cast(), size_of_val(&guest) as u32) };
        checked(status).map_err(|e| format!("bind: {e}"))?;
        Ok(socket)
    }

    /// Begins to connect.
    pub fn connect(&mut self, guest: SocketAddrV4, peer: SocketAddrV4) -> Outcome {
        let (socket, peer) = (self.bind(guest)?, address(peer));
        // SAFETY: the address lives, and has so many bytes.
        let status =
            unsafe { libc::connect(socket, (&raw const peer).cast(), size_of_val(&peer) as u32) };
        match checked(status) {
            Err(e) if !is_in_progress(&e) => Err(format!("connect: {e}")),
            _ => Ok(()),
        }
    }

    /// Likewise, with the first data (RFC 7413, 4.2).
    pub fn connect_with(
        &mut self,
        guest: SocketAddrV4,
        peer: SocketAddrV4,
        bytes: usize,
    ) -> Outcome {
        let (socket, peer) = (self.bind(guest)?, address(peer));
        let data = pattern(0, bytes);
        // SAFETY: the address and the data live, and have so many bytes.
        let sent = unsafe {
            let (data, to) = (data.as_ptr().cast(), (&raw const peer).cast());
            libc::sendto(socket, data, bytes, libc::MSG_FASTOPEN, to, size_of_val(&peer) as u32)
        };
        match checked(sent as libc::c_int) {
            // Without a cookie nothing was sent, and the data are not buffered either.
            Err(e) if is_in_progress(&e) => Ok(()),
            Err(e) => Err(format!("sendto: {e}")),
            Ok(_) => {
                self.sent_bytes += bytes as i64;
                Ok(())
            }
        }
    }

    /// Waits until the connection is there.
    pub fn connected(&mut self) -> Outcome {
        let socket = self.socket()?;
        if !wait_for(&socket, libc::POLLOUT, Instant::now() + PATIENCE) {
            return Err("the connection does not come about".into());
        }
        match self.pending_error()? {
            0 => Ok(()),
            error => Err(format!("connect: {}", io::Error::from_raw_os_error(error))),
        }
    }

    fn pending_error(&mut self) -> Result<i32, String> {
        let socket = self.socket()?;
        let mut error: libc::c_int = 0;
        let mut bytes = size_of_val(&error) as libc::socklen_t;
        // SAFETY: the value lives, and has so many bytes.
        let status = unsafe {
            let value = (&raw mut error).cast();
            libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_ERROR, value, &mut bytes)
        };
        checked(status).map_err(|e| format!("getsockopt: {e}"))?;
        Ok(error)
    }

    /// Waits until the connection fails for this reason.
    pub fn fails(&mut self, name: &str) -> Outcome {
        let known = ERRORS.iter().find(|(known, _)| *known == name);
        let (_, wanted) = known.ok_or_else(|| format!("{name} is not in the list"))?;
        let mut came = 0;
        until(|| {
            came = self.pending_error()?;
            Ok(came != 0)
        })?;
        match came {
            0 => Err("there is no error".into()),
            came if came == *wanted => Ok(()),
            came => Err(format!("the error is: {}", io::Error::from_raw_os_error(came))),
        }
    }

    pub fn listen(&mut self, guest: SocketAddrV4) -> Outcome {
        let socket = self.bind(guest)?;
        // SAFETY: no pointers.
        checked(unsafe { libc::listen(socket, 8) }).map_err(|e| format!("listen: {e}"))?;
        self.listener = self.socket.take();
        Ok(())
    }

    pub fn accept(&mut self) -> Outcome {
        let listener = self.listener.as_ref().ok_or("nothing listens")?;
        if !wait_for(listener, libc::POLLIN, Instant::now() + PATIENCE) {
            return Err("there is no connection to accept".into());
        }
        // SAFETY: address and length may be null.
        let accepted = checked(unsafe {
            let (nobody, no_length) = (std::ptr::null_mut(), std::ptr::null_mut());
            libc::accept4(listener.as_raw_fd(), nobody, no_length, libc::SOCK_NONBLOCK)
        });
        let accepted = accepted.map_err(|e| format!("accept: {e}"))?;
        // SAFETY: the descriptor is nobody else's.
        self.socket = Some(unsafe { OwnedFd::from_raw_fd(accepted) });
        Ok(())
    }

    pub fn send(&mut self, bytes: usize, urgent: bool) -> Outcome {
        let socket = self.socket()?;
        let data = pattern(self.sent_bytes, bytes);
        let flags = libc::MSG_NOSIGNAL | if urgent { libc::MSG_OOB } else { 0 };
        // SAFETY: the data live, and have so many bytes.
        let sent = unsafe { libc::send(socket, data.as_ptr().cast(), bytes, flags) };
        if sent != bytes as isize {
            return Err(failed(&format!("send returned {sent}")));
        }
        self.sent_bytes += bytes as i64;
        Ok(())
    }

    /// What is there to read; none at the end of the stream.
    fn read(&mut self, most_bytes: usize, flags: libc::c_int) -> io::Result<Vec<u8>> {
        let socket = self.socket().map_err(io::Error::other)?;
        let mut data = vec![0; most_bytes];
        // SAFETY: the buffer lives, and has so many bytes.
        let read = unsafe { libc::recv(socket, data.as_mut_ptr().cast(), most_bytes, flags) };
        data.truncate(usize::try_from(read).map_err(|_| io::Error::last_os_error())?);
        Ok(data)
    }

    fn read_awaited(&mut self, most_bytes: usize, flags: libc::c_int) -> Result<Vec<u8>, String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.read(most_bytes, flags) {
                Ok(data) => return Ok(data),
                // Urgent data that have not come are EINVAL.
                Err(e) if [ErrorKind::WouldBlock, ErrorKind::InvalidInput].contains(&e.kind()) => {
                    if Instant::now() > deadline {
                        return Err("there is nothing to receive".into());
                    }
                    thread::sleep(LOOK_AGAIN);
                }
                Err(e) => return Err(format!("recv: {e}")),
            }
        }
    }

    fn check(&mut self, data: &[u8]) -> Outcome {
        if data != pattern(self.read_bytes, data.len()) {
            return Err(format!("what was received at {} is not what was sent", self.read_bytes));
        }
        self.read_bytes += data.len() as i64;
        Ok(())
    }

    pub fn receive(&mut self, bytes: usize) -> Outcome {
        let until = self.read_bytes + bytes as i64;
        while self.read_bytes < until {
            let data = self.read_awaited((until - self.read_bytes) as usize, 0)?;
            if data.is_empty() {
                return Err(format!("the stream ends at {}", self.read_bytes));
            }
            self.check(&data)?;
        }
        Ok(())
    }

    pub fn receive_urgent(&mut self) -> Outcome {
        let data = self.read_awaited(1, libc::MSG_OOB)?;
        self.check(&data)
    }

    pub fn receive_end(&mut self) -> Outcome {
        let data = self.read_awaited(1, 0)?;
        if data.is_empty() { Ok(()) } else { Err("there is more to receive".into()) }
    }

    /// Without the FIN.
    pub fn sent_bytes(&self) -> i64 {
        self.sent_bytes
    }

    /// Reads all that is there.
    pub fn receive_available(&mut self) -> Outcome {
        loop {
            match self.read(1 << 16, 0) {
                Ok(data) if !data.is_empty() => self.check(&data)?,
                _ => return Ok(()),
            }
        }
    }

    pub fn shut_down(&mut self) -> Outcome {
        let socket = self.socket()?;
        // SAFETY: no pointers.
        checked(unsafe { libc::shutdown(socket, libc::SHUT_WR) })
            .map(drop)
            .map_err(|e| format!("shutdown: {e}"))
    }

    pub fn close(&mut self) {
        let _alone = CHILDREN.lock().expect("not panicked");
        self.socket = None;
    }

    /// Closes with a RST, without TIME-WAIT.
    pub fn abort(&mut self) -> Outcome {
        let at_once = libc::linger { l_onoff: 1, l_linger: 0 };
        self.set(libc::SOL_SOCKET, libc::SO_LINGER, &at_once)?;
        self.close();
        Ok(())
    }

    /// Ends all, so that nothing of it is left in the guest.
    pub fn end(&mut self) {
        if self.socket.is_some() {
            let _ = self.abort();
        }
        let _alone = CHILDREN.lock().expect("not panicked");
        self.listener = None;
        (self.sent_bytes, self.read_bytes) = (0, 0);
    }

    pub fn info(&mut self) -> Result<TcpInfo, String> {
        let socket = self.socket()?;
        TcpInfo::read(&socket).map_err(|e| format!("TCP_INFO: {e}"))
    }

    pub fn state(&mut self) -> Result<&'static str, String> {
        let state = usize::from(self.info()?.state);
        STATES.get(state.wrapping_sub(1)).copied().ok_or_else(|| format!("state {state}"))
    }

    /// Waits until the connection is in this state.
    pub fn becomes(&mut self, wanted: &str) -> Outcome {
        let mut state = "";
        until(|| {
            state = self.state()?;
            Ok(state == wanted)
        })?;
        if state == wanted { Ok(()) } else { Err(format!("the state is {state}")) }
    }
}

/// Until it is so, or for as long as patience lasts.
fn until(mut is_so: impl FnMut() -> Result<bool, String>) -> Outcome {
    let deadline = Instant::now() + PATIENCE;
    while !is_so()? && Instant::now() < deadline {
        thread::sleep(LOOK_AGAIN);
    }
    Ok(())
}

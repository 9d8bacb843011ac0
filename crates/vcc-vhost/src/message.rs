//! The vhost-user protocol's messages: framing, descriptors, answers. Nothing waits for a front end.

use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use vmm_sys_util::sock_ctrl_msg::ScmSocket;

const HEADER_BYTES: usize = 12;
/// The longest message that a card is sent is the table of memory regions.
const PAYLOAD_MAX_BYTES: usize = 512;
/// VHOST_MEMORY_BASELINE_NREGIONS: descriptors with one message.
pub(crate) const FDS_MAX: usize = 8;
const VERSION: u32 = 1;
const VERSION_MASK: u32 = 3;
const IS_ANSWER: u32 = 1 << 2;
const WANTS_ANSWER: u32 = 1 << 3;

macro_rules! requests {
    ($($name:ident = $number:literal,)+) => {
        /// VHOST_USER_*: what a front end asks of a card.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Request { $($name = $number,)+ }

        impl Request {
            fn of(number: u32) -> Option<Self> {
                match number { $($number => Some(Request::$name),)+ _ => None }
            }
        }
    };
}

requests! {
    GetFeatures = 1,
    SetFeatures = 2,
    SetOwner = 3,
    ResetOwner = 4,
    SetMemTable = 5,
    SetLogBase = 6,
    SetLogFd = 7,
    SetVringNum = 8,
    SetVringAddr = 9,
    SetVringBase = 10,
    GetVringBase = 11,
    SetVringKick = 12,
    SetVringCall = 13,
    SetVringErr = 14,
    GetProtocolFeatures = 15,
    SetProtocolFeatures = 16,
    GetQueueNum = 17,
    SetVringEnable = 18,
    SendRarp = 19,
    ResetDevice = 34,
    SetDeviceStateFd = 42,
    CheckDeviceState = 43,
}

/// Why a connection ends. The text is what the front end did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    Gone,
    Refused(String),
}

impl End {
    pub(crate) fn refused(why: impl Into<String>) -> Self {
        End::Refused(why.into())
    }
}

#[derive(Debug)]
pub(crate) struct Message {
    pub request: Request,
    payload: Vec<u8>,
    pub fds: Vec<OwnedFd>,
    wants_answer: bool,
}

impl Message {
    pub(crate) fn word(&self, index: usize) -> Result<u32, End> {
        let bytes = self.payload.get(4 * index..).and_then(|rest| rest.first_chunk());
        bytes.map(|bytes| u32::from_ne_bytes(*bytes)).ok_or_else(|| self.short())
    }

    pub(crate) fn long(&self, index: usize) -> Result<u64, End> {
        let bytes = self.payload.get(8 * index..).and_then(|rest| rest.first_chunk());
        bytes.map(|bytes| u64::from_ne_bytes(*bytes)).ok_or_else(|| self.short())
    }

    fn short(&self) -> End {
        End::refused(format!("{:?} with {} bytes", self.request, self.payload.len()))
    }
}

/// A front end's connection.
pub(crate) struct Line {
    stream: UnixStream,
    /// Of the message that is coming.
    bytes: Vec<u8>,
    fds: Vec<OwnedFd>,
}

impl Line {
    pub(crate) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Line { stream, bytes: Vec::new(), fds: Vec::new() })
    }

    /// The next message; None if it has not come whole.
    ///
    /// # Errors
    /// The connection has ended, or has to.
    pub(crate) fn next(&mut self) -> Result<Option<Message>, End> {
        while self.bytes.len() < HEADER_BYTES + self.payload_bytes()? {
            let needed_bytes = match self.bytes.len() {
                have if have < HEADER_BYTES => HEADER_BYTES - have,
                have => HEADER_BYTES + self.payload_bytes()? - have,
            };
            if !self.read(needed_bytes)? {
                return Ok(None);
            }
        }
        let bytes = std::mem::take(&mut self.bytes);
        let fds = std::mem::take(&mut self.fds);
        let [number, flags] = [0, 4].map(|at| word_at(&bytes, at));
        let request = Request::of(number)
            .ok_or_else(|| End::refused(format!("an unknown request, {number}")))?;
        if flags & VERSION_MASK != VERSION {
            return Err(End::refused(format!("flags {flags:#x} of another version")));
        }
        let wants_answer = flags & WANTS_ANSWER != 0;
        let payload = bytes[HEADER_BYTES..].to_vec();
        Ok(Some(Message { request, payload, fds, wants_answer }))
    }

    /// 0 until the header is there.
    fn payload_bytes(&self) -> Result<usize, End> {
        if self.bytes.len() < HEADER_BYTES {
            return Ok(0);
        }
        match word_at(&self.bytes, 8) as usize {
            bytes if bytes > PAYLOAD_MAX_BYTES => {
                Err(End::refused(format!("a message of {bytes} bytes")))
            }
            bytes => Ok(bytes),
        }
    }

    /// Reads some of the bytes; descriptors come with a message's first. False if there are none.
    fn read(&mut self, bytes: usize) -> Result<bool, End> {
        let before = self.bytes.len();
        self.bytes.resize(before + bytes, 0);
        let place = &mut self.bytes[before..];
        let mut parts = [libc::iovec { iov_base: place.as_mut_ptr().cast(), iov_len: place.len() }];
        let mut fds: [RawFd; FDS_MAX] = [-1; FDS_MAX];
        // SAFETY: the part is writable memory of that length.
        let read = unsafe { self.stream.recv_with_fds(&mut parts, &mut fds) };
        let (read_bytes, came) = match read {
            Ok(read) => read,
            Err(error) => {
                self.bytes.truncate(before);
                return match error.errno() {
                    libc::EAGAIN | libc::EINTR => Ok(false),
                    libc::ENOBUFS => Err(End::refused(format!(
                        "more than {FDS_MAX} descriptors with a message, or more than this process may \
                         have"
                    ))),
                    _ => Err(End::Gone),
                };
            }
        };
        self.bytes.truncate(before + read_bytes);
        // SAFETY: the kernel has just made these descriptors for this process.
        self.fds.extend(fds[..came].iter().map(|fd| unsafe { OwnedFd::from_raw_fd(*fd) }));
        if self.fds.len() > FDS_MAX {
            return Err(End::refused(format!("{} descriptors with a message", self.fds.len())));
        }
        // One that has its own end there would not be gone when it goes, if the rest never comes.
        if self.fds.iter().any(is_socket) {
            return Err(End::refused("a socket with a message"));
        }
        if read_bytes == 0 { Err(End::Gone) } else { Ok(true) }
    }

    pub(crate) fn answer(&mut self, message: &Message, payload: &[u8]) -> Result<(), End> {
        let words = [message.request as u32, VERSION | IS_ANSWER, payload.len() as u32];
        let header: Vec<u8> = words.into_iter().flat_map(u32::to_ne_bytes).collect();
        match self.stream.write(&[header.as_slice(), payload].concat()) {
            Ok(bytes) if bytes == HEADER_BYTES + payload.len() => Ok(()),
            Ok(_) => Err(End::refused("answers that it does not read")),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(End::refused("answers that it does not read"))
            }
            Err(_) => Err(End::Gone),
        }
    }

    /// Acknowledges a message that has no answer of its own, if the front end wants that.
    pub(crate) fn acknowledge(&mut self, message: &Message) -> Result<(), End> {
        match message.wants_answer {
            true => self.answer(message, &0_u64.to_ne_bytes()),
            false => Ok(()),
        }
    }
}

impl AsRawFd for Line {
    fn as_raw_fd(&self) -> RawFd {
        self.stream.as_raw_fd()
    }
}

fn is_socket(fd: &OwnedFd) -> bool {
    // SAFETY: all-zero bytes are a valid stat, which the call writes.
    let (status, stat) = unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        (libc::fstat(fd.as_raw_fd(), &mut stat), stat)
    };
    status == 0 && stat.st_mode & libc::S_IFMT == libc::S_IFSOCK
}

fn word_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |word| u32::from_ne_bytes(*word))
}

//! The vhost-user protocol, as a card uses it: requests, their framing and descriptors, answers.

use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use crate::fds::{FDS_MAX, receive_with_fds};

/// Request, flags and size of the payload.
const HEADER_BYTES: usize = 12;
/// The longest message that a card is sent is the table of memory regions.
const PAYLOAD_MAX_BYTES: usize = 512;
const VERSION: u32 = 1;
const VERSION_MASK: u32 = 3;
const IS_ANSWER: u32 = 1 << 2;
const WANTS_ANSWER: u32 = 1 << 3;

/// VHOST_USER_PROTOCOL_F_*.
pub mod protocol_feature {
    pub const MQ: u64 = 1 << 0;
    pub const LOG_SHMFD: u64 = 1 << 1;
    pub const RARP: u64 = 1 << 2;
    pub const REPLY_ACK: u64 = 1 << 3;
    pub const BACKEND_REQ: u64 = 1 << 5;
    pub const CONFIG: u64 = 1 << 9;
    pub const RESET_DEVICE: u64 = 1 << 13;
    pub const INBAND_NOTIFICATIONS: u64 = 1 << 14;
    pub const DEVICE_STATE: u64 = 1 << 19;
}

macro_rules! requests {
    ($($name:ident = $number:literal,)+) => {
        /// VHOST_USER_*: what a front end asks of a card.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Request { $($name = $number,)+ }

        impl Request {
            fn from_number(number: u32) -> Option<Self> {
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
    SetBackendFd = 21,
    GetConfig = 24,
    ResetDevice = 34,
    VringKick = 35,
    SetDeviceStateFd = 42,
    CheckDeviceState = 43,
}

/// Why a connection ends. The text is what the front end did.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    Gone,
    Refused(String),
}

impl From<End> for io::Error {
    fn from(end: End) -> Self {
        match end {
            End::Gone => io::ErrorKind::UnexpectedEof.into(),
            End::Refused(why) => io::Error::new(io::ErrorKind::InvalidData, why),
        }
    }
}

impl End {
    pub fn refused(why: impl Into<String>) -> Self {
        End::Refused(why.into())
    }
}

/// What a front end has sent.
#[derive(Debug)]
pub struct Message {
    pub request: Request,
    pub payload: Vec<u8>,
    pub fds: Vec<OwnedFd>,
    wants_answer: bool,
}

impl Message {
    /// The `index`th word of 32 bits of its payload.
    ///
    /// # Errors
    /// The payload ends before; likewise below.
    pub fn word(&self, index: usize) -> Result<u32, End> {
        let bytes = self.payload.get(4 * index..).and_then(|rest| rest.first_chunk());
        bytes.map(|bytes| u32::from_ne_bytes(*bytes)).ok_or_else(|| self.short())
    }

    /// The `index`th word of 64 bits.
    ///
    /// # Errors
    /// As of [`Message::word`].
    pub fn long(&self, index: usize) -> Result<u64, End> {
        let bytes = self.payload.get(8 * index..).and_then(|rest| rest.first_chunk());
        bytes.map(|bytes| u64::from_ne_bytes(*bytes)).ok_or_else(|| self.short())
    }

    /// It is one that this card does not know.
    pub fn unknown(&self) -> End {
        unknown(self.request as u32)
    }

    fn short(&self) -> End {
        End::refused(format!("{:?} with {} bytes", self.request, self.payload.len()))
    }
}

/// A front end's connection. It waits for messages unless the stream is non-blocking.
pub struct Connection {
    stream: UnixStream,
    takes_sockets: bool,
    /// Of the message that is coming.
    bytes: Vec<u8>,
    fds: Vec<OwnedFd>,
}

impl Connection {
    pub fn new(stream: UnixStream) -> Self {
        Connection { stream, takes_sockets: true, bytes: Vec::new(), fds: Vec::new() }
    }

    /// Sockets with a message end the connection: one that has its own end there would not be gone
    /// when it goes, if the rest of a message never comes.
    pub fn without_sockets(self) -> Self {
        Connection { takes_sockets: false, ..self }
    }

    /// The next message; None if it has not come whole.
    ///
    /// # Errors
    /// The connection has ended, or has to.
    #[expect(clippy::should_implement_trait, reason = "it has more to come after None")]
    pub fn next(&mut self) -> Result<Option<Message>, End> {
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
        let request = Request::from_number(number).ok_or_else(|| unknown(number))?;
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
        let (read_bytes, fds) = match receive_with_fds(&self.stream, &mut self.bytes[before..]) {
            Ok(read) => read,
            Err(error) => {
                self.bytes.truncate(before);
                return match error.raw_os_error() {
                    Some(libc::EAGAIN) => Ok(false),
                    Some(libc::ENOBUFS) => Err(End::refused(format!(
                        "more than {FDS_MAX} descriptors with a message, or more than this process may \
                         have"
                    ))),
                    _ => Err(End::Gone),
                };
            }
        };
        self.bytes.truncate(before + read_bytes);
        self.fds.extend(fds);
        if self.fds.len() > FDS_MAX {
            return Err(End::refused(format!("{} descriptors with a message", self.fds.len())));
        }
        if !self.takes_sockets && self.fds.iter().any(is_socket) {
            return Err(End::refused("a socket with a message"));
        }
        if read_bytes == 0 { Err(End::Gone) } else { Ok(true) }
    }

    /// Answers a message.
    ///
    /// # Errors
    /// The front end is gone, or reads no answers.
    pub fn answer(&mut self, message: &Message, payload: &[u8]) -> Result<(), End> {
        let words = [message.request as u32, VERSION | IS_ANSWER, payload.len() as u32];
        let header: Vec<u8> = words.into_iter().flat_map(u32::to_ne_bytes).collect();
        match self.stream.write_all(&[header.as_slice(), payload].concat()) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(End::refused("requests without reading the answers"))
            }
            Err(_) => Err(End::Gone),
        }
    }

    /// Acknowledges a message that has no answer of its own, if the front end wants that.
    ///
    /// # Errors
    /// As of [`Connection::answer`].
    pub fn acknowledge(&mut self, message: &Message) -> Result<(), End> {
        match message.wants_answer {
            true => self.answer(message, &0_u64.to_ne_bytes()),
            false => Ok(()),
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl AsRawFd for Connection {
    fn as_raw_fd(&self) -> RawFd {
        self.stream.as_raw_fd()
    }
}

fn unknown(number: u32) -> End {
    End::refused(format!("an unknown request, {number}"))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fds::send_with_fds;

    fn pair() -> (Connection, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        (Connection::new(ours), theirs)
    }

    fn message(words: &[u32]) -> Vec<u8> {
        words.iter().copied().flat_map(u32::to_ne_bytes).collect()
    }

    #[test]
    fn requests_are_read_and_answered() {
        let (mut line, mut guest) = pair();
        guest.write_all(&message(&[8, 1 | WANTS_ANSWER, 8, 1, 256])).expect("written");
        let asked = line.next().expect("read").expect("a request");
        assert_eq!(asked.request, Request::SetVringNum);
        assert_eq!((asked.word(0), asked.word(1)), (Ok(1), Ok(256)));
        assert_eq!(asked.long(0), Ok(256 << 32 | 1));
        let short = End::refused("SetVringNum with 8 bytes");
        assert_eq!(asked.word(2), Err(short));
        line.acknowledge(&asked).expect("answered");
        let mut answer = [0; 20];
        std::io::Read::read_exact(&mut guest, &mut answer).expect("an answer");
        assert_eq!(answer.to_vec(), message(&[8, VERSION | IS_ANSWER, 8, 0, 0]));
    }

    #[test]
    fn an_unknown_request_ends_the_connection_as_closing_does() {
        let (mut line, mut guest) = pair();
        guest.write_all(&message(&[99, 1, 0])).expect("written");
        assert_eq!(line.next().err(), Some(End::refused("an unknown request, 99")));
        let (mut line, guest) = pair();
        drop(guest);
        assert_eq!(line.next().err(), Some(End::Gone));
    }

    #[test]
    fn a_message_comes_in_parts_and_with_its_descriptors() {
        let (mut line, mut guest) = pair();
        line.stream.set_nonblocking(true).expect("set");
        let whole = message(&[5, 1, 8, 0, 0]);
        let file = std::fs::File::open("/dev/null").expect("a file");
        send_with_fds(&guest, &whole[..1], &[file.as_fd()]).expect("sent");
        for at in 1..whole.len() {
            assert!(line.next().expect("no end").is_none(), "{at} bytes");
            guest.write_all(&whole[at..=at]).expect("written");
        }
        let memory = line.next().expect("read").expect("a request");
        assert_eq!((memory.request, memory.fds.len()), (Request::SetMemTable, 1));
    }

    #[test]
    fn more_descriptors_than_a_message_may_have_end_the_connection() {
        let refused = |fds: usize, takes_sockets: bool| {
            let (mut line, guest) = pair();
            if !takes_sockets {
                line = line.without_sockets();
            }
            let socket = guest.try_clone().expect("a duplicate");
            // In two messages, as one has no room for more.
            let (one, rest) = (fds.min(FDS_MAX), fds.saturating_sub(FDS_MAX));
            send_with_fds(&guest, &[2], &vec![socket.as_fd(); one]).expect("sent");
            send_with_fds(&guest, &message(&[0, 1, 0])[1..], &vec![socket.as_fd(); rest]).ok();
            drop(guest);
            match line.next() {
                Err(End::Refused(why)) => why,
                other => format!("{other:?}"),
            }
        };
        assert_eq!(refused(FDS_MAX + 1, true), "9 descriptors with a message");
        assert_eq!(refused(1, false), "a socket with a message");
    }
}

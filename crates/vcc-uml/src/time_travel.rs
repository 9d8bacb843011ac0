//! The protocol of `time-travel=ext:` (linux/um_timetravel.h): messages of 16 bytes over a socket,
//! and a page of shared memory that replaces most of them.

use std::ffi::CStr;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::time::Duration;

use vcc_net::fds::send_with_fds;

use crate::numbered::numbered;
use crate::shared_page::SharedPage;
use crate::system::strange;
use crate::turns::Turns;

numbered! {
    /// UM_TIMETRAVEL_*, as far as used.
    pub(crate) enum Op {
        Ack = 0,
        /// The first message; `time` is the guest's number.
        Start = 1,
        /// The guest wants to run at `time`.
        Request = 2,
        /// The guest is idle until the requested time.
        Wait = 3,
        Get = 4,
        /// The guest's time is now `time`.
        Update = 5,
        Run = 6,
        TimeOfDay = 8,
    }
}

const MESSAGE_BYTES: usize = 16;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Message {
    pub op: Op,
    pub seq: u32,
    pub time_ns: u64,
}

impl Message {
    fn bytes(&self) -> [u8; MESSAGE_BYTES] {
        let mut bytes = [0; MESSAGE_BYTES];
        bytes[..4].copy_from_slice(&(self.op as u32).to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.seq.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.time_ns.to_ne_bytes());
        bytes
    }
}

/// Result of waiting for a message.
#[derive(Debug)]
pub(crate) enum Heard {
    Message(Message),
    /// The wait timed out.
    Nothing,
    /// The guest has closed its clock.
    End,
}

/// The calendar's end of a guest's clock.
pub(crate) struct ClockLine {
    stream: UnixStream,
    seq: u32,
}

impl ClockLine {
    pub fn new(stream: UnixStream) -> Self {
        Self { stream, seq: 0 }
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Sets the timeout of `receive`.
    pub fn look_up_every(&self, patience: Duration) -> io::Result<()> {
        self.stream.set_read_timeout(Some(patience))
    }

    pub fn receive(&mut self) -> io::Result<Heard> {
        use io::ErrorKind::{ConnectionReset, UnexpectedEof, WouldBlock};

        let mut bytes = [0; MESSAGE_BYTES];
        match self.stream.read_exact(&mut bytes) {
            Ok(()) => {}
            Err(error) if [UnexpectedEof, ConnectionReset].contains(&error.kind()) => {
                return Ok(Heard::End);
            }
            // Messages are written whole, so a partial one cannot occur.
            Err(error) if error.kind() == WouldBlock => return Ok(Heard::Nothing),
            Err(error) => return Err(error),
        }
        let word = |at: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|i| bytes[at + i]));
        let op = Op::from_number(word(0))
            .ok_or_else(|| strange(format!("operation {} on its clock", word(0))))?;
        let time_ns = u64::from_ne_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|i| bytes[8 + i]));
        Ok(Heard::Message(Message { op, seq: word(4), time_ns }))
    }

    pub fn acknowledge(&mut self, message: &Message, time_ns: u64) -> io::Result<()> {
        self.send(&Message { op: Op::Ack, seq: message.seq, time_ns })
    }

    /// Answers Start with the shared page and, in place of a file for a log, with the page of turns.
    pub fn accept(
        &mut self,
        start: &Message,
        schedule: &Schedule,
        turns: &Turns,
    ) -> io::Result<()> {
        let answer = Message { op: Op::Ack, seq: start.seq, time_ns: GUEST_SLOT as u64 };
        send_with_fds(&self.stream, &answer.bytes(), &[schedule.0.fd(), turns.fd()])
    }

    pub fn run(&mut self, now_ns: u64) -> io::Result<()> {
        self.seq = self.seq.wrapping_add(1);
        self.send(&Message { op: Op::Run, seq: self.seq, time_ns: now_ns })
    }

    fn send(&mut self, message: &Message) -> io::Result<()> {
        match self.stream.write_all(&message.bytes()) {
            // The next read will see that it is gone.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            result => result,
        }
    }
}

const NAME: &CStr = c"vcc-schedule";
const VERSION: u32 = 2;
const HEADER_BYTES: usize = 4096;
const SLOT_BYTES: usize = 128;
const SLOTS: usize = 2;
const BYTES: usize = HEADER_BYTES + SLOTS * SLOT_BYTES;
/// UM_TIMETRAVEL_SCHEDSHM_CAP_TIME_SHARE: the client reads and writes times in the page.
const TIME_SHARE: u32 = 1;
/// UM_TIMETRAVEL_SCHEDSHM_FLAGS_REQ_RUN: the slot's req_time is valid.
const WANTS_TO_RUN: u32 = 1;
/// The request of a guest that waits for an interrupt only.
const FOREVER_NS: u64 = i64::MAX as u64;
const CALENDAR_SLOT: usize = 0;
const GUEST_SLOT: usize = 1;

/// Offsets of the fields of struct um_timetravel_schedshm and its clients.
mod at {
    pub const VERSION: usize = 0;
    pub const LENGTH: usize = 4;
    pub const FREE_UNTIL: usize = 8;
    pub const CURRENT_TIME: usize = 16;
    pub const RUNNING_ID: usize = 24;
    pub const MAX_CLIENTS: usize = 26;
    pub const CAPABILITIES: usize = 0;
    pub const FLAGS: usize = 4;
    pub const REQ_TIME: usize = 8;
    pub const NAME: usize = 16;
    /// In the reserved bytes; our extension (guest/kernel/05-shared-interrupts.patch).
    pub const INTERRUPTS: usize = 24;
    /// As well; of guest/kernel/08-turns.patch.
    pub const HAS_TURNS: usize = 28;
    pub const BY_TURNS: usize = 32;
    pub const TURN: usize = 36;
}

/// The page that a guest shares with the calendar. Each guest has its own page, so that each has
/// its own free_until.
pub(crate) struct Schedule(SharedPage);

impl Schedule {
    /// The guest runs first, at time 0.
    pub fn create(guest: usize) -> io::Result<Self> {
        let schedule = Self(SharedPage::create(NAME, BYTES)?);
        // Written first: a guest checks these two before it uses the rest.
        schedule.0.word(at::VERSION).store(VERSION, Ordering::Release);
        schedule.0.word(at::LENGTH).store(BYTES as u32, Ordering::Release);
        schedule.0.half(at::MAX_CLIENTS).store(SLOTS as u16, Ordering::Release);
        schedule.0.half(at::RUNNING_ID).store(GUEST_SLOT as u16, Ordering::Release);
        let calendar = HEADER_BYTES + CALENDAR_SLOT * SLOT_BYTES;
        schedule.0.word(calendar + at::CAPABILITIES).store(TIME_SHARE, Ordering::Release);
        schedule.0.long(GUEST + at::NAME).store(guest as u64, Ordering::Release);
        Ok(schedule)
    }

    pub fn current_ns(&self) -> u64 {
        self.0.long(at::CURRENT_TIME).load(Ordering::Acquire)
    }

    pub fn set_current_ns(&self, now_ns: u64) {
        self.0.long(at::CURRENT_TIME).store(now_ns, Ordering::Release);
    }

    /// The guest may run without asking up to this time, exclusive.
    pub fn set_free_until_ns(&self, until_ns: u64) {
        self.0.long(at::FREE_UNTIL).store(until_ns, Ordering::Release);
    }

    /// Raises interrupts of its card's rings, which it takes when it is run.
    pub fn interrupt(&self, rings: u32) {
        self.0.word(GUEST + at::INTERRUPTS).fetch_or(rings, Ordering::Release);
    }

    /// Does the guest know turns?
    pub fn has_turns(&self) -> bool {
        self.0.word(GUEST + at::HAS_TURNS).load(Ordering::Acquire) != 0
    }

    /// Shall the guest end its next turn in the page of turns, instead of by a message?
    pub fn set_by_turns(&self, by_turns: bool) {
        self.0.word(GUEST + at::BY_TURNS).store(by_turns.into(), Ordering::Release);
    }

    /// The guest may run when it looks.
    pub fn give_turn(&self) {
        self.0.word(GUEST + at::TURN).store(1, Ordering::SeqCst);
    }

    /// Has the guest not ended its turn?
    pub fn has_turn(&self) -> bool {
        self.0.word(GUEST + at::TURN).load(Ordering::SeqCst) != 0
    }

    /// When the waiting guest wants to run next. None: only on an interrupt.
    pub fn requested_ns(&self) -> Option<u64> {
        let wants = self.0.word(GUEST + at::FLAGS).load(Ordering::Acquire) & WANTS_TO_RUN != 0;
        let requested_ns = || self.0.long(GUEST + at::REQ_TIME).load(Ordering::Acquire);
        wants.then(requested_ns).filter(|&at_ns| at_ns < FOREVER_NS)
    }
}

/// Offset of the guest's slot.
const GUEST: usize = HEADER_BYTES + GUEST_SLOT * SLOT_BYTES;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_protocols_layout() {
        let schedule = Schedule::create(7).expect("a page");
        assert_eq!(schedule.0.word(at::VERSION).load(Ordering::Relaxed), 2);
        assert_eq!(schedule.0.word(at::LENGTH).load(Ordering::Relaxed), 4352);
        assert_eq!(schedule.0.word(4096).load(Ordering::Relaxed), TIME_SHARE);
        assert_eq!(schedule.0.long(4096 + 128 + 16).load(Ordering::Relaxed), 7);
        assert_eq!((schedule.current_ns(), schedule.requested_ns()), (0, None));
        schedule.0.word(GUEST + at::FLAGS).store(WANTS_TO_RUN, Ordering::Relaxed);
        schedule.0.long(GUEST + at::REQ_TIME).store(99, Ordering::Relaxed);
        assert_eq!(schedule.requested_ns(), Some(99));
        schedule.0.long(GUEST + at::REQ_TIME).store(FOREVER_NS, Ordering::Relaxed);
        assert_eq!(schedule.requested_ns(), None);
    }

    #[test]
    fn receiving_times_out() {
        let (ours, _theirs) = UnixStream::pair().expect("a pair");
        let mut line = ClockLine::new(ours);
        line.look_up_every(Duration::from_millis(1)).expect("a timeout");
        assert!(matches!(line.receive(), Ok(Heard::Nothing)));
    }

    #[test]
    fn sending_to_an_ended_guest_is_no_error() {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let mut line = ClockLine::new(ours);
        drop(theirs);
        line.run(1).expect("no error");
        assert!(matches!(line.receive(), Ok(Heard::End)));
    }
}

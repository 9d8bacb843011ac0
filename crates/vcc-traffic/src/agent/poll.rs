//! Waiting for sockets and a timer.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use vcc_traffic::system::check;
use vcc_traffic::{Doing, Result};

/// Sockets that are ready; numbers are positions in the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Timer,
    Pings,
    Listener(usize),
    Sender(usize),
    Receiver(usize),
    /// A client that has thought.
    Client(usize),
}

const EVENTS: usize = 64;
const KIND_BITS: u32 = 3;

/// An epoll instance. The timer is a descriptor in the set, because a timeout of epoll_wait() may
/// be late by a thousandth of its length (select_estimate_accuracy() in fs/select.c).
pub struct Poll {
    epoll: OwnedFd,
    timer: Timer,
    events: Vec<libc::epoll_event>,
}

/// A timer of CLOCK_MONOTONIC.
pub struct Timer(OwnedFd);

impl Timer {
    pub fn new() -> Result<Self> {
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: takes no pointers.
        let timer = owned(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) });
        timer.map(Self).doing(|| "create a timer (timerfd_create)".into())
    }

    /// Sets the time of CLOCK_MONOTONIC, other than 0, at which the timer expires; at once if it
    /// has passed.
    pub fn set(&self, at_ns: u64) -> Result<()> {
        let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let at = libc::timespec {
            tv_sec: (at_ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (at_ns % 1_000_000_000) as libc::c_long,
        };
        let timer = libc::itimerspec { it_interval: never, it_value: at };
        let fd = self.0.as_raw_fd();
        // SAFETY: `timer` is valid; a null pointer ignores the previous setting.
        let result = unsafe {
            libc::timerfd_settime(fd, libc::TFD_TIMER_ABSTIME, &timer, std::ptr::null_mut())
        };
        check(result).map(drop).doing(|| "set a timer".into())
    }
}

impl Poll {
    pub fn new() -> Result<Self> {
        // SAFETY: takes no pointers.
        let epoll = owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })
            .doing(|| "create an epoll instance".into())?;
        let poll = Self { epoll, timer: Timer::new()?, events: vec![NO_EVENT; EVENTS] };
        poll.add_timer(&poll.timer, Source::Timer)?;
        Ok(poll)
    }

    pub fn add_timer(&self, timer: &Timer, source: Source) -> Result<()> {
        // Edge-triggered, so that expirations need not be read.
        self.add(timer.0.as_raw_fd(), libc::EPOLLIN | libc::EPOLLET, source)
    }

    pub fn add(&self, fd: RawFd, interest: i32, source: Source) -> Result<()> {
        let mut event = libc::epoll_event { events: interest as u32, u64: source.to_token() };
        // SAFETY: `event` is valid for the call.
        let result =
            unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event) };
        check(result).map(drop).doing(|| "watch a descriptor".into())
    }

    pub fn remove(&self, fd: RawFd) -> Result<()> {
        let nothing = std::ptr::null_mut();
        // SAFETY: for this operation the kernel ignores the event, which may be null.
        let result =
            unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_DEL, fd, nothing) };
        check(result).map(drop).doing(|| "stop watching a descriptor".into())
    }

    /// Sets the time at which the timer of [`Source::Timer`] expires.
    pub fn set_timer(&self, at_ns: u64) -> Result<()> {
        self.timer.set(at_ns)
    }

    /// Sleeps until something is ready.
    pub fn wait(&mut self) -> Result<impl Iterator<Item = Source> + use<'_>> {
        // SAFETY: `events` has room for EVENTS entries.
        let ready = unsafe {
            let events = self.events.as_mut_ptr();
            libc::epoll_wait(self.epoll.as_raw_fd(), events, EVENTS as libc::c_int, -1)
        };
        let ready = match check(ready) {
            Ok(ready) => ready as usize,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(error).doing(|| "wait for sockets (epoll_wait)".into()),
        };
        Ok(self.events[..ready].iter().map(|event| Source::of_token(event.u64)))
    }
}

const NO_EVENT: libc::epoll_event = libc::epoll_event { events: 0, u64: 0 };

fn owned(fd: libc::c_int) -> io::Result<OwnedFd> {
    let fd = check(fd)?;
    // SAFETY: the kernel just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

impl Source {
    fn to_token(self) -> u64 {
        let (kind, number) = match self {
            Self::Timer => (0, 0),
            Self::Pings => (1, 0),
            Self::Listener(number) => (2, number),
            Self::Sender(number) => (3, number),
            Self::Receiver(number) => (4, number),
            Self::Client(number) => (5, number),
        };
        (number as u64) << KIND_BITS | kind
    }

    fn of_token(token: u64) -> Self {
        let number = (token >> KIND_BITS) as usize;
        match token & ((1 << KIND_BITS) - 1) {
            1 => Self::Pings,
            2 => Self::Listener(number),
            3 => Self::Sender(number),
            4 => Self::Receiver(number),
            5 => Self::Client(number),
            _ => Self::Timer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::{Domain, Socket, Type};
    use std::io::Write;
    use vcc_traffic::system::now_ns;

    #[test]
    fn a_token_is_of_one_source() {
        let sources = [Source::Timer, Source::Pings, Source::Listener(1)];
        let flows = [Source::Sender(70_000), Source::Receiver(3), Source::Client(9)];
        for source in sources.into_iter().chain(flows) {
            assert_eq!(Source::of_token(source.to_token()), source);
        }
    }

    #[test]
    fn ends_at_its_time_and_not_before() {
        let mut poll = Poll::new().unwrap();
        for _ in 0..3 {
            let at_ns = now_ns() + 1_000_000;
            poll.set_timer(at_ns).unwrap();
            assert_eq!(poll.wait().unwrap().collect::<Vec<_>>(), [Source::Timer]);
            assert!(now_ns() >= at_ns);
        }
        poll.set_timer(1).unwrap();
        assert_eq!(poll.wait().unwrap().count(), 1, "a time that has passed ends it at once");
    }

    #[test]
    fn tells_which_socket_is_ready() {
        let (here, there) = Socket::pair(Domain::UNIX, Type::STREAM, None).unwrap();
        let mut poll = Poll::new().unwrap();
        poll.add(here.as_raw_fd(), libc::EPOLLIN, Source::Receiver(7)).unwrap();
        (&there).write_all(b"x").unwrap();
        assert_eq!(poll.wait().unwrap().collect::<Vec<_>>(), [Source::Receiver(7)]);
        poll.remove(here.as_raw_fd()).unwrap();
        poll.set_timer(1).unwrap();
        assert_eq!(poll.wait().unwrap().collect::<Vec<_>>(), [Source::Timer]);
    }
}

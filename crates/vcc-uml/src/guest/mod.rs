//! A guest: its process, its clock, its card.

mod spec;
mod start;

use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use crate::card::{Card, CardSpec};
use crate::error::{Doing, Error, Result, protocol};
use crate::process::Process;
use crate::system::readable;
use crate::time_travel::{ClockLine, Heard, Op, Schedule};
use crate::vhost_user::CardLine;

pub use spec::{GuestSpec, VcpuSpec, Watch};
pub(crate) use start::{CLOCK_SOCKET, ROOT, Started, accept, check_sockets, greet, plan_file};

/// Interval at which a waiting thread checks for interrupts and timeouts.
const LOOK_UP: Duration = Duration::from_millis(100);
/// Wait on the clock alone while the guest's card is up; the card's socket then carries a message
/// only at the guest's end.
const CLOCK_ALONE: Duration = Duration::from_millis(1);
/// The guest's wall clock at its start: 2025-01-01.
const TIME_OF_DAY_NS: u64 = 1_735_689_600_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Waiting,
    Ended,
}

enum CardState {
    /// The guest has not connected yet; the first connection gets the specification.
    Offered(UnixListener, Option<Box<CardSpec>>),
    Connected(Box<Card>),
}

pub(crate) struct Guest {
    number: usize,
    process: Process,
    clock: ClockLine,
    schedule: Schedule,
    card: CardState,
    now_ns: u64,
    /// Time at which the guest itself wants to run.
    wants_ns: Option<u64>,
    state: State,
}

impl Guest {
    pub fn console(&self) -> String {
        self.process.console()
    }

    pub fn last_lines(&self) -> String {
        self.process.last_lines()
    }

    pub fn has_ended(&self) -> bool {
        self.state == State::Ended
    }

    pub fn card(&self) -> Option<&Card> {
        match &self.card {
            CardState::Connected(card) => Some(card),
            CardState::Offered(..) => None,
        }
    }

    pub fn card_mut(&mut self) -> Option<&mut Card> {
        match &mut self.card {
            CardState::Connected(card) => Some(card),
            CardState::Offered(..) => None,
        }
    }

    /// Time of its next event, its own or its card's.
    pub fn next_ns(&self) -> u64 {
        if self.has_ended() {
            return u64::MAX;
        }
        if self.owes_interrupt() {
            return self.now_ns;
        }
        self.wants_ns.unwrap_or(u64::MAX).min(self.card_ns()).max(self.now_ns)
    }

    fn owes_interrupt(&self) -> bool {
        self.card().is_some_and(Card::owes_interrupt)
    }

    /// Time of its card's next event that needs no guest.
    pub fn card_next_ns(&self) -> u64 {
        if self.has_ended() { u64::MAX } else { self.card_ns().max(self.now_ns) }
    }

    fn card_ns(&self) -> u64 {
        self.card().map_or(u64::MAX, Card::next_ns)
    }

    /// Has it an event due by now?
    pub fn is_due(&self) -> bool {
        let wants = self.wants_ns.is_some_and(|wants_ns| wants_ns <= self.now_ns);
        !self.has_ended() && (wants || self.owes_interrupt())
    }

    /// Have frames passed in either direction since the last call?
    pub fn take_passed_frames(&mut self) -> bool {
        self.card_mut().is_some_and(Card::take_passed_frames)
    }

    /// Runs it until it has no event before `end_ns`.
    pub fn run_until(&mut self, end_ns: u64, watch: &Watch) -> Result<()> {
        loop {
            let now_ns = self.next_ns();
            if now_ns >= end_ns {
                return Ok(());
            }
            self.come_to(now_ns)?;
            if self.is_due() {
                self.run(watch)?;
            }
        }
    }

    /// Advances its time to now without running it; its card does the work that is due.
    pub fn come_to(&mut self, now_ns: u64) -> Result<()> {
        self.now_ns = now_ns;
        self.schedule.set_current_ns(now_ns);
        let number = self.number;
        match &mut self.card {
            CardState::Connected(card) if card.next_ns() <= now_ns => {
                card.work(now_ns).doing(|| to_guest("run the card of", number))
            }
            _ => Ok(()),
        }
    }

    /// Runs it now: interrupts first.
    fn run(&mut self, watch: &Watch) -> Result<()> {
        let owed = self.card_mut().map_or(0, Card::take_owed);
        if owed != 0 {
            self.schedule.interrupt(owed);
        }
        // It must wait for any later time, so that the calendar learns of its sends.
        self.schedule.set_free_until_ns(self.now_ns + 1);
        self.wants_ns = None;
        self.state = State::Running;
        self.clock.run(self.now_ns).doing(|| self.doing("run"))?;
        self.until_it_waits(watch)
    }

    /// Serves it until it is idle at this time, or has ended.
    pub fn until_it_waits(&mut self, watch: &Watch) -> Result<()> {
        let mut last_progress = Instant::now();
        while self.state == State::Running {
            // Poll first the one that usually speaks.
            let is_up = self.card().is_some_and(Card::is_up);
            let progress = (is_up && self.serve_clock()?) || self.serve_whoever_speaks()?;
            if (watch.interrupted)() {
                return Err(Error::Interrupted);
            }
            if progress {
                last_progress = Instant::now();
            } else if last_progress.elapsed() > watch.patience {
                return Err(Error::Spins {
                    guest: self.number,
                    wall_s: watch.patience.as_secs(),
                    virtual_ns: self.now_ns,
                    console: self.last_lines(),
                });
            }
        }
        Ok(())
    }

    /// Serves the clock or the card. False if neither has spoken within LOOK_UP.
    fn serve_whoever_speaks(&mut self) -> Result<bool> {
        let card_fd = match &self.card {
            CardState::Offered(listener, _) => listener.as_fd(),
            CardState::Connected(card) => card.fd(),
        };
        let fds = [self.clock.fd(), card_fd];
        let [clock, card] = readable(fds, LOOK_UP).doing(|| self.doing("wait for"))?;
        if clock {
            self.serve_clock()
        } else if card {
            self.serve_card().map(|()| true)
        } else {
            Ok(false)
        }
    }

    /// Waits shortly for its clock. False if it has not spoken.
    fn serve_clock(&mut self) -> Result<bool> {
        let message = match self.clock.receive().doing(|| self.doing("receive from"))? {
            Heard::Message(message) => message,
            Heard::Nothing => return Ok(false),
            Heard::End => {
                self.state = State::Ended;
                return Ok(true);
            }
        };
        let answer_ns = match message.op {
            Op::Wait => {
                self.state = State::Waiting;
                self.wants_ns = self.schedule.requested_ns();
                return self.take_sent().map(|()| true);
            }
            Op::Ack => return Ok(true),
            Op::Request => {
                self.wants_ns = Some(message.time_ns);
                0
            }
            Op::Get => self.now_ns,
            Op::Update => self.advance_to(message.time_ns)?,
            Op::TimeOfDay => TIME_OF_DAY_NS,
            Op::Start | Op::Run => {
                return protocol(self.number, format!("{:?} after its start", message.op));
            }
        };
        self.clock.acknowledge(&message, answer_ns).doing(|| self.doing("answer")).map(|()| true)
    }

    fn advance_to(&mut self, now_ns: u64) -> Result<u64> {
        if now_ns < self.now_ns {
            let back = format!("time runs backwards, from {} to {now_ns} ns", self.now_ns);
            return protocol(self.number, back);
        }
        self.now_ns = now_ns;
        Ok(0)
    }

    /// Sends the frames that it has queued, at its current time.
    fn take_sent(&mut self) -> Result<()> {
        self.advance_to(self.schedule.current_ns())?;
        let number = self.number;
        match &mut self.card {
            CardState::Connected(card) => {
                card.take_sent(self.now_ns).doing(|| to_guest("take frames from", number))
            }
            CardState::Offered(..) => Ok(()),
        }
    }

    fn serve_card(&mut self) -> Result<()> {
        // The guest waits for the answer at the time that it has reached by itself.
        let now_ns = self.schedule.current_ns();
        self.advance_to(now_ns)?;
        let number = self.number;
        let doing = || to_guest("serve the card of", number);
        match &mut self.card {
            CardState::Offered(listener, spec) => {
                let (stream, _) = listener.accept().doing(doing)?;
                let Some(spec) = spec.take() else {
                    return protocol(self.number, "a second connection to its card");
                };
                let card = Card::new(*spec, CardLine::new(stream)).doing(doing)?;
                self.card = CardState::Connected(Box::new(card));
            }
            CardState::Connected(card) => {
                if !card.serve(now_ns).doing(doing)? {
                    self.clear_of_card()?;
                }
            }
        }
        Ok(())
    }

    /// The guest has closed its card: it is about to end, and only its clock is still in use.
    fn clear_of_card(&mut self) -> Result<()> {
        loop {
            match self.state {
                State::Running => drop(self.serve_clock()?),
                State::Waiting | State::Ended => return Ok(()),
            }
        }
    }

    fn doing(&self, what: &str) -> String {
        to_guest(what, self.number)
    }
}

fn to_guest(what: &str, number: usize) -> String {
    format!("{what} guest {number}")
}

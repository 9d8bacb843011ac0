//! A guest: its process, its clock, its card.

mod spec;
mod start;

use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::rc::Rc;
use std::slice;
use std::time::{Duration, Instant};

use crate::card::{Card, CardSpec};
use crate::error::{Doing, Error, Result, protocol};
use crate::process::Process;
use crate::system::readable;
use crate::time_travel::{ClockLine, Heard, Op, Schedule};
use crate::turns::Turns;
use crate::vhost_user::CardLine;

pub use spec::{GuestSpec, VcpuSpec, Watch};
pub(crate) use start::{CLOCK_SOCKET, ROOT, Started, accept, check_sockets, greet, plan_file};

/// Interval at which a waiting thread checks for interrupts and timeouts.
const LOOK_UP: Duration = Duration::from_millis(100);
/// Wait on the end of turns, or on the clock, alone while the guest's card is up; the card's socket then
/// carries a message only at the guest's end.
const CLOCK_ALONE: Duration = Duration::from_millis(1);
/// The guest's wall clock at its start: 2025-01-01.
const TIME_OF_DAY_NS: u64 = 1_735_689_600_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Waiting,
    Ended,
}

/// How a guest ends its turn and receives the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Message,
    /// In the page of turns.
    Turn,
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
    turns: Rc<Turns>,
    /// While it runs: how it will end its turn.
    waits_by: By,
    card: CardState,
    has_closed_card: bool,
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
        let turns = Rc::clone(&self.turns);
        while self.start_before(end_ns)? {
            finish(&turns, slice::from_mut(self), &[0], watch)?;
        }
        Ok(())
    }

    /// Advances it to its first event before `end_ns` that needs it, and starts it there. False if there
    /// is none.
    pub fn start_before(&mut self, end_ns: u64) -> Result<bool> {
        loop {
            let now_ns = self.next_ns();
            if now_ns >= end_ns {
                return Ok(false);
            }
            self.come_to(now_ns)?;
            if self.is_due() {
                return self.start().map(|()| true);
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

    /// Starts it now: interrupts first.
    fn start(&mut self) -> Result<()> {
        let owed = self.card_mut().map_or(0, Card::take_owed);
        if owed != 0 {
            self.schedule.interrupt(owed);
        }
        // It must wait for any later time, so that the calendar learns of its sends.
        self.schedule.set_free_until_ns(self.now_ns + 1);
        self.wants_ns = None;
        self.state = State::Running;
        // While its card is being set up, it sends messages, which are waited for.
        let by_turns = self.schedule.has_turns() && self.card().is_some_and(Card::is_up);
        self.schedule.set_by_turns(by_turns);
        if by_turns {
            self.turns.expect_end();
        }
        let waits_by = if by_turns { By::Turn } else { By::Message };
        match std::mem::replace(&mut self.waits_by, waits_by) {
            By::Message => self.clock.run(self.now_ns).doing(|| self.doing("run")),
            By::Turn => {
                self.schedule.give_turn();
                self.turns.call(self.number);
                Ok(())
            }
        }
    }

    /// It waits: takes what it wants and what it has sent.
    fn note_wait(&mut self) -> Result<()> {
        self.state = State::Waiting;
        self.wants_ns = self.schedule.requested_ns();
        self.take_sent()
    }

    fn spins(&self, watch: &Watch) -> Error {
        Error::Spins {
            guest: self.number,
            wall_s: watch.patience.as_secs(),
            virtual_ns: self.now_ns,
            console: self.last_lines(),
        }
    }

    /// Serves it until it is idle at this time, or has ended.
    pub fn until_it_waits(&mut self, watch: &Watch) -> Result<()> {
        let mut last_progress = Instant::now();
        while self.state == State::Running {
            // Poll first the one that usually speaks.
            let is_up = self.card().is_some_and(Card::is_up);
            let progress = (is_up && self.serve_clock()?) || self.serve_whoever_speaks(LOOK_UP)?;
            if (watch.interrupted)() {
                return Err(Error::Interrupted);
            }
            if progress {
                last_progress = Instant::now();
            } else if last_progress.elapsed() > watch.patience {
                return Err(self.spins(watch));
            }
        }
        Ok(())
    }

    /// Serves the clock or the card. False if neither has spoken in time.
    fn serve_whoever_speaks(&mut self, patience: Duration) -> Result<bool> {
        let clock_fd = self.clock.fd();
        let card_fd = match &self.card {
            // Closed, it is always readable.
            _ if self.has_closed_card => clock_fd,
            CardState::Offered(listener, _) => listener.as_fd(),
            CardState::Connected(card) => card.fd(),
        };
        let [clock, card] =
            readable([clock_fd, card_fd], patience).doing(|| self.doing("wait for"))?;
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
            Op::Wait => return self.note_wait().map(|()| true),
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
                // Without its card it is about to end, and only its clock is still in use.
                self.has_closed_card = !card.serve(now_ns).doing(doing)?;
            }
        }
        Ok(())
    }

    fn doing(&self, what: &str) -> String {
        to_guest(what, self.number)
    }
}

fn to_guest(what: &str, number: usize) -> String {
    format!("{what} guest {number}")
}

/// Lets guests that were started run until each is idle at its time, or has ended.
pub(crate) fn finish(
    turns: &Turns,
    guests: &mut [Guest],
    started: &[usize],
    watch: &Watch,
) -> Result<()> {
    let doing = || "wait for guests".to_owned();
    turns.begin().doing(doing)?;
    let mut last_progress = Instant::now();
    while !turns.await_end(CLOCK_ALONE).doing(doing)? {
        if (watch.interrupted)() {
            return Err(Error::Interrupted);
        }
        let mut running = None;
        for &number in started {
            let guest = &mut guests[number];
            if guest.waits_by != By::Turn || guest.has_ended() || !guest.schedule.has_turn() {
                continue;
            }
            if guest.serve_whoever_speaks(Duration::ZERO)? {
                last_progress = Instant::now();
            }
            if guest.has_ended() {
                turns.expect_no_end();
            } else {
                running.get_or_insert(number);
            }
        }
        if let Some(number) = running.filter(|_| last_progress.elapsed() > watch.patience) {
            return Err(guests[number].spins(watch));
        }
    }
    for &number in started {
        let guest = &mut guests[number];
        match guest.waits_by {
            By::Turn if !guest.has_ended() => guest.note_wait()?,
            By::Turn => {}
            By::Message => guest.until_it_waits(watch)?,
        }
    }
    if (watch.interrupted)() { Err(Error::Interrupted) } else { Ok(()) }
}

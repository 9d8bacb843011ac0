//! One guest: its process, its clock, its card.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::card::{Card, CardSpec};
use crate::error::{Doing, Error, Result, protocol};
use crate::process::Process;
use crate::system::readable;
use crate::time_travel::{ClockLine, Heard, Message, Op, Schedule};
use crate::vcpu::Load;
use crate::vhost_user::CardLine;

/// How often somebody who waits looks up.
const LOOK_UP: Duration = Duration::from_millis(100);
/// How long a guest whose card is up is heard on its clock alone. It speaks to its card only when it
/// ends.
const CLOCK_ALONE: Duration = Duration::from_millis(1);
/// What a guest believes the date to be when it starts: the 1st of January 2025.
const TIME_OF_DAY_NS: u64 = 1_735_689_600_000_000_000;

/// What ends a run before its guests do.
pub struct Watch<'a> {
    /// Asked several times a second.
    pub interrupted: &'a dyn Fn() -> bool,
    /// How long a guest may run, by the clock on the wall, without an end of the moment that it is
    /// in. In virtual time a CPU is infinitely fast, so a guest that waits in a loop for time to pass
    /// waits for ever.
    pub patience: Duration,
    /// The time of the guests by which all of them must have ended. One that is kept alive by its
    /// timers alone would go on for ever.
    pub ends_by_ns: u64,
}

pub struct GuestSpec {
    pub memory_mib: u32,
    /// The text of the file whose path is in the environment of the guest's init, as `plan`.
    pub plan: String,
    pub card: CardSpec,
    /// Its TCP waits with more until what it has sent has left the card (Linux since 3.6). Without,
    /// the card's driver lets go of what it has taken, as that of virtio did up to 4.11.
    pub small_queues: bool,
    /// None: it has a core of its own, and never waits for it.
    pub vcpu: Option<VcpuSpec>,
}

/// A guest's virtual CPU, where it shares a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VcpuSpec {
    /// Position in [`WorldSpec::cores`](crate::WorldSpec).
    pub core: usize,
    /// What it computes beside the network.
    pub load: Option<Load>,
}

/// Where the guests of a run find each other's world, relative to the directory they run in.
pub(crate) const CLOCK_SOCKET: &str = "clock";
pub(crate) const ROOT: &str = "root";

pub(crate) fn plan_file(guest: usize) -> String {
    format!("{ROOT}/plan/{guest}")
}

/// Room in a socket's address (unix(7)), but for the zero that ends it.
const SOCKET_PATH_BYTES: usize = 107;

/// The sockets of so many guests can be made in the directory.
pub(crate) fn check_sockets(directory: &Path, guests: usize) -> Result<()> {
    let longest = directory.join(card_socket(guests.saturating_sub(1)));
    let excess = longest.as_os_str().len().saturating_sub(SOCKET_PATH_BYTES);
    if excess == 0 {
        return Ok(());
    }
    let bytes = directory.as_os_str().len();
    let directory = directory.display().to_string();
    Err(Error::LongPath { directory, bytes, most: bytes - excess })
}

fn card_socket(guest: usize) -> String {
    format!("card{guest}")
}

/// A guest that was started; it has not yet said so.
pub(crate) struct Started {
    process: Process,
    card_listener: UnixListener,
    card: CardSpec,
}

impl Started {
    pub fn start(kernel: &Path, directory: &Path, guest: usize, spec: GuestSpec) -> Result<Self> {
        let socket = directory.join(card_socket(guest));
        let card_listener =
            UnixListener::bind(&socket).doing(|| format!("listen on {}", socket.display()))?;
        let mtu_bytes = spec.card.mtu_bytes;
        let mut arguments = vec![
            format!("mem={}M", spec.memory_mib),
            "root=/dev/root".into(),
            "rootfstype=hostfs".into(),
            // The command line is part of a guest's entropy, so no path in it is of this run alone.
            format!("rootflags=/proc/self/cwd/{ROOT}"),
            "ro".into(),
            "init=/init".into(),
            format!("plan=/plan/{guest}"),
            format!("mtu={mtu_bytes}"),
            format!("umid=guest{guest}"),
            "uml_dir=uml/".into(),
            "con0=null,fd:1".into(),
            "con=null".into(),
            "quiet".into(),
            format!("time-travel=ext:{guest}:{CLOCK_SOCKET}"),
            format!("virtio_uml.device={}:1", card_socket(guest)),
        ];
        if !spec.small_queues {
            // The driver then owns what it sends (skb_orphan), and frees it when it sends more.
            arguments.push("virtio_net.napi_tx=0".into());
        }
        let name = format!("guest{guest}");
        let process = Process::start(kernel, &arguments, directory, &name)?;
        Ok(Self { process, card_listener, card: spec.card })
    }

    pub fn last_lines(&self) -> String {
        self.process.last_lines()
    }

    pub fn has_ended(&mut self) -> bool {
        self.process.has_ended()
    }

    pub fn into_guest(self, number: usize, clock: ClockLine, schedule: Schedule) -> Guest {
        Guest {
            number,
            process: self.process,
            clock,
            schedule,
            card: CardState::Offered(self.card_listener, Some(Box::new(self.card))),
            now_ns: 0,
            wants_ns: None,
            state: State::Running,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Waiting,
    Ended,
}

enum CardState {
    /// The guest has not connected to it yet; the specification goes with the first that does.
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
    /// When it wants to run, of itself.
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

    /// When it next has something to do: of itself, or because its card has.
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

    /// When its card, which needs no guest for that, next has something to do.
    pub fn card_next_ns(&self) -> u64 {
        if self.has_ended() { u64::MAX } else { self.card_ns().max(self.now_ns) }
    }

    fn card_ns(&self) -> u64 {
        self.card().map_or(u64::MAX, Card::next_ns)
    }

    /// Whether it has something to do by now.
    pub fn is_due(&self) -> bool {
        let wants = self.wants_ns.is_some_and(|wants_ns| wants_ns <= self.now_ns);
        !self.has_ended() && (wants || self.owes_interrupt())
    }

    /// Whether frames have passed from it or to it since this was last asked.
    pub fn take_passed_frames(&mut self) -> bool {
        self.card_mut().is_some_and(Card::take_passed_frames)
    }

    /// Runs it until it has nothing to do before `end_ns`.
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

    /// Lets time pass for it up to now, in which its card does what is due, and it does not run.
    pub fn come_to(&mut self, now_ns: u64) -> Result<()> {
        self.now_ns = now_ns;
        self.schedule.set_current_ns(now_ns);
        let number = self.number;
        match &mut self.card {
            CardState::Connected(card) if card.next_ns() <= now_ns => {
                card.work(now_ns).doing(|| to_guest("work on the card of", number))
            }
            _ => Ok(()),
        }
    }

    /// Runs it now, for this moment: its interrupts first.
    fn run(&mut self, watch: &Watch) -> Result<()> {
        let owed = self.card_mut().map_or(0, Card::take_owed);
        if owed != 0 {
            self.schedule.interrupt(owed);
        }
        // Whatever it wants to do later, it waits for, and so this hears of what it did now.
        self.schedule.set_free_until_ns(self.now_ns + 1);
        self.wants_ns = None;
        self.state = State::Running;
        self.clock.run(self.now_ns).doing(|| self.doing("run"))?;
        self.until_it_waits(watch)
    }

    /// Serves it until it has nothing more to do at this time, or has ended.
    pub fn until_it_waits(&mut self, watch: &Watch) -> Result<()> {
        let mut last_progress = Instant::now();
        while self.state == State::Running {
            // Of two who may speak, the one who usually does.
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

    /// False where nobody has, for as long as somebody who waits does not look up.
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

    /// Waits for its clock to speak, but not for long; false if it has not.
    fn serve_clock(&mut self) -> Result<bool> {
        let message = match self.clock.receive().doing(|| self.doing("hear from"))? {
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
                return protocol(self.number, format!("{:?} after it had started", message.op));
            }
        };
        self.clock.acknowledge(&message, answer_ns).doing(|| self.doing("answer")).map(|()| true)
    }

    fn advance_to(&mut self, now_ns: u64) -> Result<u64> {
        if now_ns < self.now_ns {
            let back = format!("its time goes back from {} to {now_ns} ns", self.now_ns);
            return protocol(self.number, back);
        }
        self.now_ns = now_ns;
        Ok(0)
    }

    /// What it has put up to send leaves it at the time that it has come to.
    fn take_sent(&mut self) -> Result<()> {
        self.advance_to(self.schedule.current_ns())?;
        let number = self.number;
        match &mut self.card {
            CardState::Connected(card) => {
                card.take_sent(self.now_ns).doing(|| to_guest("take what is sent by", number))
            }
            CardState::Offered(..) => Ok(()),
        }
    }

    fn serve_card(&mut self) -> Result<()> {
        // The guest stands still until it is answered; so far it has come by itself.
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

    /// The guest has closed its card: it is about to end, and only its clock speaks still.
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

/// Takes the first message of a guest: its number, and the line itself.
pub(crate) fn greet(mut clock: ClockLine, guests: usize) -> Result<(usize, ClockLine, Message)> {
    let message = clock.receive().doing(|| "hear from a new guest".into())?;
    match message {
        Heard::Message(message)
            if message.op == Op::Start && (message.time_ns as usize) < guests =>
        {
            Ok((message.time_ns as usize, clock, message))
        }
        Heard::Message(message) => {
            Err(Error::Stranger { what: format!("{message:?} at its start, of {guests} guests") })
        }
        Heard::Nothing | Heard::End => Err(Error::Stranger { what: "nothing, and ends".into() }),
    }
}

/// Answers that first message. The guest runs from then on, at time 0.
pub(crate) fn accept(clock: &mut ClockLine, start: &Message, guest: usize) -> Result<Schedule> {
    let doing = || format!("start the clock of guest {guest}");
    let schedule = Schedule::create(guest).doing(doing)?;
    let log = OwnedFd::from(std::fs::File::create("/dev/null").doing(doing)?);
    clock.accept(start, &schedule, &log).doing(doing)?;
    clock.look_up_every(CLOCK_ALONE).doing(doing)?;
    Ok(schedule)
}

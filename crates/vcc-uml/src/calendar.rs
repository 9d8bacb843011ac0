//! The calendar: runs all guests in one virtual time, through one network.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::error::{Doing, Error, Result};
use crate::files::Room;
use crate::guest::{
    CLOCK_SOCKET, Guest, GuestSpec, ROOT, Started, Watch, accept, check_sockets, finish, greet,
    plan_file,
};
use crate::kernel::Kernel;
use crate::shared_core::SharedCore;
use crate::system::{OneCpu, readable};
use crate::temp_dir::TempDir;
use crate::time_travel::{ClockLine, Message};
use crate::turns::Turns;
use crate::vcpu::{Core, CoreSpec};
use vcc_domain::Port;

/// Window while fewer than two cards are up, when no frame can reach another guest.
const BOOT_WINDOW_NS: u64 = 1_000_000;
const LOOK_UP: Duration = Duration::from_millis(100);
const DIRECTORIES: [&str; 5] = ["plan", "proc", "sys", "dev", "tmp"];

/// A frame's arrival at a guest.
#[derive(Debug)]
pub struct Delivery {
    pub guest: usize,
    pub at_ns: u64,
    pub frame: Vec<u8>,
}

/// The network between the cards.
pub trait Network {
    /// Minimum delay from a frame's departure to its arrival, or to its first interaction with
    /// another frame. Not 0.
    fn lookahead_ns(&self) -> u64;
    /// A frame leaves a guest's card. Called in order of time.
    fn inject(&mut self, guest: usize, at_ns: u64, frame: Vec<u8>);
    /// Time of the network's next event.
    fn next_ns(&self) -> Option<u64>;
    /// Advances the network to `end_ns`, exclusive, and returns the first delivery.
    fn next_delivery(&mut self, end_ns: u64) -> Option<Delivery>;
}

/// Progress of a run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Moment {
    pub virtual_ns: u64,
    pub windows: u64,
    pub frames: u64,
}

/// The guests of a world and the cores that they share.
pub struct WorldSpec {
    pub guests: Vec<GuestSpec>,
    /// Cores shared by several virtual CPUs.
    pub cores: Vec<CoreSpec>,
}

pub struct World {
    guests: Vec<Guest>,
    turns: Rc<Turns>,
    /// Guests with a core of their own.
    alone: Vec<usize>,
    cores: Vec<SharedCore>,
    /// Two cards have been up at once.
    have_met: bool,
    /// One guest runs at a time, so a second CPU would only add the cost of waking it up for each
    /// turn.
    _cpu: OneCpu,
    // Dropped after the guests, whose files and working directory they are.
    _room: Room,
    _directory: TempDir,
}

impl World {
    /// Starts the guests from the program `init` and waits until all of them are idle. They end
    /// when the calling thread does.
    pub fn boot(kernel: &Kernel, init: &[u8], spec: WorldSpec, watch: &Watch) -> Result<Self> {
        let WorldSpec { guests: specs, cores } = spec;
        let room = Room::make(specs.len())?;
        let alone = (0..specs.len()).filter(|&guest| specs[guest].vcpu.is_none()).collect();
        let cores = cores.iter().enumerate().map(|(core, spec)| shared_core(core, spec, &specs));
        let cores = cores.collect();
        let cpu = OneCpu::hold().doing(|| "pin the process to one CPU".into())?;
        let directory = TempDir::create("vcc-guests")?;
        let path = directory.path();
        check_sockets(path, specs.len())?;
        make_root(path, init, &specs)?;
        let listener = UnixListener::bind(path.join(CLOCK_SOCKET))
            .doing(|| format!("listen on {}", path.display()))?;
        let started = specs.into_iter().enumerate();
        let mut started = started
            .map(|(guest, spec)| Started::start(kernel, path, guest, spec))
            .collect::<Result<Vec<_>>>()?;
        let turns = Rc::new(Turns::create().doing(|| "create the guests' page of turns".into())?);
        let mut guests = Vec::new();
        let lines = await_all(&listener, &mut started, watch)?;
        for (number, (started, (mut clock, start))) in started.into_iter().zip(lines).enumerate() {
            let schedule = accept(&mut clock, &start, number, &turns)?;
            guests.push(started.into_guest(number, clock, schedule, Rc::clone(&turns)));
        }
        guests.iter_mut().try_for_each(|guest| guest.until_it_waits(watch))?;
        let (have_met, _cpu, _room, _directory) = (false, cpu, room, directory);
        Ok(Self { guests, turns, alone, cores, have_met, _cpu, _room, _directory })
    }

    /// Runs until every guest has ended. `tick` is called with the progress from time to time.
    pub fn run(
        &mut self,
        network: &mut dyn Network,
        watch: &Watch,
        tick: &mut dyn FnMut(&Moment),
    ) -> Result<Moment> {
        let mut moment = Moment::default();
        let mut last_tick = Instant::now();
        let mut sent = Vec::new();
        let mut last_end_ns = 0;
        while !self.guests.iter().all(Guest::has_ended) {
            let next_ns = self.next_ns().min(network.next_ns().unwrap_or(u64::MAX));
            if next_ns == u64::MAX {
                return Err(self.stuck());
            }
            if next_ns > watch.ends_by_ns {
                return Err(self.overdue(next_ns));
            }
            let end_ns = next_ns + self.window_ns(network);
            moment.virtual_ns = next_ns;
            moment.windows += 1;
            while let Some(Delivery { guest, at_ns, frame }) = network.next_delivery(end_ns) {
                debug_assert!(at_ns >= last_end_ns, "a frame arrives in the past of its guest");
                if let Some(card) = self.guests[guest].card_mut() {
                    card.arrive(at_ns, frame);
                    moment.frames += 1;
                }
            }
            self.run_alone(end_ns, watch)?;
            for core in &mut self.cores {
                core.run_until(&mut self.guests, end_ns, watch)?;
            }
            for (number, guest) in self.guests.iter_mut().enumerate() {
                let Some(card) = guest.card_mut() else { continue };
                while let Some((at_ns, frame)) = card.next_sent(end_ns) {
                    sent.push((at_ns, number, frame));
                }
            }
            // A guest's frames are in order; those of several are merged by time, then by guest.
            sent.sort_by_key(|&(at_ns, guest, _)| (at_ns, guest));
            for (at_ns, guest, frame) in sent.drain(..) {
                network.inject(guest, at_ns, frame);
            }
            last_end_ns = end_ns;
            if last_tick.elapsed() >= LOOK_UP {
                last_tick = Instant::now();
                tick(&moment);
            }
        }
        Ok(moment)
    }

    /// Runs the guests with a core of their own until they have no event before `end_ns`. All that have
    /// one run together, up to the next of each.
    fn run_alone(&mut self, end_ns: u64, watch: &Watch) -> Result<()> {
        let mut started = self.alone.clone();
        while !started.is_empty() {
            let mut next = Vec::with_capacity(started.len());
            for guest in started {
                if self.guests[guest].start_before(end_ns)? {
                    next.push(guest);
                }
            }
            finish(&self.turns, &mut self.guests, &next, watch)?;
            started = next;
        }
        Ok(())
    }

    fn next_ns(&self) -> u64 {
        let sent = self.guests.iter().filter_map(|guest| guest.card()?.next_sent_ns());
        let alone = self.alone.iter().map(|&guest| self.guests[guest].next_ns());
        let cores = self.cores.iter().map(|core| core.next_ns(&self.guests));
        sent.chain(alone).chain(cores).min().unwrap_or(u64::MAX)
    }

    fn window_ns(&mut self, network: &dyn Network) -> u64 {
        // Stays set: frames may still be in flight when a guest's card goes down.
        if !self.have_met {
            let is_up = |guest: &&Guest| guest.card().is_some_and(|card| card.is_up());
            self.have_met = self.guests.iter().filter(is_up).count() >= 2;
        }
        if self.have_met { network.lookahead_ns() } else { BOOT_WINDOW_NS }
    }

    fn stuck(&self) -> Error {
        self.of_first_left(|guest, console| Error::Stuck { guest, console })
    }

    fn overdue(&self, virtual_ns: u64) -> Error {
        self.of_first_left(|guest, console| Error::Overdue { guest, virtual_ns, console })
    }

    /// Builds an error with the number of a guest that has not ended and the end of its console.
    fn of_first_left(&self, error: impl FnOnce(usize, String) -> Error) -> Error {
        match self.guests.iter().position(|guest| !guest.has_ended()) {
            Some(number) => error(number, self.guests[number].last_lines()),
            None => Error::Interrupted,
        }
    }

    /// A guest's console output.
    pub fn console(&self, guest: usize) -> String {
        self.guests[guest].console()
    }

    /// A guest's port of the driver domain, once its card is up.
    pub fn port(&self, guest: usize) -> Option<&Port> {
        self.guests[guest].card().and_then(|card| card.port())
    }

    /// Frames dropped because a guest had no receive buffer.
    pub fn missed_frames(&self) -> u64 {
        self.guests.iter().filter_map(Guest::card).map(|card| card.missed_frames()).sum()
    }
}

/// A shared core with its guests.
fn shared_core(core: usize, spec: &CoreSpec, specs: &[GuestSpec]) -> SharedCore {
    let vcpus = specs.iter().enumerate().filter_map(|(guest, spec)| Some((guest, spec.vcpu?)));
    let (guests, loads): (Vec<usize>, Vec<_>) =
        vcpus.filter(|(_, vcpu)| vcpu.core == core).map(|(guest, vcpu)| (guest, vcpu.load)).unzip();
    SharedCore::new(Core::new(spec, loads), guests)
}

/// The guests' root file system: the program, their plans, and mount points for the kernel.
fn make_root(directory: &Path, init: &[u8], specs: &[GuestSpec]) -> Result<()> {
    let make = || {
        let root = directory.join(ROOT);
        for name in DIRECTORIES {
            fs::create_dir_all(root.join(name))?;
        }
        fs::create_dir(directory.join("uml"))?;
        fs::write(root.join("init"), init)?;
        fs::set_permissions(root.join("init"), Permissions::from_mode(0o755))?;
        let mut plans = specs.iter().enumerate();
        plans.try_for_each(|(guest, spec)| fs::write(directory.join(plan_file(guest)), &spec.plan))
    };
    make().doing(|| format!("create the guests' files in {}", directory.display()))
}

/// Waits for the guests' first messages, in order of their numbers. The patience applies to each.
fn await_all(
    listener: &UnixListener,
    started: &mut [Started],
    watch: &Watch,
) -> Result<Vec<(ClockLine, Message)>> {
    use std::os::fd::AsFd;

    let mut last_greeted = Instant::now();
    let mut lines: Vec<Option<(ClockLine, Message)>> = started.iter().map(|_| None).collect();
    while let Some(missing) = lines.iter().position(Option::is_none) {
        let doing = || "wait for guests to start".to_owned();
        let [is_there] = readable([listener.as_fd()], LOOK_UP).doing(doing)?;
        if (watch.interrupted)() {
            return Err(Error::Interrupted);
        }
        if is_there {
            let (stream, _) = listener.accept().doing(doing)?;
            let (guest, clock, start) = greet(ClockLine::new(stream), started.len())?;
            lines[guest] = Some((clock, start));
            last_greeted = Instant::now();
            continue;
        }
        let mut absent = (0..started.len()).filter(|&guest| lines[guest].is_none());
        let ended = absent.find(|&guest| started[guest].has_ended());
        if ended.is_some() || last_greeted.elapsed() > watch.patience {
            let guest = ended.unwrap_or(missing);
            return Err(Error::DidNotBoot { guest, console: started[guest].last_lines() });
        }
    }
    Ok(lines.into_iter().flatten().collect())
}

//! The programs of a host in the kernel, and the maps that its ports share. They are verified once
//! for all ports; what is attached to a port only calls them, with the port's index.

mod load;
mod pinned;
mod underlays;

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::thread;
use std::time::Duration;

use libbpf_rs::{ErrorKind, MapCore, MapFlags, Object};
use vcc_engine::sys;

use crate::arrival::Origin;
use crate::clock::now_s;
use crate::maps::{self, Maps};
use crate::plain::{from_bytes, to_bytes};
use crate::policy::SharedPolicy;
use crate::sweep::{self, Sweep};
use crate::tcx::{self, Hook, Tag};
use crate::timers::{self, Timers};
use crate::{
    Arrived, Error, Flow, Program, Result, Turning, Underlays, arrival, object, params, pins, ring,
    usage,
};
pub(crate) use load::{Room, layout};
pub(crate) use pinned::{
    FROM_GUEST, Found, LAYOUT, PLACE, free_next, nexts, remove_at, require_capabilities,
};
#[cfg(test)]
pub(crate) use pinned::{NEXT, say_layout};
pub use underlays::{Loading, Unloading};

/// The maps, and the programs that ports call. Unless it is pinned, it ends with the last value and
/// the last port.
pub struct Host {
    pub(crate) maps: Maps,
    programs: Programs,
    is_pinned: bool,
    /// This process has loaded the programs, and there was no host before.
    is_new: bool,
    /// For a host that is not pinned, where the kernel has no timers.
    turning: Option<Turning>,
}

impl Host {
    /// One that is not pinned. `yardsticks`: the object has the programs of benchmarks, too.
    pub(crate) fn load(
        policy: Option<&SharedPolicy>,
        room: Room,
        yardsticks: bool,
    ) -> Result<(Self, Object)> {
        let underlays = Underlays::of_this_process();
        let (mut host, object) = Self::load_with(policy, room, yardsticks, &underlays)?;
        host.turning = host.turn_wheels()?;
        Ok((host, object))
    }

    /// A host that is about to replace the pinned one, and is pinned next to it until then.
    pub(crate) fn load_beside(policy: &SharedPolicy, underlays: &Underlays) -> Result<Self> {
        Ok(Self::load_with(Some(policy), Room::OF_HOST, false, underlays)?.0)
    }

    fn load_with(
        policy: Option<&SharedPolicy>,
        room: Room,
        yardsticks: bool,
        underlays: &Underlays,
    ) -> Result<(Self, Object)> {
        let object = load::fresh(policy, room, yardsticks, underlays)?;
        let (maps, programs) = (Maps::from_object(&object)?, Programs::from_object(&object)?);
        let host = Self { maps, programs, is_pinned: false, is_new: true, turning: None };
        host.call()?;
        Ok((host, object))
    }

    /// Would the kernel take the programs with these underlays?
    pub(crate) fn verify(underlays: &Underlays) -> Result<()> {
        load::fresh(None, Room::for_one(1), false, underlays).map(drop)
    }

    /// Turns the wheels of the ports as long as the value is there; None if the kernel's timers do.
    pub fn turn_wheels(&self) -> Result<Option<Turning>> {
        const DOING: &str = "turn the wheels of the ports";
        let Some(turn) = &self.programs.turn else { return Ok(None) };
        let turn = turn.try_clone().map_err(|e| Error::system(DOING, e))?;
        let is_pinned = self.is_pinned;
        // Another process may have replaced the programs since.
        let program = move || match pinned::program(is_pinned, Program::Turn) {
            Some(turn) => Ok(turn),
            None => turn.try_clone(),
        };
        Turning::begin(Timers::new(maps::keep(&self.maps.timers)?, program)).map(Some)
    }

    /// Makes the ports call the programs. What they call comes last: until then, they call what they
    /// called before, which may hand a segment on to what is there already.
    fn call(&self) -> Result<()> {
        for hook in Hook::BOTH {
            let array = self.maps.calls(hook);
            for (call, name) in hook.host_program_names().iter().enumerate().rev() {
                let program = self.programs.get(name).as_raw_fd().to_ne_bytes();
                array
                    .update(&(call as u32).to_ne_bytes(), &program, MapFlags::ANY)
                    .map_err(|e| Error::system("let ports call the datapath", e))?;
            }
        }
        Ok(())
    }

    /// Makes room for a port, to which nothing is attached yet. No flow may be left of another port
    /// that had the index. Returns the generation of ports with that index.
    pub(crate) fn enter(&self, index: u32, port: &sys::vcc_port) -> Result<u32> {
        let key = index.to_ne_bytes();
        let failed = |e| Error::system("make room for a port", e);
        // A wheel stays for the next port with the index: the kernel may give the memory of an entry
        // that is removed to another one at once, and a timer may still have it in its hands.
        let none = vec![0; self.maps.wheels.value_size() as usize];
        match self.maps.wheels.update(&key, &none, MapFlags::NO_EXIST) {
            Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(failed(e)),
            _ => {}
        }
        let cpus = libbpf_rs::num_possible_cpus().map_err(failed)?;
        let none = vec![vec![0; size_of::<sys::vcc_counts>()]; cpus];
        self.maps.counts.update_percpu(&key, &none, MapFlags::ANY).map_err(failed)?;
        let none = sys::vcc_usage::default();
        self.maps.usage.update(&key, to_bytes(&none), MapFlags::ANY).map_err(failed)?;
        let before = params::read(&self.maps.ports, index)?;
        let constants = self.maps.constants().ok_or_else(|| Error::layout("read the limits"))?;
        let port = sys::vcc_port {
            flows_max: port.flows_max.min(constants.flows_max),
            generation: before.generation.wrapping_add(1),
            // Of a port that comes from another version, the time stays.
            attached_s: if port.attached_s == 0 { now_s() } else { port.attached_s },
            ..*port
        };
        params::write(&self.maps.ports, index, &port)?;
        Ok(port.generation)
    }

    /// The number of connections of all ports, and the number that they may have together.
    pub fn connections(&self) -> Result<(u32, u32)> {
        const DOING: &str = "read how full the table of all ports is";
        let value = self.maps.host_usage.lookup(&[0; 4], MapFlags::ANY);
        let value = value.map_err(|e| Error::system(DOING, e))?;
        let used: Option<sys::vcc_host_usage> = value.as_deref().and_then(from_bytes);
        let used = used.ok_or_else(|| Error::layout(DOING))?;
        let constants = self.maps.constants().ok_or_else(|| Error::layout(DOING))?;
        Ok((used.flows, constants.flows_max))
    }

    /// The kernel's memory of the tables of all ports.
    pub fn tables_bytes(&self) -> Result<u64> {
        self.maps.memory_bytes()
    }

    /// Lets the flows of a port expire, which has none yet.
    pub(crate) fn open_wheel(&self, index: u32) -> Result<()> {
        self.with_sweep(|sweep| sweep::open(sweep, index))
    }

    /// Lets the programs of this value expire a port's flows.
    pub(crate) fn renew_wheel(&self, index: u32) -> Result<()> {
        self.with_sweep(|sweep| sweep::renew(sweep, index))
    }

    /// Forgets a port to which nothing is attached any more, and its flows, which return what they
    /// hold of pools. Returns how many there were.
    pub(crate) fn leave(&self, index: u32) -> Result<u32> {
        self.with_sweep(|sweep| sweep::close(sweep, index))?;
        let forgotten = match self.forget_all(index) {
            Ok(forgotten) => forgotten,
            Err(error) => {
                // What is left expires.
                self.renew_wheel(index)?;
                return Err(error);
            }
        };
        self.forget_neighbours(index)?;
        // Of processes that still trace the port, or send to its guest.
        ring::remove(&self.maps.events, index)?;
        ring::remove(&self.maps.traces, index)?;
        if self.is_pinned {
            pins::remove_roles(index)?;
        }
        Ok(forgotten)
    }

    /// A run of the port's timer that had begun may hold a flow, or move it behind the sweep.
    fn forget_all(&self, index: u32) -> Result<u32> {
        const TRIES: u32 = 100;
        const PAUSE: Duration = Duration::from_millis(1);
        let mut forgotten = 0;
        for _ in 0..TRIES {
            forgotten += self.sweep(index, Sweep::Forget)?;
            if usage::read(&self.maps.usage, index)?.flows == 0 {
                return Ok(forgotten);
            }
            thread::sleep(PAUSE);
        }
        let flows = usage::read(&self.maps.usage, index)?.flows;
        Err(Error::System {
            doing: "forget the connections of a port".into(),
            why: format!("{flows} are held by a CPU; they expire"),
        })
    }

    fn forget_neighbours(&self, index: u32) -> Result<()> {
        if usage::read_raw(&self.maps.usage, index)?.neighbours == 0 {
            return Ok(());
        }
        const PORT_AT: usize = std::mem::offset_of!(sys::vcc_neighbour_key, port);
        let of_port = |key: &Vec<u8>| key[PORT_AT..][..2] == (index as u16).to_ne_bytes();
        let keys: Vec<Vec<u8>> = self.maps.neighbours.keys().filter(of_port).collect();
        for key in keys {
            // It was listed a moment ago, and nothing else removes it.
            let deleted = self.maps.neighbours.delete(&key);
            deleted.map_err(|e| Error::system("forget a guest's MAC address", e))?;
        }
        Ok(())
    }

    pub(crate) fn sweep(&self, index: u32, what: Sweep) -> Result<u32> {
        self.with_sweep(|sweep| sweep::run(sweep, index, what))
    }

    /// Takes over connections that come to a port.
    pub(crate) fn arrive<'flow>(
        &self,
        index: u32,
        flows: impl IntoIterator<Item = &'flow Flow>,
        from: Origin,
    ) -> Result<Vec<Arrived>> {
        let arrive = |sweep: BorrowedFd<'_>| {
            flows.into_iter().map(|flow| arrival::run(sweep, index, flow, from)).collect()
        };
        self.with_sweep(arrive)
    }

    /// Another process may have replaced the programs since, and what a sweep does is theirs. So is what the timer
    /// does that it starts.
    fn with_sweep<T>(&self, run: impl FnOnce(BorrowedFd<'_>) -> T) -> T {
        match pinned::program(self.is_pinned, Program::Sweep) {
            Some(sweep) => run(sweep.as_fd()),
            None => run(self.programs.sweep()),
        }
    }

    /// The programs to attach to a port.
    pub(crate) fn port_programs(&self, index: u32) -> Result<Object> {
        load::of_port(&self.maps, index)
    }
}

/// The programs that the ports share.
struct Programs {
    /// In the order of their names.
    shared: [OwnedFd; PROGRAMS],
    /// Where the kernel has no timers.
    turn: Option<OwnedFd>,
}

const PROGRAMS: usize = 8;

impl Programs {
    fn from_object(object: &Object) -> Result<Self> {
        Self::each(|name| {
            let program = object::program(object, name)?;
            let fd = program.as_fd().try_clone_to_owned();
            fd.map_err(|e| Error::system("keep a program", e))
        })
    }

    fn each(get: impl Fn(&str) -> Result<OwnedFd>) -> Result<Self> {
        let mut fds = Vec::with_capacity(PROGRAMS);
        for name in Self::NAMES {
            fds.push(get(name)?);
        }
        let turn = (!timers::are_there()).then(|| get(Program::Turn.name())).transpose()?;
        Ok(Self { shared: fds.try_into().expect("a program for each name"), turn })
    }

    const NAMES: [&str; PROGRAMS] = {
        let from_guest = Hook::FromGuest.host_program_names();
        let to_guest = Hook::ToGuest.host_program_names();
        [
            from_guest[0],
            from_guest[1],
            from_guest[2],
            from_guest[3],
            to_guest[0],
            to_guest[1],
            to_guest[2],
            Program::Sweep.name(),
        ]
    };

    /// In the order in which they are pinned.
    fn all(&self) -> impl Iterator<Item = (&'static str, BorrowedFd<'_>)> {
        let turn = self.turn.iter().map(|fd| (Program::Turn.name(), fd.as_fd()));
        turn.chain(Self::NAMES.into_iter().zip(self.shared.iter().map(AsFd::as_fd)))
    }

    fn get(&self, name: &str) -> BorrowedFd<'_> {
        let at = Self::NAMES.iter().position(|it| *it == name).expect("a program of a host");
        self.shared[at].as_fd()
    }

    /// Visits the flows of a port.
    fn sweep(&self) -> BorrowedFd<'_> {
        self.get(Program::Sweep.name())
    }

    /// What the programs do.
    fn tags(&self) -> Result<Tags> {
        let mut tags = Tags::default();
        for (tag, fd) in tags.iter_mut().zip(&self.shared) {
            let failed = |e| Error::system("read what a program does", e);
            *tag = tcx::program_tag(fd.as_fd()).map_err(failed)?;
        }
        Ok(tags)
    }
}

/// What the programs of a host do, in the order of their names.
pub(crate) type Tags = [Tag; PROGRAMS];

#[cfg(test)]
mod lanes;
#[cfg(test)]
mod races;
#[cfg(test)]
mod tests;

//! Taking over the ports of another version, in the middle of their connections.
//!
//! Programs and maps of this version are loaded and pinned next to those of the other one, and take over a
//! description of each connection. Then each port's links get programs of this version, one direction
//! after the other, and what has changed meanwhile is taken over once more: a port learns from a
//! connection's segments what its description lacks (engine/arrival.h). Last, this version's pins take the
//! place of the other's, in one step.
//!
//! An error before the first port has another program changes nothing. A process that is killed later
//! leaves ports of either version, and the hosts of both; the next one takes all of them over. Nothing that
//! a port may call is removed before that port has another program: when nobody holds the array any more by
//! which it calls, the kernel empties it, and what the port's guest sends and gets passes untranslated.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use libbpf_rs::{Link, Object};
use vcc_engine::Mode;

use super::{Described, Inherited, Predecessor, Theirs};
use crate::arrival::Origin;
use crate::host::{self, Found};
use crate::tcx::{self, Hook};
use crate::{
    Arrived, Error, FlowId, Host, Result, SharedPolicy, Underlays, bpffs, device, lock, object,
    pins,
};

/// The step just done, at which tests end it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// So many ports have other programs.
    Moved(usize),
    /// This version's pins have their place.
    Exchanged,
}

impl Predecessor {
    /// Makes the ports of another version this version's. `apply` puts a policy in force, to which those
    /// come that were under one; it is not called for ports that were this version's before a process
    /// began to make them another's. Returns the ports, and none if there is nothing to take over.
    pub fn succeed(
        apply: impl FnOnce(&SharedPolicy, &[Inherited]) -> Result<()>,
    ) -> Result<Vec<Inherited>> {
        Self::succeed_by_steps(apply, |_| Ok(()))
    }

    /// Likewise. An error of `after` ends it where a process may be killed.
    pub(crate) fn succeed_by_steps(
        apply: impl FnOnce(&SharedPolicy, &[Inherited]) -> Result<()>,
        after: impl Fn(Step) -> Result<()>,
    ) -> Result<Vec<Inherited>> {
        if host::nexts()?.is_empty() && Self::find()?.is_none() {
            return Ok(Vec::new());
        }
        host::require_capabilities()?;
        let _lock = lock::pins()?;
        let begun = begun()?;
        match Self::find()? {
            Some(theirs) => theirs.hand_over(&begun, apply, after),
            None if begun.is_empty() => Ok(Vec::new()),
            None => take_back(&begun, after),
        }
    }

    /// Programs and maps of this version take the place of these, and of those at the places `begun`.
    fn hand_over(
        self,
        begun: &[PathBuf],
        apply: impl FnOnce(&SharedPolicy, &[Inherited]) -> Result<()>,
        after: impl Fn(Step) -> Result<()>,
    ) -> Result<Vec<Inherited>> {
        let ports = self.ports()?;
        let sources = Sources::open(self, begun, false)?;
        let inherited = ports.iter().map(Theirs::inherited).collect::<Result<Vec<_>>>()?;
        let next = host::free_next()?;
        let policy = SharedPolicy::unpinned()?;
        apply(&policy, &inherited)?;
        let host = Arc::new(Host::load_beside(&policy, &Underlays::pinned()?)?);
        let mut moving = Moving::begin(&host, ports)?;
        let mut entered = HashSet::new();
        for one in moving.ports.iter().filter(|one| entered.insert(one.theirs.index)) {
            one.enter(&host)?;
        }
        moving.take_over(&sources, Origin::OtherMaps)?;
        // Until a port calls it, it ends with this process.
        host.pin_at(&next)?;
        if let Err(error) = moving.attach(&after) {
            if !moving.is_begun {
                // The first error is reported.
                let _ = host::remove_at(&next);
            }
            return Err(error);
        }
        moving.take_over(&sources, Origin::OtherMaps)?;
        policy.pin_instead()?;
        bpffs::exchange(&next, Path::new(host::PLACE))?;
        after(Step::Exchanged)?;
        host::remove_at(&next)?;
        moving.end(begun)
    }
}

/// Where processes that were killed have pinned hosts which ports may call. Others are removed.
fn begun() -> Result<Vec<PathBuf>> {
    let has_ports = !pins::indices()?.is_empty();
    let mut begun = Vec::new();
    for (place, is_complete) in host::nexts()? {
        if is_complete && has_ports {
            begun.push(place);
        } else {
            host::remove_at(&place)?;
        }
    }
    Ok(begun)
}

/// Another version began to take over this one's ports, and did not come to its end: or it did, and has
/// left its own host behind. Which ports call which host is unknown without CAP_SYS_ADMIN, so all
/// get programs that call the one in its place, under the policy that it has.
fn take_back(begun: &[PathBuf], after: impl Fn(Step) -> Result<()>) -> Result<Vec<Inherited>> {
    let Found::Ours(host) = Host::find()? else { return Ok(Vec::new()) };
    let ours = Predecessor::at(Path::new(host::PLACE))?;
    let ports = ours.ports()?;
    let sources = Sources::open(ours, begun, true)?;
    let (host, _) = host.take_over_locked(|running, ours| running != ours)?;
    let mut moving = Moving::begin(&host, ports)?;
    moving.take_over(&sources, Origin::NewerMaps)?;
    moving.attach(&after)?;
    moving.take_over(&sources, Origin::OtherMaps)?;
    moving.end(begun)
}

/// The maps that say what connections there are.
struct Sources {
    all: Vec<Predecessor>,
    /// The first are those that the ports come to.
    are_back: bool,
}

impl Sources {
    fn open(first: Predecessor, begun: &[PathBuf], are_back: bool) -> Result<Self> {
        let mut all = vec![first];
        for place in begun {
            all.push(Predecessor::at(place)?);
        }
        Ok(Self { all, are_back })
    }

    /// The last known state of each connection, by the index of its port. A port whose programs
    /// were replaced continues in other maps than one whose programs were not, and both have what
    /// the other had until then.
    fn described(&self) -> Result<HashMap<u32, Vec<Described>>> {
        let mut latest: HashMap<u32, Vec<Described>> = HashMap::new();
        for (at, source) in self.all.iter().enumerate() {
            for (index, mut flows) in source.flows()? {
                let known = latest.entry(index).or_default();
                let stays = at == 0 && self.are_back;
                flows.iter_mut().for_each(|it| it.stays = stays);
                if known.is_empty() {
                    *known = flows;
                } else {
                    merge(known, flows);
                }
            }
        }
        Ok(latest)
    }
}

fn merge(known: &mut Vec<Described>, others: Vec<Described>) {
    let places: HashMap<FlowId, usize> =
        known.iter().enumerate().map(|(at, it)| (it.flow.id(), at)).collect();
    for other in others {
        match places.get(&other.flow.id()) {
            Some(&at) if other.is_later_than(&known[at]) => known[at] = other,
            Some(_) => {}
            None => known.push(other),
        }
    }
}

impl Theirs {
    fn inherited(&self) -> Result<Inherited> {
        let device = &self.pin.device;
        let is_here = device.netns_inode == device::netns_inode()?;
        // It may have been renamed.
        let name = is_here.then(|| device::name_of(device.ifindex)).flatten();
        Ok(Inherited {
            device: name.unwrap_or_else(|| device.name.clone()),
            index: self.index,
            is_here,
            drains: self.drains(),
            by_policy: self.settings.by_policy != 0,
            connections: 0,
            left_alone: 0,
            lost: 0,
        })
    }

    fn drains(&self) -> bool {
        self.settings.params.mode == Mode::Drain.number()
    }
}

/// Ports that are about to become this version's.
struct Moving {
    host: Arc<Host>,
    ports: Vec<One>,
    /// A port may have other programs.
    is_begun: bool,
}

struct One {
    theirs: Theirs,
    links: [Link; 2],
    programs: Object,
    inherited: Inherited,
}

impl One {
    /// Makes room for it at a host that has none for it.
    fn enter(&self, host: &Host) -> Result<()> {
        let mut port = self.theirs.settings;
        port.params.trace = 0;
        host.enter(self.theirs.index, &port)?;
        host.open_wheel(self.theirs.index)
    }
}

impl Moving {
    /// All that may fail is done for all ports before any has other programs.
    fn begin(host: &Arc<Host>, ports: Vec<Theirs>) -> Result<Self> {
        let mut moving = Self { host: Arc::clone(host), ports: Vec::new(), is_begun: false };
        for theirs in ports {
            let links = theirs.pin.open_links()?;
            // Its device has gone: its pins are swept.
            if !tcx::is_attached(&links[0])? || !tcx::is_attached(&links[1])? {
                continue;
            }
            let programs = host.port_programs(theirs.index)?;
            let inherited = theirs.inherited()?;
            moving.ports.push(One { theirs, links, programs, inherited });
        }
        Ok(moving)
    }

    fn take_over(&mut self, sources: &Sources, from: Origin) -> Result<()> {
        let mut described = sources.described()?;
        for One { theirs, inherited, .. } in &mut self.ports {
            let flows = described.remove(&theirs.index).unwrap_or_default();
            let coming = flows.iter().filter(|it| !it.stays);
            let arrived = self.host.arrive(theirs.index, coming.map(|it| &it.flow), from)?;
            inherited.connections = flows.len() - arrived.len();
            (inherited.left_alone, inherited.lost) = (0, 0);
            for one in arrived {
                match one {
                    Arrived::Translated | Arrived::Known => inherited.connections += 1,
                    Arrived::LeftAlone => inherited.left_alone += 1,
                    _ => inherited.lost += 1,
                }
            }
        }
        Ok(())
    }

    fn attach(&mut self, after: impl Fn(Step) -> Result<()>) -> Result<()> {
        for (at, One { theirs, links, programs, .. }) in self.ports.iter_mut().enumerate() {
            for (link, hook) in links.iter_mut().zip(Hook::BOTH) {
                let program = object::program(programs, hook.program_name())?;
                if let Err(error) = link.update_prog(&program) {
                    // A device that has gone meanwhile takes its links along.
                    if tcx::is_attached(link)? {
                        return Err(Error::system("replace a program of a port", error));
                    }
                } else {
                    self.is_begun = true;
                }
            }
            theirs.pin.put_programs(object::port_programs(programs)?)?;
            after(Step::Moved(at + 1))?;
        }
        Ok(())
    }

    /// No port calls the hosts at the places `begun` any more.
    fn end(self, begun: &[PathBuf]) -> Result<Vec<Inherited>> {
        for place in begun {
            host::remove_at(place)?;
        }
        Ok(self.ports.into_iter().map(|one| one.inherited).collect())
    }
}

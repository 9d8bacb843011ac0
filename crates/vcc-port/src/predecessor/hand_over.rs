//! Taking over the ports of another version, in the middle of their connections.
//!
//! Programs and maps of this version are loaded and pinned beside those of the other one, and take over a
//! description of each connection. Then each port's links get programs of this version, one direction
//! after the other, and what has changed meanwhile is taken over once more: a port learns from a
//! connection's segments what its description lacks (engine/arrive.h). Last, this version's pins take the
//! place of the other's, in one step.
//!
//! An error before the first port has another program changes nothing. A process that is killed later
//! leaves ports of either version; the next one takes all of them over.

use std::path::Path;
use std::sync::Arc;

use libbpf_rs::{Link, Object};
use vcc_engine::Mode;

use super::{Inherited, Predecessor, Theirs};
use crate::device;
use crate::host;
use crate::tcx::{self, Hook};
use crate::{Arrived, Error, Host, Result, SharedPolicy, Underlays, lock, object, params};

impl Predecessor {
    /// Makes the ports of another version this version's. `apply` puts a policy in force, to which those
    /// come that were under one. Returns the ports, and none if there is nothing to take over.
    pub fn succeed(
        apply: impl FnOnce(&SharedPolicy, &[Inherited]) -> Result<()>,
    ) -> Result<Vec<Inherited>> {
        let next = Path::new(host::NEXT);
        if !next.exists() && Self::find()?.is_none() {
            return Ok(Vec::new());
        }
        host::require_capabilities()?;
        let _lock = lock::pins()?;
        let mut sources: Vec<Self> = Self::find()?.into_iter().collect();
        // Of a process that ended half way: what it had not removed yet, or the ports it had moved.
        if next.exists() {
            if !sources.is_empty() {
                sources.extend(Self::at(next));
            }
            host::remove_at(next)?;
        }
        let Some(first) = sources.first() else { return Ok(Vec::new()) };
        let ports = first.ports()?;
        let inherited = ports.iter().map(Theirs::told).collect::<Result<Vec<_>>>()?;
        let policy = SharedPolicy::unpinned()?;
        apply(&policy, &inherited)?;
        let mut host = Host::load_beside(&policy, &Underlays::pinned()?)?;
        host.pin_at(next)?;
        let mut moving = Moving::begin(&Arc::new(host), ports)?;
        moving.take_over(&sources)?;
        moving.attach()?;
        moving.take_over(&sources)?;
        policy.pin_instead()?;
        host::exchange()?;
        host::remove_at(next)?;
        moving.end()
    }
}

impl Theirs {
    fn told(&self) -> Result<Inherited> {
        let device = &self.pin.device;
        let is_here = device.netns_inode == device::netns_inode()?;
        // It may have been renamed.
        let name = is_here.then(|| device::name_of(device.ifindex)).flatten();
        Ok(Inherited {
            device: name.unwrap_or_else(|| device.name.clone()),
            index: self.index,
            is_here,
            drains: self.drains(),
            by_policy: self.said.by_policy != 0,
            connections: 0,
            lost: 0,
        })
    }

    fn drains(&self) -> bool {
        self.said.params.mode == Mode::Drain.number()
    }
}

/// Ports that are about to become this version's.
struct Moving {
    host: Arc<Host>,
    ports: Vec<One>,
}

struct One {
    theirs: Theirs,
    links: [Link; 2],
    programs: Object,
    inherited: Inherited,
}

impl Moving {
    /// All that may fail is done for all ports before any has other programs.
    fn begin(host: &Arc<Host>, ports: Vec<Theirs>) -> Result<Self> {
        let mut moving = Self { host: Arc::clone(host), ports: Vec::new() };
        for theirs in ports {
            let links = theirs.pin.open_links()?;
            // Its device has gone: its pins are swept.
            if !tcx::is_attached(&links[0])? || !tcx::is_attached(&links[1])? {
                continue;
            }
            let mut port = theirs.said;
            port.params.trace = 0;
            if theirs.drains() {
                // A draining port takes over nothing.
                port.params.mode = Mode::Enforce.number();
            }
            host.enter(theirs.index, &port)?;
            host.open_wheel(theirs.index)?;
            let programs = host.port_programs(theirs.index)?;
            let inherited = theirs.told()?;
            moving.ports.push(One { theirs, links, programs, inherited });
        }
        Ok(moving)
    }

    fn take_over(&mut self, sources: &[Predecessor]) -> Result<()> {
        let described = sources.iter().map(Predecessor::flows).collect::<Result<Vec<_>>>()?;
        for One { theirs, inherited, .. } in &mut self.ports {
            (inherited.connections, inherited.lost) = (0, 0);
            let flows = described.iter().filter_map(|flows| flows.get(&theirs.index));
            for arrived in flows.map(|flows| self.host.arrive(theirs.index, flows)) {
                for one in arrived? {
                    match one {
                        Arrived::Translated | Arrived::Known => inherited.connections += 1,
                        Arrived::LeftAlone => {}
                        _ => inherited.lost += 1,
                    }
                }
            }
        }
        Ok(())
    }

    fn attach(&mut self) -> Result<()> {
        for One { links, programs, .. } in &mut self.ports {
            for (link, hook) in links.iter_mut().zip(Hook::BOTH) {
                let program = object::program(programs, hook.program_name())?;
                if let Err(error) = link.update_prog(&program) {
                    // A device that has gone meanwhile takes its links along.
                    if tcx::is_attached(link)? {
                        return Err(Error::system("replace a program of a port", error));
                    }
                }
            }
        }
        Ok(())
    }

    fn end(self) -> Result<Vec<Inherited>> {
        let mut inherited = Vec::new();
        for One { theirs, inherited: told, .. } in self.ports {
            if told.drains {
                let mut port = params::read(&self.host.maps.ports, theirs.index)?;
                port.params.mode = Mode::Drain.number();
                params::write(&self.host.maps.ports, theirs.index, &port)?;
            }
            inherited.push(told);
        }
        Ok(inherited)
    }
}

//! Loads and unloads the underlays of a host. Its connections continue: programs are replaced as a
//! whole, and a connection keeps its window when it goes from one underlay to another.

use std::thread;
use std::time::Duration;

use vcc_engine::{Underlay, sys};
use vcc_underlay::Object;

use super::{Found, Host, require_capabilities};
use crate::policy::SharedPolicy;
use crate::sweep::Sweep;
use crate::underlays::{Underlays, pin, unpin};
use crate::{Error, Result, lock, params, pins};

/// The result of loading an underlay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loading {
    Loaded,
    /// Connections of the version before, which continue by this one.
    Replaced(u32),
    /// This very version was loaded already.
    Unchanged,
}

/// The result of unloading an underlay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unloading {
    /// The underlay by which its connections continue.
    pub to: Underlay,
    pub connections: u32,
    /// Rules of the policy in force that named it, and ports that were attached with it.
    pub rules: u32,
    pub ports: u32,
}

/// A connection that each of so many sweeps missed continues by NewReno.
const SWEEPS_MAX: u32 = 4;

/// How long a CPU may run a program of before. They run with softirqs off, some microseconds.
const GRACE: Duration = Duration::from_millis(20);

impl Underlays {
    /// Loads an underlay on this host, or another version of one: its connections continue by the
    /// new version. What the kernel's verifier refuses changes nothing.
    pub fn load(object: &Object) -> Result<Loading> {
        require_capabilities()?;
        let _lock = lock::pins()?;
        let mut now = Self::pinned()?;
        let mut others = now.slots_of(object.name());
        // Also of a process that died before its programs were in force, or before it had replaced the one before.
        let same = now.iter().find(|(_, it)| it.bytes() == object.bytes()).map(|(slot, _)| slot);
        others.retain(|slot| Some(*slot) != same);
        let slot = match same {
            Some(slot) => {
                Changed::to(&now)?.put_in_force()?;
                slot
            }
            None => {
                let slot = now.free_slot()?;
                now = now.with(slot, object.clone());
                let host = Changed::to(&now).map_err(|e| refused(e, object))?;
                pin(slot, object)?;
                host.put_in_force()?;
                slot
            }
        };
        let mut moved = 0;
        for other in &others {
            moved += move_connections(other.number(), slot.number())?.connections;
            now = now.without(*other);
            Changed::to(&now)?.put_in_force()?;
            unpin(*other)?;
        }
        now.name_here();
        Ok(match same {
            _ if !others.is_empty() => Loading::Replaced(moved),
            None => Loading::Loaded,
            Some(_) => Loading::Unchanged,
        })
    }

    /// Unloads an underlay. Its connections, and rules and ports that name it, continue by `to`, or
    /// by NewReno, with ECN if it had that.
    pub fn unload(name: &str, to: Option<Underlay>) -> Result<Unloading> {
        require_capabilities()?;
        let _lock = lock::pins()?;
        let now = Self::pinned()?;
        let known = now.find(name).map(|(slot, object)| (slot, object.traits()));
        // An underlay that is not understood continues without ECN of its own, as its slot does
        // already.
        let refused = now.slots_of(name).first().map(|slot| (*slot, sys::CC_CONTROLS));
        let Some((slot, traits)) = known.or(refused) else {
            let loaded: Vec<&str> = now.iter().map(|(_, object)| object.name()).collect();
            let loaded = if loaded.is_empty() { "none".into() } else { loaded.join(", ") };
            return Err(Error::NotLoaded { name: name.into(), loaded });
        };
        let has_ecn = traits & sys::CC_ECN != 0;
        let to = match to {
            Some(to) => to,
            None => Self::fallback(has_ecn),
        };
        // A handshake has promised ECN, or has not.
        if to.wants_ecn() != has_ecn || !to.controls() || to.slot() == Some(slot) {
            return Err(Error::NoFallback { name: name.into(), to: to.name().into(), has_ecn });
        }
        let next = now.without(slot);
        // From here on they continue by NewReno; then each by the underlay that is wanted.
        Changed::to(&next)?.put_in_force()?;
        let moved = move_connections(slot.number(), to.number())?;
        // Last, so that a command that was killed can be repeated.
        unpin(slot)?;
        next.name_here();
        Ok(Unloading { to, connections: moved.connections, rules: moved.rules, ports: moved.ports })
    }

    /// The underlay by which connections of one that is gone continue.
    fn fallback(has_ecn: bool) -> Underlay {
        let name = if has_ecn { "reno-ecn" } else { "reno" };
        name.parse().expect("it is built in")
    }
}

/// The verifier took the datapath without it.
fn refused(error: Error, object: &Object) -> Error {
    match error {
        Error::Verifier { refusal, .. } => {
            Error::UnderlayRefused { name: object.name().into(), refusal }
        }
        error => error,
    }
}

/// Programs that are loaded and not in force yet.
struct Changed {
    /// None: this host has no ports yet, so the programs were only verified, or they are in force already.
    next: Option<Host>,
}

impl Changed {
    fn to(underlays: &Underlays) -> Result<Self> {
        let next = match Host::find()? {
            Found::Ours(host) => {
                let next = host.reloaded(underlays)?;
                let is_in_force = next.programs.tags()? == host.programs.tags()?;
                (!is_in_force).then_some(next)
            }
            Found::OtherVersion => return Err(Error::OtherHostVersion),
            Found::None => {
                Host::verify(underlays)?;
                None
            }
        };
        Ok(Self { next })
    }

    fn put_in_force(self) -> Result<()> {
        self.next.map_or(Ok(()), |next| next.put_in_force())
    }
}

#[derive(Default)]
struct Moved {
    connections: u32,
    rules: u32,
    ports: u32,
}

/// Everything that has the one underlay has the other.
fn move_connections(from: u8, to: u8) -> Result<Moved> {
    let mut moved = Moved::default();
    if let Some(policy) = SharedPolicy::find()? {
        moved.rules = policy.replace_underlay(from, to)?;
    }
    let Found::Ours(host) = Host::find()? else { return Ok(moved) };
    let indices = pins::indices()?;
    for index in &indices {
        let mut port = params::read(&host.maps.ports, *index)?;
        if port.params.underlay == from {
            port.params.underlay = to;
            params::write(&host.maps.ports, *index, &port)?;
            moved.ports += 1;
        }
    }
    // A connection may just have begun by what was read before.
    thread::sleep(GRACE);
    for index in indices {
        // One that goes to another slot of the wheel meanwhile may be missed.
        for _ in 0..SWEEPS_MAX {
            let connections = host.sweep(index, Sweep::Move { from, to })?;
            moved.connections += connections;
            if connections == 0 {
                break;
            }
        }
    }
    Ok(moved)
}

#[cfg(test)]
mod tests;

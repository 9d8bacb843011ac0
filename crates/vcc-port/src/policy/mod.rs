//! A policy in the kernel: maps that all ports under it share. `datapath/abi.h` describes their
//! layout.

mod edition;
mod judgement;
mod maps;
mod pools;
mod prefixes;
mod rules;

use std::path::Path;

use libbpf_rs::{MapCore, MapFlags};
use vcc_engine::{Params, sys};
use vcc_policy::{Affiliation, Policy, RuleSet};

use crate::plain::to_bytes;
use crate::{Error, Result, bpffs, lock, pins};
pub use judgement::{Judgement, Property};
pub(crate) use maps::{PolicyMaps, shrink};
pub use pools::PoolUse;
pub use rules::{RuleInForce, Rules};

/// The pins of ports have names with an `@`, so this is not taken for one.
const PLACE: &str = "/sys/fs/bpf/vcc/policy";
/// The pin of a policy that is about to replace another version's.
const NEXT: &str = "/sys/fs/bpf/vcc/policy-next";

/// The most ports that a policy can have; their indices are below.
pub const PORTS_MAX: u32 = sys::PORTS_MAX;

/// The policy of this host's ports. An edition that was applied stays in force until the next one,
/// even while no process has the policy open.
pub struct SharedPolicy {
    maps: PolicyMaps,
    pinned: bool,
}

/// Totals of the connections of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleTotals {
    /// All that came under the rule, including live ones.
    pub connections: u64,
    /// This field and the following ones count connections that have ended.
    pub marks: u64,
    pub reductions: u64,
    pub retransmissions: u64,
    pub drops: u64,
}

impl SharedPolicy {
    /// Opens the pinned policy, or creates it. A new one has no rules until one is applied.
    pub fn open() -> Result<Self> {
        let _lock = lock::pins()?;
        Self::open_locked()
    }

    /// Likewise; the caller holds the lock. Another version's is replaced if there is no port that could use it.
    pub(crate) fn open_locked() -> Result<Self> {
        match Self::find() {
            Err(Error::OtherPolicyVersion) if pins::indices()?.is_empty() => {
                PolicyMaps::unpin(Path::new(PLACE))?;
            }
            Err(Error::OtherPolicyVersion) => return Err(Error::OtherHostVersion),
            Ok(Some(policy)) => return Ok(policy),
            Ok(None) => {}
            Err(error) => return Err(error),
        }
        let maps = PolicyMaps::create_pinned(Path::new(PLACE))?;
        Ok(Self { maps, pinned: true })
    }

    /// Opens the pinned policy, if there is one.
    pub fn find() -> Result<Option<Self>> {
        if !bpffs::has_home()? {
            return Ok(None);
        }
        PolicyMaps::open(Path::new(PLACE))?.map(Self::understood).transpose()
    }

    /// # Errors
    /// Another version's policy is pinned, and there is a port that may use it.
    pub fn require_understood() -> Result<()> {
        match Self::find() {
            Err(Error::OtherPolicyVersion) if pins::indices()?.is_empty() => Ok(()),
            found => found.map(drop),
        }
    }

    /// Whether one is pinned as a whole.
    pub(crate) fn is_there() -> bool {
        PolicyMaps::are_there(Path::new(PLACE))
    }

    fn understood(maps: PolicyMaps) -> Result<Self> {
        let policy = Self { maps, pinned: true };
        let head = policy.head()?;
        let foreign = head.epoch != 0 && head.layout != sys::LAYOUT_VERSION;
        if foreign { Err(Error::OtherPolicyVersion) } else { Ok(policy) }
    }

    /// Creates a policy that ends with the process and its ports.
    pub fn unpinned() -> Result<Self> {
        Ok(Self { maps: PolicyMaps::create()?, pinned: false })
    }

    /// See [`crate::Host::make_foreign`]. The caller holds the lock.
    pub(crate) fn say_layout(layout: u32) -> Result<()> {
        let Some(maps) = PolicyMaps::open(Path::new(PLACE))? else { return Ok(()) };
        let policy = Self { maps, pinned: true };
        policy.set_head(&sys::vcc_policy { layout, ..policy.head()? })
    }

    /// Pins this one instead of another version's, in one step: between the two there would be no policy,
    /// and a new one, which no program of the other version reads. The caller holds the lock.
    pub(crate) fn pin_instead(mut self) -> Result<()> {
        let (place, next) = (Path::new(PLACE), Path::new(NEXT));
        // Of a process that died half way.
        if next.exists() {
            PolicyMaps::unpin(next)?;
        }
        if !place.exists() {
            return self.maps.pin(place);
        }
        self.maps.pin(next)?;
        bpffs::exchange(next, place)?;
        PolicyMaps::unpin(next)
    }

    /// Removes the pinned policy. No port may use it any more.
    pub fn remove(self) -> Result<()> {
        let _lock = lock::pins()?;
        PolicyMaps::unpin(Path::new(PLACE))
    }

    /// Removes the pinned policy if none was ever applied. The caller holds the lock.
    pub(crate) fn remove_unapplied() -> Result<()> {
        match Self::find() {
            Ok(Some(policy)) if policy.epoch()? == 0 => PolicyMaps::unpin(Path::new(PLACE)),
            // Another version's is left to it.
            Ok(_) | Err(Error::OtherPolicyVersion) => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn maps(&self) -> &PolicyMaps {
        &self.maps
    }

    /// The epoch of the edition in force; 0 if none was applied yet.
    pub fn epoch(&self) -> Result<u32> {
        Ok(self.head()?.epoch)
    }

    /// Puts `policy` in force, atomically, for the ports with these indices; returns its epoch. The
    /// caller then brings live flows under it with [`crate::Port::judge_flows`]; a flow whose next
    /// packet comes first is judged by that packet. Before this call, all flows must be under the
    /// edition in force: [`crate::Port::settle_flows`].
    pub fn apply(&self, policy: &Policy, ports: &[(u32, Affiliation<'_>)]) -> Result<u32> {
        let _lock = self.pinned.then(lock::pins).transpose()?;
        let mut head = self.head()?;
        let next = head.epoch.wrapping_add(1).max(1);
        let edition = next % sys::EDITIONS;
        let compiled = policy.compile();
        let sets: Vec<(u32, RuleSet)> =
            ports.iter().map(|(port, it)| (*port, compiled.port_set(*it))).collect();
        let pools = pools::number(&self.maps, policy.pools())?;
        edition::write(&self.maps, edition, policy, &compiled, &sets, &pools)?;
        let slot = edition as usize;
        head.any_prefix[slot] = compiled.prefix_default;
        head.role[slot] = compiled.roles;
        head.polices[slot] = compiled.polices;
        head.layout = sys::LAYOUT_VERSION;
        // The entry holds fields of the edition and the epoch, and a reader may see it half
        // written: so the fields are written before the epoch.
        let epoch = std::mem::replace(&mut head.epoch, next);
        let before = sys::vcc_policy { epoch, ..head };
        self.set_head(&before)?;
        self.set_head(&head)?;
        Ok(next)
    }

    /// Brings a new port under the edition in force.
    pub fn admit(&self, index: u32, policy: &Policy, port: Affiliation<'_>) -> Result<()> {
        let edition = self.epoch()? % sys::EDITIONS;
        edition::write_tenant(&self.maps, edition, index, &policy.port_set(port))
    }

    /// Rules that treat by the one underlay treat by the other; returns how many of those in force. The
    /// caller holds the lock.
    pub(crate) fn replace_underlay(&self, from: u8, to: u8) -> Result<u32> {
        let in_force = self.epoch()? % sys::EDITIONS;
        let mut replaced = 0;
        for edition in 0..sys::EDITIONS {
            let rules = edition::replace_underlay(&self.maps, edition, from, to)?;
            replaced += if edition == in_force { rules } else { 0 };
        }
        Ok(replaced)
    }

    /// The names of the rules of the edition with this epoch; the default is the last.
    pub fn rule_names(&self, epoch: u32) -> Result<Vec<String>> {
        edition::rule_names(&self.maps, epoch % sys::EDITIONS)
    }

    /// The totals of the rules in force, by the index of the rule.
    pub fn rule_totals(&self) -> Result<Vec<RuleTotals>> {
        let epoch = self.epoch()?;
        let rules = self.rule_names(epoch)?.len() as u32;
        edition::totals(&self.maps, epoch % sys::EDITIONS, rules)
    }

    /// The rules in force that connections of the port with this index may meet.
    pub(crate) fn rules_of_port(&self, index: u32) -> Result<Vec<Params>> {
        edition::rules_of_port(&self.maps, self.epoch()? % sys::EDITIONS, index)
    }

    pub fn pools(&self) -> Result<Vec<PoolUse>> {
        pools::read(&self.maps)
    }

    fn head(&self) -> Result<sys::vcc_policy> {
        edition::read(&self.maps.policy, 0)
    }

    fn set_head(&self, head: &sys::vcc_policy) -> Result<()> {
        self.maps
            .policy
            .update(&[0; 4], to_bytes(head), MapFlags::ANY)
            .map_err(|e| Error::system("put a policy in force", e))
    }
}

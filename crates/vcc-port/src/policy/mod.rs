//! A policy in the kernel: maps that all its ports share. `datapath/abi.h` says how they are read.

mod edition;
mod maps;
mod pools;
mod prefixes;
mod rules;

use std::path::Path;

use libbpf_rs::{MapCore, MapFlags};
use vcc_engine::sys;
use vcc_policy::{Policy, RuleSet};

use crate::plain::to_bytes;
use crate::{Error, Result, bpffs, pins};
pub(crate) use maps::{PolicyMaps, shrink};
pub use pools::PoolUse;
pub use rules::{RuleInForce, Rules};

/// Ports have no `@`less names, so nothing here can be taken for one.
const PLACE: &str = "/sys/fs/bpf/vcc/policy";

/// So many ports can have the policy; their indices are below.
pub const PORTS_MAX: u32 = sys::PORTS_MAX;

/// The policy of this host's ports. What is applied to it holds until something else is: also while
/// no process has it open.
pub struct SharedPolicy {
    maps: PolicyMaps,
    pinned: bool,
}

/// A rule's connections, as far as they have come under it and ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleTotals {
    /// That came under it, the live ones included.
    pub connections: u64,
    /// Of those that have ended.
    pub marks: u64,
    pub reductions: u64,
    pub retransmissions: u64,
    pub drops: u64,
}

impl SharedPolicy {
    /// The one that outlives processes; made if there is none. Until something is applied, there is
    /// no rule.
    pub fn open() -> Result<Self> {
        let _lock = pins::lock()?;
        let maps = match PolicyMaps::open(Path::new(PLACE))? {
            Some(maps) => maps,
            None => PolicyMaps::create_pinned(Path::new(PLACE))?,
        };
        Self::understood(maps)
    }

    /// The same, if it is there.
    pub fn find() -> Result<Option<Self>> {
        if !bpffs::has_home()? {
            return Ok(None);
        }
        PolicyMaps::open(Path::new(PLACE))?.map(Self::understood).transpose()
    }

    fn understood(maps: PolicyMaps) -> Result<Self> {
        let policy = Self { maps, pinned: true };
        let head = policy.head()?;
        let foreign = head.epoch != 0 && head.layout != sys::LAYOUT_VERSION;
        if foreign { Err(Error::OtherPolicyVersion) } else { Ok(policy) }
    }

    /// One that ends with the process and its ports.
    pub fn unpinned() -> Result<Self> {
        Ok(Self { maps: PolicyMaps::create()?, pinned: false })
    }

    /// Forgets it for good, where no port has it any more.
    pub fn remove(self) -> Result<()> {
        let _lock = pins::lock()?;
        PolicyMaps::unpin(Path::new(PLACE))
    }

    pub(crate) fn maps(&self) -> &PolicyMaps {
        &self.maps
    }

    /// Whether ports that have it may be pinned.
    pub fn is_pinned(&self) -> bool {
        self.pinned
    }

    /// Which edition holds; 0: none was applied yet.
    pub fn epoch(&self) -> Result<u32> {
        Ok(self.head()?.epoch)
    }

    /// `policy` holds from now on, all at once, for the ports with these indices. Whoever attached
    /// them brings the live flows under it: [`crate::Port::judge_flows`]; those that a packet
    /// reaches first are judged by that. Before it, no flow may be under an older edition than the
    /// one that holds: [`crate::Port::settle_flows`].
    pub fn apply(&self, policy: &Policy, tenants: &[(u32, Option<&str>)]) -> Result<u32> {
        let _lock = self.pinned.then(pins::lock).transpose()?;
        let mut head = self.head()?;
        let next = head.epoch.wrapping_add(1).max(1);
        let edition = next % sys::EDITIONS;
        let compiled = policy.compile();
        let sets: Vec<(u32, RuleSet)> =
            tenants.iter().map(|(port, tenant)| (*port, compiled.tenant_set(*tenant))).collect();
        let pools = pools::number(&self.maps, policy.pools())?;
        edition::write(&self.maps, edition, policy, &compiled, &sets, &pools)?;
        let slot = edition as usize;
        head.any_prefix[slot] = compiled.prefix_default;
        head.role[slot] = compiled.roles;
        head.polices[slot] = compiled.polices;
        head.layout = sys::LAYOUT_VERSION;
        // What an edition says of prefixes and roles lies in the same entry as the epoch: written
        // first, for the copy is not one step for a reader.
        let epoch = std::mem::replace(&mut head.epoch, next);
        let before = sys::vcc_policy { epoch, ..head };
        self.set_head(&before)?;
        self.set_head(&head)?;
        Ok(next)
    }

    /// A port comes under the edition that holds.
    pub fn admit(&self, index: u32, policy: &Policy, tenant: Option<&str>) -> Result<()> {
        let edition = self.epoch()? % sys::EDITIONS;
        edition::write_tenant(&self.maps, edition, index, &policy.tenant_set(tenant))
    }

    /// The names of the rules of the edition with this epoch, the default's last.
    pub fn rule_names(&self, epoch: u32) -> Result<Vec<String>> {
        edition::rule_names(&self.maps, epoch % sys::EDITIONS)
    }

    /// By the index of the rule, of the edition that holds.
    pub fn rule_totals(&self) -> Result<Vec<RuleTotals>> {
        let epoch = self.epoch()?;
        let rules = self.rule_names(epoch)?.len() as u32;
        edition::totals(&self.maps, epoch % sys::EDITIONS, rules)
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

//! Pools: their numbers, and their use. A pool keeps its number while it keeps its name.

use libbpf_rs::{MapCore, MapFlags};
use vcc_engine::sys;
use vcc_policy::Pool;

use super::edition::{self, look_up, name, text};
use super::maps::PolicyMaps;
use crate::plain::to_bytes;
use crate::{Error, Result};

/// The use of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolUse {
    pub name: String,
    /// Bytes that its flows have in flight or may still send.
    pub held_bytes: u32,
    /// Bytes that its idle flows may still send.
    pub idle_bytes: u32,
    /// The sum of the weights of its active flows.
    pub weight: u32,
    /// The maximum of `held_bytes`.
    pub most_held_bytes: u32,
    /// How often a charge exceeded the pool.
    pub overdrawn: u32,
}

/// Numbers a policy's pools. A name that exists keeps its number, and what its flows hold; a new
/// one gets a number that is unused and of which no flow holds anything.
pub(super) fn number(maps: &PolicyMaps, pools: &[Pool]) -> Result<Vec<u16>> {
    let places: Vec<(String, sys::vcc_pool)> =
        (0..sys::POOLS_MAX).map(|at| place(maps, at)).collect::<Result<_>>()?;
    let mut taken: Vec<Option<usize>> =
        pools.iter().map(|pool| places.iter().position(|(name, _)| *name == pool.name)).collect();
    for at in 0..pools.len() {
        if taken[at].is_some() {
            continue;
        }
        let free = |place: &usize| {
            let (_, used) = &places[*place];
            (used.held_bytes, used.idle_bytes, used.weight) == (0, 0, 0)
                && !taken.contains(&Some(*place))
        };
        let unnamed = (0..places.len()).filter(free).min_by_key(|at| !places[*at].0.is_empty());
        let place = unnamed.ok_or(Error::PoolsInUse { pool: pools[at].name.clone() })?;
        taken[at] = Some(place);
        let key = (place as u32).to_ne_bytes();
        let empty = sys::vcc_pool::default();
        let name = name(&pools[at].name);
        let failed = |e| Error::system("write the policy's pools", e);
        maps.pools.update(&key, to_bytes(&empty), MapFlags::ANY).map_err(failed)?;
        maps.pool_names.update(&key, &name, MapFlags::ANY).map_err(failed)?;
    }
    Ok(taken.into_iter().flatten().map(|place| place as u16).collect())
}

pub(super) fn read(maps: &PolicyMaps) -> Result<Vec<PoolUse>> {
    let mut pools = Vec::new();
    for at in 0..sys::POOLS_MAX {
        let (name, used) = place(maps, at)?;
        if name.is_empty() {
            continue;
        }
        let sys::vcc_pool { held_bytes, idle_bytes, weight, most_held_bytes, overdrawn } = used;
        pools.push(PoolUse { name, held_bytes, idle_bytes, weight, most_held_bytes, overdrawn });
    }
    Ok(pools)
}

pub(super) fn place(maps: &PolicyMaps, at: u32) -> Result<(String, sys::vcc_pool)> {
    Ok((text(&look_up(&maps.pool_names, at)?), edition::read(&maps.pools, at)?))
}

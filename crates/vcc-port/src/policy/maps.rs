//! The maps that a policy lies in: made apart from the datapath, which is loaded once a port.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use libbpf_rs::{MapCore, MapHandle, MapType, OpenObject, libbpf_sys};
use vcc_engine::sys;

use crate::{Error, Result};

pub(super) const NAME_BYTES: u32 = sys::POLICY_NAME_BYTES;

pub(crate) struct PolicyMaps {
    pub policy: MapHandle,
    pub rules: MapHandle,
    pub rule_totals: MapHandle,
    pub rule_sets: MapHandle,
    pub prefixes: MapHandle,
    pub port_numbers: MapHandle,
    pub vlans: MapHandle,
    pub tenants: MapHandle,
    pub pools: MapHandle,
    /// These the datapath does not know: they are for people.
    pub rule_names: MapHandle,
    pub pool_names: MapHandle,
}

struct Shape {
    name: &'static str,
    map_type: MapType,
    key_bytes: usize,
    value_bytes: usize,
    entries: u32,
    flags: u32,
}

const fn array(name: &'static str, value_bytes: usize, entries: u32) -> Shape {
    Shape { name, map_type: MapType::Array, key_bytes: 4, value_bytes, entries, flags: 0 }
}

const POLICY: Shape = array("policy", size_of::<sys::vcc_policy>(), 1);
const RULES: Shape = array("rules", size_of::<sys::vcc_params>(), sys::EDITIONS * sys::RULES_MAX);
const TOTALS: Shape =
    array("rule_totals", size_of::<sys::vcc_rule_totals>(), sys::EDITIONS * sys::RULES_MAX);
const SETS: Shape =
    array("rule_sets", size_of::<sys::vcc_rule_set>(), sys::EDITIONS * sys::RULE_SETS_MAX);
const PREFIXES: Shape = Shape {
    name: "prefixes",
    map_type: MapType::LpmTrie,
    key_bytes: size_of::<sys::vcc_prefix>(),
    value_bytes: 4,
    entries: sys::EDITIONS * sys::PREFIXES_MAX,
    flags: libbpf_sys::BPF_F_NO_PREALLOC,
};
const NUMBERS: Shape =
    array("port_numbers", size_of::<sys::vcc_port_sets>(), sys::EDITIONS * sys::PORT_NUMBERS);
const VLAN_SETS: Shape = array("vlans", 4, sys::EDITIONS * sys::VLAN_IDS);
const TENANTS: Shape =
    array("tenants", size_of::<sys::vcc_rule_set>(), sys::EDITIONS * sys::PORTS_MAX);
const POOLS: Shape = array("pools", size_of::<sys::vcc_pool>(), sys::POOLS_MAX);
const RULE_NAMES: Shape = array("rule_names", NAME_BYTES as usize, sys::EDITIONS * sys::RULES_MAX);
const POOL_NAMES: Shape = array("pool_names", NAME_BYTES as usize, sys::POOLS_MAX);

impl Shape {
    fn create(&self) -> Result<MapHandle> {
        let options = libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
            map_flags: self.flags,
            ..Default::default()
        };
        let (key, value) = (self.key_bytes as u32, self.value_bytes as u32);
        MapHandle::create(self.map_type, Some(self.name), key, value, self.entries, &options)
            .map_err(|e| Error::system(format!("make the policy's map `{}`", self.name), e))
    }

    fn is_of(&self, map: &MapHandle) -> bool {
        (map.key_size(), map.value_size(), map.max_entries())
            == (self.key_bytes as u32, self.value_bytes as u32, self.entries)
    }
}

impl PolicyMaps {
    fn each(make: impl Fn(&Shape) -> Result<MapHandle>) -> Result<Self> {
        Ok(Self {
            policy: make(&POLICY)?,
            rules: make(&RULES)?,
            rule_totals: make(&TOTALS)?,
            rule_sets: make(&SETS)?,
            prefixes: make(&PREFIXES)?,
            port_numbers: make(&NUMBERS)?,
            vlans: make(&VLAN_SETS)?,
            tenants: make(&TENANTS)?,
            pools: make(&POOLS)?,
            rule_names: make(&RULE_NAMES)?,
            pool_names: make(&POOL_NAMES)?,
        })
    }

    pub(super) fn create() -> Result<Self> {
        Self::each(Shape::create)
    }

    /// Pins all of them, or none, in the place of what was left by half. Needs the lock.
    pub(super) fn create_pinned(place: &Path) -> Result<Self> {
        if place.exists() {
            Self::unpin(place)?;
        }
        let mut maps = Self::create()?;
        let failed = |e: libbpf_rs::Error| Error::system("pin the policy's maps", e);
        fs::create_dir(place).map_err(|e| Error::system("pin the policy's maps", e))?;
        // The first is pinned last: what lacks it was left by half.
        for (name, map) in maps.with_names().into_iter().rev() {
            if let Err(error) = map.pin(place.join(name)) {
                let _ = Self::unpin(place);
                return Err(failed(error));
            }
        }
        Ok(maps)
    }

    /// None where there are none, or not all: they are being made, or their maker died.
    pub(super) fn open(place: &Path) -> Result<Option<Self>> {
        if !place.join(POLICY.name).exists() {
            return Ok(None);
        }
        let open = |shape: &Shape| {
            let map = MapHandle::from_pinned_path(place.join(shape.name))
                .map_err(|e| Error::system("open the policy's maps", e))?;
            if shape.is_of(&map) { Ok(map) } else { Err(Error::OtherPolicyVersion) }
        };
        Self::each(open).map(Some)
    }

    pub(super) fn unpin(place: &Path) -> Result<()> {
        let remove = || -> io::Result<()> {
            for entry in fs::read_dir(place)? {
                fs::remove_file(entry?.path())?;
            }
            fs::remove_dir(place)
        };
        remove().map_err(|e| Error::system(format!("remove {}", place.display()), e))
    }

    /// The datapath that is about to be loaded uses these.
    pub(crate) fn lend_to(&self, object: &mut OpenObject) -> Result<()> {
        let shared = [
            &self.policy,
            &self.rules,
            &self.rule_totals,
            &self.rule_sets,
            &self.prefixes,
            &self.port_numbers,
            &self.vlans,
            &self.tenants,
            &self.pools,
        ];
        for (map, shape) in shared.into_iter().zip(BY_DATAPATH) {
            crate::object::map(object, shape.name)?
                .reuse_fd(map.as_fd())
                .map_err(|e| Error::system("share the policy", e))?;
        }
        Ok(())
    }

    fn with_names(&mut self) -> [(&'static str, &mut MapHandle); 11] {
        [
            (POLICY.name, &mut self.policy),
            (RULES.name, &mut self.rules),
            (TOTALS.name, &mut self.rule_totals),
            (SETS.name, &mut self.rule_sets),
            (PREFIXES.name, &mut self.prefixes),
            (NUMBERS.name, &mut self.port_numbers),
            (VLAN_SETS.name, &mut self.vlans),
            (TENANTS.name, &mut self.tenants),
            (POOLS.name, &mut self.pools),
            (RULE_NAMES.name, &mut self.rule_names),
            (POOL_NAMES.name, &mut self.pool_names),
        ]
    }
}

const BY_DATAPATH: [Shape; 9] =
    [POLICY, RULES, TOTALS, SETS, PREFIXES, NUMBERS, VLAN_SETS, TENANTS, POOLS];

/// A datapath without a policy does not look at these, and need not pay for them.
pub(crate) fn shrink(object: &mut OpenObject) -> Result<()> {
    for mut map in object.maps_mut() {
        if BY_DATAPATH.iter().any(|shape| map.name() == shape.name) {
            map.set_max_entries(1).map_err(|e| Error::system("leave the policy's maps out", e))?;
        }
    }
    Ok(())
}

//! The maps of a policy. All ports under the policy share them, so they are created apart from the
//! datapath.

use std::fs;
use std::io;
use std::path::Path;

use libbpf_rs::{MapCore, MapHandle, MapType, OpenObject, libbpf_sys};
use vcc_engine::sys;

use crate::{Error, Result};

pub(super) const NAME_BYTES: u32 = sys::POLICY_NAME_BYTES;

struct Shape {
    map_type: MapType,
    key_bytes: usize,
    value_bytes: usize,
    entries: u32,
    flags: u32,
}

const fn array(value_bytes: usize, entries: u32) -> Shape {
    Shape { map_type: MapType::Array, key_bytes: 4, value_bytes, entries, flags: 0 }
}

impl Shape {
    fn create(&self, name: &str) -> Result<MapHandle> {
        let options = libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
            map_flags: self.flags,
            ..Default::default()
        };
        let (key, value) = (self.key_bytes as u32, self.value_bytes as u32);
        MapHandle::create(self.map_type, Some(name), key, value, self.entries, &options)
            .map_err(|e| Error::system(format!("create the policy's map `{name}`"), e))
    }

    fn is_of(&self, map: &MapHandle) -> bool {
        (map.key_size(), map.value_size(), map.max_entries())
            == (self.key_bytes as u32, self.value_bytes as u32, self.entries)
    }
}

/// Declares [`PolicyMaps`] and all that is done with each of them: the maps of the datapath, and
/// those that only user space reads.
macro_rules! maps {
    (datapath { $($name:ident: $shape:expr,)* } user_space { $($more:ident: $its:expr,)* }) => {
        pub(crate) struct PolicyMaps {
            $(pub $name: MapHandle,)*
            $(pub $more: MapHandle,)*
        }

        impl PolicyMaps {
            fn each(make: impl Fn(&str, &Shape) -> Result<MapHandle>) -> Result<Self> {
                Ok(Self {
                    $($name: make(stringify!($name), &$shape)?,)*
                    $($more: make(stringify!($more), &$its)?,)*
                })
            }

            fn all_mut(
                &mut self,
            ) -> impl DoubleEndedIterator<Item = (&'static str, &mut MapHandle)> {
                [
                    $((stringify!($name), &mut self.$name),)*
                    $((stringify!($more), &mut self.$more),)*
                ]
                .into_iter()
            }

            fn of_datapath(&self) -> impl Iterator<Item = (&'static str, &MapHandle)> {
                [$((stringify!($name), &self.$name),)*].into_iter()
            }
        }

        const OF_DATAPATH: &[&str] = &[$(stringify!($name),)*];
    };
}

maps! {
    datapath {
        policy: array(size_of::<sys::vcc_policy>(), 1),
        rules: array(size_of::<sys::vcc_params>(), sys::EDITIONS * sys::RULES_MAX),
        rule_totals: array(size_of::<sys::vcc_rule_totals>(), sys::EDITIONS * sys::RULES_MAX),
        rule_sets: array(size_of::<sys::vcc_rule_set>(), sys::EDITIONS * sys::RULE_SETS_MAX),
        prefixes: Shape {
            map_type: MapType::LpmTrie,
            key_bytes: size_of::<sys::vcc_prefix>(),
            value_bytes: 4,
            entries: sys::EDITIONS * sys::PREFIXES_MAX,
            flags: libbpf_sys::BPF_F_NO_PREALLOC,
        },
        port_numbers: array(size_of::<sys::vcc_port_sets>(), sys::EDITIONS * sys::PORT_NUMBERS),
        vlans: array(4, sys::EDITIONS * sys::VLAN_IDS),
        tenants: array(size_of::<sys::vcc_rule_set>(), sys::EDITIONS * sys::PORTS_MAX),
        pools: array(size_of::<sys::vcc_pool>(), sys::POOLS_MAX),
    }
    user_space {
        rule_names: array(NAME_BYTES as usize, sys::EDITIONS * sys::RULES_MAX),
        pool_names: array(NAME_BYTES as usize, sys::POOLS_MAX),
    }
}

/// The first map: it is pinned last, so its pin shows that all are there.
const FIRST: &str = "policy";

impl PolicyMaps {
    pub(super) fn create() -> Result<Self> {
        Self::each(|name, shape| shape.create(name))
    }

    /// Pins all maps or none, and replaces an incomplete set. The caller holds the lock.
    pub(super) fn create_pinned(place: &Path) -> Result<Self> {
        if place.exists() {
            Self::unpin(place)?;
        }
        let mut maps = Self::create()?;
        maps.pin(place)?;
        Ok(maps)
    }

    /// Pins all, or none, where nothing is pinned.
    pub(super) fn pin(&mut self, place: &Path) -> Result<()> {
        fs::create_dir(place).map_err(|e| Error::system("pin the policy's maps", e))?;
        for (name, map) in self.all_mut().rev() {
            if let Err(error) = map.pin(place.join(name)) {
                let _ = Self::unpin(place);
                return Err(Error::system("pin the policy's maps", error));
            }
        }
        Ok(())
    }

    /// None if there are none, or not all: they are being created, or the process that did so died.
    pub(super) fn open(place: &Path) -> Result<Option<Self>> {
        if !Self::are_there(place) {
            return Ok(None);
        }
        let open = |name: &str, shape: &Shape| {
            let map = MapHandle::from_pinned_path(place.join(name))
                .map_err(|e| Error::system("open the policy's maps", e))?;
            if shape.is_of(&map) { Ok(map) } else { Err(Error::OtherPolicyVersion) }
        };
        Self::each(open).map(Some)
    }

    pub(super) fn are_there(place: &Path) -> bool {
        place.join(FIRST).exists()
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

    /// Makes a datapath that is about to be loaded use these maps.
    pub(crate) fn lend_to(&self, object: &mut OpenObject) -> Result<()> {
        crate::object::lend(object, self.of_datapath(), "share the policy")
    }
}

/// Makes these maps as small as possible for a datapath without a policy, which does not read them.
pub(crate) fn shrink(object: &mut OpenObject) -> Result<()> {
    for name in OF_DATAPATH {
        crate::object::map(object, name)?
            .set_max_entries(1)
            .map_err(|e| Error::system("leave the policy's maps out", e))?;
    }
    Ok(())
}

//! The maps that the ports of a host share. Their names are those in `datapath/` and of their pins.

use std::fs;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, Object, OpenObject, libbpf_sys};
use vcc_engine::sys;

use crate::object::{self, lacks};
use crate::plain::{from_bytes, to_bytes};
use crate::tcx::Hook;
use crate::{Error, Result, kernel, pins};

/// Declares [`Maps`] and all that is done with each of them.
macro_rules! maps {
    ($($name:ident,)*) => {
        pub(crate) struct Maps {
            $(pub $name: MapHandle,)*
        }

        impl Maps {
            /// Opens each map by its name.
            pub(crate) fn open(open: impl Fn(&str) -> Result<MapHandle>) -> Result<Self> {
                Ok(Self { $($name: open(stringify!($name))?,)* })
            }

            pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, &MapHandle)> {
                [$((stringify!($name), &self.$name),)*].into_iter()
            }
        }
    };
}

maps! {
    flows,
    queued,
    wheels,
    timers,
    ports,
    usage,
    host_usage,
    counts,
    lanes,
    events,
    traces,
    neighbours,
    minisocks,
    call_from_guest,
    call_to_guest,
    constants,
}

/// libbpf creates this map from a section, whose name it has in an object.
pub(crate) const CONSTANTS: &str = "constants";
pub(crate) const CONSTANTS_SECTION: &str = ".rodata.host";

/// Whether runs on a CPU may preempt each other (datapath/lanes.h).
pub(crate) fn has_lanes() -> bool {
    kernel::is_real_time()
}

impl Maps {
    /// The maps of a loaded object.
    pub(crate) fn from_object(object: &Object) -> Result<Self> {
        Self::open(|name| find(object, if name == CONSTANTS { CONSTANTS_SECTION } else { name }))
    }

    /// What a program needs to call the host's.
    pub(crate) fn lend_calls(&self, open: &mut OpenObject) -> Result<()> {
        let calls =
            [("call_from_guest", &self.call_from_guest), ("call_to_guest", &self.call_to_guest)];
        let lanes = [("counts", &self.counts), ("lanes", &self.lanes)];
        let lent = calls.into_iter().chain(lanes.into_iter().filter(|_| has_lanes()));
        object::lend(open, lent, "let a port call the datapath")
    }

    /// The programs that a hook's program calls.
    pub(crate) fn calls(&self, hook: Hook) -> &MapHandle {
        match hook {
            Hook::FromGuest => &self.call_from_guest,
            Hook::ToGuest => &self.call_to_guest,
        }
    }

    /// Whether the maps have the layout of this version of vcc.
    pub(crate) fn are_understood(&self) -> bool {
        let sizes = |map: &MapHandle| (map.key_size() as usize, map.value_size() as usize);
        sizes(&self.flows) == (size_of::<u64>(), size_of::<sys::vcc_entry>())
            && sizes(&self.ports).1 == size_of::<sys::vcc_port>()
            && sizes(&self.counts).1 == size_of::<sys::vcc_counts>()
            && sizes(&self.usage).1 == size_of::<sys::vcc_usage>()
            && sizes(&self.minisocks).1 == size_of::<sys::vcc_minisock_set>()
            && sizes(&self.neighbours)
                == (size_of::<sys::vcc_neighbour_key>(), size_of::<sys::vcc_neighbour_at>())
            && self.constants().is_some_and(|constants| constants.layout == sys::LAYOUT_VERSION)
    }

    /// The kernel's memory of all of them, as it is at present.
    pub(crate) fn memory_bytes(&self) -> Result<u64> {
        self.all().map(|(_, map)| memory_bytes(map)).sum()
    }

    /// The constants with which the host's programs were loaded; None if their layout is another
    /// version's.
    pub(crate) fn constants(&self) -> Option<sys::vcc_host_constants> {
        constants_of(&self.constants)
    }
}

/// By fdinfo, since the kernel has no other way: `memlock` in bytes.
fn memory_bytes(map: &MapHandle) -> Result<u64> {
    let path = format!("/proc/self/fdinfo/{}", map.as_fd().as_raw_fd());
    let text = fs::read_to_string(&path).map_err(|e| Error::system(format!("read {path}"), e))?;
    let bytes = text.lines().find_map(|line| line.strip_prefix("memlock:"));
    bytes.and_then(|bytes| bytes.trim().parse().ok()).ok_or_else(|| Error::System {
        doing: format!("read the memory of a map in {path}"),
        why: "it has no number behind `memlock:`".into(),
    })
}

pub(crate) fn constants_of(map: &MapHandle) -> Option<sys::vcc_host_constants> {
    from_bytes(&map.lookup(&[0; 4], MapFlags::ANY).ok()??)
}

/// A map of a loaded object.
pub(crate) fn find(object: &Object, name: &str) -> Result<MapHandle> {
    let map = object.maps().find(|map| map.name() == name).ok_or_else(|| lacks(name))?;
    MapHandle::try_from(&map).map_err(|e| Error::system(format!("keep the map `{name}`"), e))
}

/// Another handle of the same map.
pub(crate) fn keep(map: &MapHandle) -> Result<MapHandle> {
    MapHandle::try_from(map).map_err(|e| Error::system("keep a map", e))
}

/// Pins a map with these constants in another's place.
pub(crate) fn replace_constants(path: &Path, constants: &sys::vcc_host_constants) -> Result<()> {
    let failed = |e| Error::system("pin other constants", e);
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
        ..Default::default()
    };
    let bytes = to_bytes(constants);
    let mut map =
        MapHandle::create(MapType::Array, Some(CONSTANTS), 4, bytes.len() as u32, 1, &options)
            .map_err(failed)?;
    map.update(&[0; 4], bytes, MapFlags::ANY).map_err(failed)?;
    pins::remove_if_there(path).map_err(|e| Error::system("pin other constants", e))?;
    map.pin(path).map_err(failed)
}

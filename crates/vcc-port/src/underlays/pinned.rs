//! The underlays of a host: each object is the value of a map that is pinned, so that whoever loads
//! the datapath next finds it. The slot's number is the pin's name.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, libbpf_sys};
use vcc_engine::Slot;
use vcc_underlay::Object;

use super::{Refused, Underlays};
use crate::pins::remove_if_there;
use crate::{Error, Result, bpffs};

/// The pins of ports have names with an `@`, so this is not taken for one.
const PLACE: &str = "/sys/fs/bpf/vcc/underlays";

fn path(slot: Slot) -> PathBuf {
    Path::new(PLACE).join(slot.index().to_string())
}

impl Underlays {
    /// The underlays that are loaded on this host.
    pub fn pinned() -> Result<Self> {
        let mut found = Self::default();
        if !bpffs::has_home()? {
            return Ok(found);
        }
        for slot in Slot::all().filter(|slot| path(*slot).exists()) {
            let doing = || format!("read the underlay in {}", path(slot).display());
            let failed = |e| Error::system(doing(), e);
            let map = MapHandle::from_pinned_path(path(slot)).map_err(failed)?;
            let value = map.lookup(&[0; 4], MapFlags::ANY).map_err(failed)?.unwrap_or_default();
            let name = Object::name_in(&value);
            match Object::parse(value) {
                Ok(object) => found.loaded.push((slot, object)),
                Err(why) => found.refused.push(Refused { slot, name, why: why.to_string() }),
            }
        }
        Ok(found)
    }

    /// From here on this process knows the underlays of this host by their names. Returns the
    /// messages about those that are not understood.
    pub fn know() -> Result<Vec<String>> {
        let pinned = Self::pinned()?;
        pinned.name_here();
        let message = |Refused { slot, name, why }: &Refused| {
            let name = name.clone().unwrap_or_else(|| path(*slot).display().to_string());
            format!(
                "the underlay {name} {why}; until it is loaded again, its connections continue under NewReno"
            )
        };
        Ok(pinned.refused.iter().map(message).collect())
    }
}

pub(crate) fn pin(slot: Slot, object: &Object) -> Result<()> {
    let doing = || format!("keep the underlay {}", object.name());
    match fs::create_dir(PLACE) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
            return Err(Error::system(doing(), e));
        }
        _ => {}
    }
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
        ..Default::default()
    };
    let bytes = object.bytes();
    let keep = || -> libbpf_rs::Result<()> {
        let mut map = MapHandle::create(
            MapType::Array,
            Some("vcc_underlay"),
            4,
            bytes.len() as u32,
            1,
            &options,
        )?;
        map.update(&[0; 4], bytes, MapFlags::ANY)?;
        // Of a process that died half way.
        remove_if_there(&path(slot))?;
        map.pin(path(slot))
    };
    keep().map_err(|e| Error::system(doing(), e))
}

pub(crate) fn unpin(slot: Slot) -> Result<()> {
    let path = path(slot);
    remove_if_there(&path).map_err(|e| Error::system(format!("remove {}", path.display()), e))?;
    // It goes with the last one.
    let _ = fs::remove_dir(PLACE);
    Ok(())
}

//! The networks of an edition. They are the most expensive entries to write, and most policies
//! change few of them, so unchanged ones stay.

use std::collections::HashMap;

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use vcc_engine::sys;
use vcc_policy::Compiled;

use crate::batch::Batches;
use crate::plain::{from_bytes, to_bytes};
use crate::{Error, Result};

/// Width of the edition in `struct vcc_prefix`.
const EDITION_BITS: u32 = sys::PREFIX_EDITION_BITS;
/// Entries per system call.
const ROOM: usize = 4096;

pub(super) fn write(map: &MapHandle, edition: u32, compiled: &Compiled) -> Result<()> {
    let failed = |e| Error::system("write the policy's networks", e);
    let Changes { stale, keys, values } = changes(map, edition, compiled)?;
    let count = |keys: &[u8]| (keys.len() / size_of::<sys::vcc_prefix>()) as u32;
    if !stale.is_empty() {
        map.delete_batch(&stale, count(&stale), MapFlags::ANY, MapFlags::ANY).map_err(failed)?;
    }
    if !keys.is_empty() {
        map.update_batch(&keys, &values, count(&keys), MapFlags::ANY, MapFlags::ANY)
            .map_err(failed)?;
    }
    Ok(())
}

struct Changes {
    stale: Vec<u8>,
    keys: Vec<u8>,
    values: Vec<u8>,
}

fn changes(map: &MapHandle, edition: u32, compiled: &Compiled) -> Result<Changes> {
    let mut wanted: HashMap<Vec<u8>, [u8; 4]> = compiled
        .prefixes
        .iter()
        .map(|prefix| {
            let key = sys::vcc_prefix {
                length_bits: EDITION_BITS + u32::from(prefix.length),
                edition: edition as u8,
                peer_addr: prefix.addr,
                reserved: [0; 3],
            };
            (to_bytes(&key).to_vec(), prefix.set.to_ne_bytes())
        })
        .collect();
    const DOING: &str = "read the policy's networks";
    let mut stale = Vec::new();
    let mut batches = Batches::new(map, ROOM);
    while let Some(entries) = batches.next().map_err(|e| Error::system(DOING, e))? {
        for (key, value) in entries {
            let prefix: sys::vcc_prefix = from_bytes(key).ok_or_else(|| Error::layout(DOING))?;
            if u32::from(prefix.edition) != edition {
                continue;
            }
            match wanted.get(key) {
                Some(set) if value == set => {
                    wanted.remove(key);
                }
                Some(_) => {}
                None => stale.extend_from_slice(key),
            }
        }
    }
    let mut changes = Changes { stale, keys: Vec::new(), values: Vec::new() };
    for (key, value) in wanted {
        changes.keys.extend_from_slice(&key);
        changes.values.extend_from_slice(&value);
    }
    Ok(changes)
}

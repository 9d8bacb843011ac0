//! Where the numbers are in the values of the kernel's maps, by their names. Another version of vcc may
//! have them elsewhere; this one reads that version's pins by its layout.
//!
//! The layout is pinned next to the maps as text, because reading the kernel's own description,
//! BTF, takes CAP_SYS_ADMIN, which the daemon does without. Versions that pinned none are read by
//! BTF.

mod btf;

use std::collections::BTreeMap;
use std::path::Path;

use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, libbpf_sys};
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// The structures that are read from another version's maps.
const STRUCTS: [&str; 3] = ["vcc_key", "vcc_entry", "vcc_port"];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Layout(BTreeMap<String, Struct>);

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Struct {
    pub bytes: usize,
    /// The members of a member are `member.name`.
    pub fields: BTreeMap<String, Field>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Field {
    pub at: usize,
    pub bytes: usize,
}

impl Field {
    fn bytes_in<'value>(&self, value: &'value [u8]) -> &'value [u8] {
        value.get(self.at..self.at + self.bytes).unwrap_or_default()
    }
}

impl Layout {
    /// Of the structure that the other version has by that name.
    pub(crate) fn structure(&self, name: &str) -> Result<&Struct> {
        self.0.get(name).ok_or_else(|| Error::Undescribed { what: name.into() })
    }

    /// Pins it at `path`, as text.
    pub(crate) fn pin(&self, path: &Path) -> Result<()> {
        const DOING: &str = "pin the layout of the maps";
        let failed = |e| Error::system(DOING, e);
        let text = serde_json::to_vec(self).expect("names and numbers have a form in JSON");
        let options = libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
            ..Default::default()
        };
        let bytes = text.len() as u32;
        let mut map = MapHandle::create(MapType::Array, Some("layout"), 4, bytes, 1, &options)
            .map_err(failed)?;
        map.update(&[0; 4], &text, MapFlags::ANY).map_err(failed)?;
        map.pin(path).map_err(failed)
    }

    /// The layout that is pinned at `path`; None if there is no pin.
    pub(crate) fn pinned(path: &Path) -> Result<Option<Self>> {
        if !path.exists() {
            return Ok(None);
        }
        let failed = |e| Error::system(format!("read {}", path.display()), e);
        let map = MapHandle::from_pinned_path(path).map_err(failed)?;
        let text = map.lookup(&[0; 4], MapFlags::ANY).map_err(failed)?.unwrap_or_default();
        Ok(serde_json::from_slice(&text).ok())
    }
}

impl Struct {
    /// Puts into `value`, which has this layout, the numbers of another's value. What that one does not
    /// have stays as it is.
    pub(crate) fn fill(&self, value: &mut [u8], other: &Self, others: &[u8]) -> Result<()> {
        for (name, field) in &self.fields {
            let Some(from) = other.fields.get(name) else { continue };
            put(&mut value[field.at..field.at + field.bytes], from.bytes_in(others))
                .ok_or_else(|| Error::Undescribed { what: name.clone() })?;
        }
        Ok(())
    }
}

/// None if the number does not fit.
fn put(place: &mut [u8], number: &[u8]) -> Option<()> {
    if place.len() == number.len() {
        place.copy_from_slice(number);
        return Some(());
    }
    if place.len().max(number.len()) > size_of::<u64>() {
        return None;
    }
    let mut wide = [0; size_of::<u64>()];
    // Both have the byte order of this host.
    if cfg!(target_endian = "big") {
        wide[size_of::<u64>() - number.len()..].copy_from_slice(number);
        let (rest, low) = wide.split_at(size_of::<u64>() - place.len());
        place.copy_from_slice(low);
        return rest.iter().all(|byte| *byte == 0).then_some(());
    }
    wide[..number.len()].copy_from_slice(number);
    let (low, rest) = wide.split_at(place.len());
    place.copy_from_slice(low);
    rest.iter().all(|byte| *byte == 0).then_some(())
}

#[cfg(test)]
mod tests;

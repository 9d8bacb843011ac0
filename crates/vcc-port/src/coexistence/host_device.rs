//! Devices of the host itself, which a pattern of names may match by accident.

use super::neighbours::Link;
use super::{bond, direction};
use crate::{Error, Result};

/// A device behind which there is no guest, or not one alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostDevice {
    pub name: String,
    /// In a few words.
    pub what: String,
}

/// Those of the calling thread's network namespace.
pub fn host_devices() -> Result<Vec<HostDevice>> {
    let links = Link::all().map_err(|e| Error::system("list the network devices", e))?;
    let mut found = Vec::new();
    for link in &links {
        let master = links.iter().find(|other| Some(other.index) == link.master);
        found.extend(judge(link, master)?);
    }
    Ok(found)
}

/// None if the device seems to be a guest's, or is gone.
pub fn host_device(index: u32) -> Result<Option<HostDevice>> {
    let Ok(link) = Link::read(index) else { return Ok(None) };
    let master = link.master.and_then(|index| Link::read(index).ok());
    judge(&link, master.as_ref())
}

fn judge(link: &Link, master: Option<&Link>) -> Result<Option<HostDevice>> {
    let what = if link.is_loopback {
        "the loopback".to_owned()
    } else if link.is_a(&["bridge"]) {
        "a bridge".to_owned()
    } else if link.is_a(bond::KINDS) {
        format!("a {}", link.kind.as_deref().unwrap_or_default())
    } else if let Some(whole) = master.filter(|master| master.is_a(bond::KINDS)) {
        format!("a member of {}", whole.name)
    } else if link.is_card() {
        "a card".to_owned()
    } else if direction::has_default_route(&link.name)? {
        "the device of the default route".to_owned()
    } else {
        return Ok(None);
    };
    Ok(Some(HostDevice { name: link.name.clone(), what }))
}

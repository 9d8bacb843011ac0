//! The VRF that the device belongs to.

use super::Found;
use super::neighbours::Neighbours;
use crate::Result;

pub(super) fn check(at: &Neighbours<'_>) -> Result<Vec<Found>> {
    let Some(vrf) = at.master().filter(|master| master.is_a(&["vrf"])) else {
        return Ok(Vec::new());
    };
    let found = format!("{} belongs to the VRF {}", at.device.name, vrf.name);
    let meaning = format!("With vcc at {} as well, segments would be translated twice.", vrf.name);
    Ok(vec![Found::note(found, meaning)])
}

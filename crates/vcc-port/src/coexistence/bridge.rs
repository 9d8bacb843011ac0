//! The bridge that the device is a port of.

use super::Found;
use super::neighbours::Neighbours;
use crate::Result;

pub(super) fn check(at: &Neighbours<'_>) -> Result<Vec<Found>> {
    let name = &at.device.name;
    if at.link.is_a(&["bridge"]) {
        let found = format!("{name} is a bridge");
        let meaning = "\
            Its hooks see what the host itself receives, sends or routes, and not what the bridge \
            forwards.";
        return Ok(vec![
            Found::warning(found, meaning).remedy("attach to the bridge's ports that are guests'"),
        ]);
    }
    let Some(bridge) = at.master().filter(|master| master.is_a(&["bridge"])) else {
        return Ok(Vec::new());
    };
    let found = format!("{name} is a port of the bridge {}", bridge.name);
    if !bridge.vlan_filtering {
        return Ok(vec![Found::note(
            found,
            "vcc sees what the guest sends before the bridge does, and what the bridge forwards \
             to the guest after it.",
        )]);
    }
    let meaning = "\
        The bridge adds the port's VLAN after vcc has seen a segment from the guest, and removes \
        it before vcc sees one to the guest: of a port with PVID and `untagged`, vcc sees no \
        VLAN; of a tagged one, the tag of the frame.";
    let remedy = format!(
        "in rules with `vlan`, name the tag that the guest itself sends (`bridge vlan show dev {name}`)"
    );
    Ok(vec![Found::note(format!("{found}, which filters VLANs"), meaning).remedy(remedy)])
}

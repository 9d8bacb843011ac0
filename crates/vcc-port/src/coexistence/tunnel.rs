//! Devices that are tunnels.

use super::Found;
use super::neighbours::Neighbours;
use crate::Result;

/// Of Ethernet frames; others are no ports.
const KINDS: &[&str] =
    &["vxlan", "geneve", "gretap", "ip6gretap", "erspan", "ip6erspan", "bareudp"];

pub(super) fn check(at: &Neighbours<'_>) -> Result<Vec<Found>> {
    if !at.link.is_a(KINDS) {
        return Ok(Vec::new());
    }
    let kind = at.link.kind.as_deref().unwrap_or_default();
    let remote = at.link.remote.as_ref().map(|remote| format!(" to {remote}")).unwrap_or_default();
    let found = format!("{} is a tunnel ({kind}{remote})", at.device.name);
    let meaning = "\
        What it receives comes from the fabric, so vcc would take each end for the other; and all \
        guests behind the tunnel would be one port.";
    Ok(vec![Found::warning(found, meaning).remedy(
        "attach to the host side of the guest's own device, where its segments are not \
         encapsulated",
    )])
}

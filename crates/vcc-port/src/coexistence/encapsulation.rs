//! Tunnels whose packets leave by the device.

use super::Found;
use super::link::Link;
use super::neighbours::Neighbours;
use crate::Result;

const KINDS: &[&str] = &[
    "vxlan",
    "geneve",
    "gre",
    "gretap",
    "ip6gre",
    "ip6gretap",
    "erspan",
    "ip6erspan",
    "ipip",
    "sit",
    "ip6tnl",
];

pub(super) fn look(at: &Neighbours<'_>) -> Result<Vec<Found>> {
    let is_over = |link: &&Link| link.is_a(KINDS) && link.lower == Some(at.link.index);
    let tunnels: Vec<String> = at
        .around
        .links
        .iter()
        .filter(is_over)
        .map(|link| format!("{} ({})", link.name, link.kind.as_deref().unwrap_or_default()))
        .collect();
    if tunnels.is_empty() {
        return Ok(Vec::new());
    }
    let found = format!("packets of {} leave by {}", tunnels.join(", "), at.device.name);
    let meaning = "TCP of guests is behind an outer header here, and vcc sees none of it.";
    Ok(vec![Found::problem(found, meaning).remedy(
        "attach to the host side of the guest's own device, where its segments are not \
         encapsulated",
    )])
}

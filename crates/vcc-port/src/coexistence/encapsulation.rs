//! Tunnels whose packets leave by the device.

use super::Found;
use super::neighbours::{Link, Neighbours, route};
use crate::{Error, Result};

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
    let mut tunnels = Vec::new();
    for tunnel in at.around.links.iter().filter(|link| link.is_a(KINDS)) {
        if leaves_by(tunnel)? == Some(at.device.ifindex) {
            tunnels.push(format!(
                "{} ({})",
                tunnel.name,
                tunnel.kind.as_deref().unwrap_or_default()
            ));
        }
    }
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

/// The device that the tunnel is bound to, or that of the route to its remote end.
fn leaves_by(tunnel: &Link) -> Result<Option<u32>> {
    let Some(remote) = tunnel.remote.filter(|_| tunnel.lower.is_none()) else {
        return Ok(tunnel.lower);
    };
    let device = route::device_to(remote);
    device.map_err(|e| Error::system(format!("find the route to {remote}"), e))
}

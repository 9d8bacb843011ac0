//! Tunnels whose packets leave by the device.

use vcc_policy::{TunnelKind, Tunnels};

use super::Found;
use super::neighbours::{Link, Neighbours, route};
use crate::{Error, Port, Result};

/// The kinds of devices, and the tunnel that a port may look into.
const KINDS: &[(&str, Option<&str>)] = &[
    ("vxlan", Some("vxlan")),
    ("geneve", Some("geneve")),
    ("gre", Some("gre")),
    ("gretap", Some("gre")),
    ("ip6gre", Some("gre")),
    ("ip6gretap", Some("gre")),
    ("erspan", None),
    ("ip6erspan", None),
    ("ipip", None),
    ("sit", None),
    ("ip6tnl", None),
];

pub(super) fn look(at: &Neighbours<'_>) -> Result<Vec<Found>> {
    let mut leaving = Vec::new();
    for link in &at.around.links {
        let Some((kind, tunnel)) = KINDS.iter().find(|(kind, _)| link.is_a(&[kind])) else {
            continue;
        };
        if leaves_by(link)? == Some(at.device.ifindex) {
            let tunnel = tunnel.and_then(TunnelKind::named);
            leaving.push((format!("{} ({kind})", link.name), tunnel));
        }
    }
    if leaving.is_empty() {
        return Ok(Vec::new());
    }
    let inside = match Port::open(&at.device.name) {
        Ok(port) => port.inside()?,
        Err(Error::NotAttached { .. }) => Tunnels::NONE,
        Err(error) => return Err(error),
    };
    let is_seen = |tunnel: &Option<TunnelKind>| tunnel.is_some_and(|kind| inside.has(kind));
    let (seen, hidden): (Vec<_>, Vec<_>) =
        leaving.into_iter().partition(|(_, tunnel)| is_seen(tunnel));
    let packets = |of: Vec<(String, _)>| {
        let names: Vec<String> = of.into_iter().map(|(name, _)| name).collect();
        format!("packets of {} leave by {}", names.join(", "), at.device.name)
    };
    let mut found = Vec::new();
    if !seen.is_empty() {
        let meaning =
            "The port looks into them, so guests' TCP behind the outer header is translated.";
        found.push(Found::note(packets(seen), meaning));
    }
    if !hidden.is_empty() {
        let meaning = "TCP of guests is behind an outer header here, and vcc sees none of it.";
        found.push(Found::problem(packets(hidden), meaning).remedy(
            "attach to the host side of the guest's own device, where its segments are not \
             encapsulated; or, of VXLAN, Geneve and GRE, have the port look into them (`inside`)",
        ));
    }
    Ok(found)
}

/// The device that the tunnel is bound to, or that of the route to its remote end.
fn leaves_by(tunnel: &Link) -> Result<Option<u32>> {
    let Some(remote) = tunnel.remote.filter(|_| tunnel.lower.is_none()) else {
        return Ok(tunnel.lower);
    };
    let device = route::device_to(remote);
    device.map_err(|e| Error::system(format!("find the route to {remote}"), e))
}

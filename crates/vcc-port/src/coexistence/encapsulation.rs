//! Tunnels whose packets leave by the device.

use vcc_policy::TunnelKind;

use super::Found;
use super::neighbours::{Link, Neighbours, route};
use crate::{Error, Result};

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

pub(super) fn check(at: &Neighbours<'_>) -> Result<Vec<Found>> {
    let mut leaving = Vec::new();
    for link in &at.around.links {
        let Some((kind, tunnel)) = KINDS.iter().find(|(kind, _)| link.is_a(&[kind])) else {
            continue;
        };
        if leaves_by(link)? == Some(at.device.ifindex) {
            leaving.push(Leaving::new(link, kind, tunnel.and_then(TunnelKind::named)));
        }
    }
    if leaving.is_empty() {
        return Ok(Vec::new());
    }
    let inside = at.inside()?;
    let (strange, known): (Vec<_>, Vec<_>) =
        leaving.into_iter().partition(|tunnel| tunnel.has_other_port);
    let is_seen = |tunnel: &Leaving| tunnel.kind.is_some_and(|kind| inside.has(kind));
    let (seen, hidden): (Vec<_>, Vec<_>) = known.into_iter().partition(is_seen);
    let packets = |of: Vec<Leaving>| {
        let names: Vec<String> = of.into_iter().map(|tunnel| tunnel.name).collect();
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
        found.push(Found::problem(packets(hidden), meaning).remedy(format!(
            "{ATTACH_TO_THE_GUESTS}; or, of VXLAN, Geneve and GRE, have the port look into them \
             (`inside`)"
        )));
    }
    if !strange.is_empty() {
        let meaning = format!(
            "TCP of guests is behind an outer header here, and vcc sees none of it: it knows \
             tunnels by their UDP ports, {}.",
            known_ports()
        );
        found.push(Found::problem(packets(strange), meaning).remedy(format!(
            "let both ends of the tunnel use a port that vcc knows (`dstport` of ip-link(8)), and \
             have this port look into it (`inside`); or {ATTACH_TO_THE_GUESTS}"
        )));
    }
    Ok(found)
}

const ATTACH_TO_THE_GUESTS: &str = "attach to the host side of the guest's own device, where its \
                                    segments are not encapsulated";

/// A tunnel whose packets leave by the device.
struct Leaving {
    /// With what it is.
    name: String,
    /// If a port may look into it.
    kind: Option<TunnelKind>,
    /// Its packets go to a UDP port by which the datapath does not find it.
    has_other_port: bool,
}

impl Leaving {
    fn new(link: &Link, what: &str, kind: Option<TunnelKind>) -> Self {
        let other =
            link.udp_port.filter(|port| kind.is_some_and(|kind| !kind.udp_ports.contains(port)));
        let to = other.map_or_else(String::new, |port| format!(" to UDP port {port}"));
        let name = format!("{} ({what}{to})", link.name);
        Self { name, kind, has_other_port: other.is_some() }
    }
}

/// Such as `vxlan by 4789 or 8472, geneve by 6081`.
fn known_ports() -> String {
    let kinds = TunnelKind::ALL.into_iter().filter(|kind| !kind.udp_ports.is_empty());
    let of_kind = |kind: TunnelKind| {
        let ports: Vec<String> = kind.udp_ports.iter().map(u16::to_string).collect();
        format!("{} by {}", kind.name, ports.join(" or "))
    };
    kinds.map(of_kind).collect::<Vec<_>>().join(", ")
}

/// The device that the tunnel is bound to, or that of the route to its remote end.
fn leaves_by(tunnel: &Link) -> Result<Option<u32>> {
    let Some(remote) = tunnel.remote.filter(|_| tunnel.lower.is_none()) else {
        return Ok(tunnel.lower);
    };
    let device = route::device_to(remote);
    device.map_err(|e| Error::system(format!("find the route to {remote}"), e))
}

//! The conditions of a rule on connections.

use std::fmt::{self, Display};
use std::net::IpAddr;

use ipnet::IpNet;

use crate::affiliation::Affiliation;
use crate::connection::{Connection, Role};
use crate::listing::listing;

/// TCP ports, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRange {
    pub first: u16,
    pub last: u16,
}

impl PortRange {
    fn contains(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

impl Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

/// A condition that is absent holds for any connection; of a list, one value has to match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    pub tenants: Option<Vec<String>>,
    pub classes: Option<Vec<String>>,
    /// Networks of the peer's address. An IPv6 network contains no IPv4 address.
    pub peers: Option<Vec<IpNet>>,
    pub guest_ports: Option<Vec<PortRange>>,
    pub peer_ports: Option<Vec<PortRange>>,
    pub role: Option<Role>,
    /// 0 stands for frames without a tag.
    pub vlans: Option<Vec<u16>>,
}

impl Conditions {
    pub(crate) fn admit(&self, c: &Connection) -> bool {
        self.admits_port_of(c.affiliation())
            && self.admits_peer(c.peer_address())
            && admits_port(&self.guest_ports, c.guest.port())
            && admits_port(&self.peer_ports, c.peer.port())
            && self.role.is_none_or(|role| role == c.role)
            && self.vlans.as_ref().is_none_or(|vlans| vlans.contains(&c.vlan_id()))
    }

    /// Whether a connection at a port with this affiliation can match.
    pub(crate) fn admits_port_of(&self, port: Affiliation<'_>) -> bool {
        admits_name(&self.tenants, port.tenant) && admits_name(&self.classes, port.class)
    }

    pub(crate) fn admits_peer(&self, address: IpAddr) -> bool {
        self.peers.as_ref().is_none_or(|nets| nets.iter().any(|net| net.contains(&address)))
    }

    /// Each condition that the connection does not meet, with its own value and those that match.
    pub(crate) fn failures(&self, c: &Connection) -> Vec<String> {
        let mut failures = Vec::new();
        let mut failed = |what: &str, is: &dyn Display, wanted: String| {
            failures.push(format!("{what} is {is}, not {wanted}"));
        };
        let tenant = c.tenant.as_deref();
        if let Some(tenants) = self.tenants.as_ref().filter(|_| !admits_name(&self.tenants, tenant))
        {
            failed("tenant", &tenant.unwrap_or("unknown"), any_of(tenants));
        }
        let class = c.class.as_deref();
        if let Some(classes) = self.classes.as_ref().filter(|_| !admits_name(&self.classes, class))
        {
            failed("class", &class.unwrap_or("unknown"), any_of(classes));
        }
        let peer = c.peer_address();
        if let Some(nets) = self.peers.as_ref().filter(|_| !self.admits_peer(peer)) {
            failed("peer", &peer, any_of(nets));
        }
        for (what, ports, port) in [
            ("guest port", &self.guest_ports, c.guest.port()),
            ("peer port", &self.peer_ports, c.peer.port()),
        ] {
            if let Some(wanted) = ports.as_ref().filter(|_| !admits_port(ports, port)) {
                failed(what, &port, any_of(wanted));
            }
        }
        if let Some(role) = self.role.filter(|role| *role != c.role) {
            failed("role", &c.role, role.to_string());
        }
        let vlan = c.vlan_id();
        if let Some(vlans) = self.vlans.as_ref().filter(|vlans| !vlans.contains(&vlan)) {
            failed("VLAN", &vlan_name(vlan), any_of(&vlan_names(vlans)));
        }
        failures
    }
}

pub(crate) fn admits_name(wanted: &Option<Vec<String>>, name: Option<&str>) -> bool {
    wanted.as_ref().is_none_or(|wanted| name.is_some_and(|name| wanted.iter().any(|it| it == name)))
}

fn admits_port(ranges: &Option<Vec<PortRange>>, port: u16) -> bool {
    ranges.as_ref().is_none_or(|ranges| ranges.iter().any(|range| range.contains(port)))
}

fn any_of<T: Display>(values: &[T]) -> String {
    listing(values, " or ")
}

fn vlan_name(vlan: u16) -> String {
    if vlan == 0 { "untagged".to_owned() } else { vlan.to_string() }
}

fn vlan_names(vlans: &[u16]) -> Vec<String> {
    vlans.iter().copied().map(vlan_name).collect()
}

impl Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if let Some(tenants) = &self.tenants {
            parts.push(format!("tenant {}", any_of(tenants)));
        }
        if let Some(classes) = &self.classes {
            parts.push(format!("class {}", any_of(classes)));
        }
        if let Some(peers) = &self.peers {
            parts.push(format!("peer {}", any_of(peers)));
        }
        if let Some(ports) = &self.guest_ports {
            parts.push(format!("guest port {}", any_of(ports)));
        }
        if let Some(ports) = &self.peer_ports {
            parts.push(format!("peer port {}", any_of(ports)));
        }
        if let Some(role) = self.role {
            parts.push(format!("role {role}"));
        }
        if let Some(vlans) = &self.vlans {
            parts.push(format!("VLAN {}", any_of(&vlan_names(vlans))));
        }
        f.pad(&if parts.is_empty() { "any".to_owned() } else { parts.join(", ") })
    }
}

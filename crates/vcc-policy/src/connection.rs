//! The connections that rules are applied to.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use crate::affiliation::Affiliation;

/// The guest's end of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The guest opens it.
    Client,
    Server,
}

impl Role {
    pub const ALL: [Self; 2] = [Self::Client, Self::Server];

    pub fn name(self) -> &'static str {
        match self {
            Role::Client => "client",
            Role::Server => "server",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[derive(Clone, Debug)]
pub struct Connection {
    /// The tenant of the port, where it is known.
    pub tenant: Option<String>,
    /// The class of the port, likewise.
    pub class: Option<String>,
    pub guest: SocketAddr,
    pub peer: SocketAddr,
    /// None and 0 are both untagged.
    pub vlan: Option<u16>,
    pub role: Role,
}

impl Connection {
    pub fn affiliation(&self) -> Affiliation<'_> {
        Affiliation { tenant: self.tenant.as_deref(), class: self.class.as_deref() }
    }

    /// An IPv4-mapped IPv6 address is IPv4.
    pub(crate) fn peer_address(&self) -> IpAddr {
        self.peer.ip().to_canonical()
    }

    /// The 12-bit VLAN identifier of a frame; 0 without a VLAN.
    pub(crate) fn vlan_id(&self) -> u16 {
        self.vlan.unwrap_or(0) & 0xfff
    }
}

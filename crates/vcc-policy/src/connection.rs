//! What rules are asked about.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// Which end of the connection the guest is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The guest opens it.
    Client,
    Server,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Role::Client => "client",
            Role::Server => "server",
        })
    }
}

#[derive(Clone, Debug)]
pub struct Connection {
    /// Whose the port is, where that is known.
    pub tenant: Option<String>,
    pub guest: SocketAddr,
    pub peer: SocketAddr,
    /// The tag's number; a frame without tag has none, and 0 is the same.
    pub vlan: Option<u16>,
    pub role: Role,
}

impl Connection {
    /// An IPv4 address that came in IPv6's notation is IPv4.
    pub(crate) fn peer_address(&self) -> IpAddr {
        self.peer.ip().to_canonical()
    }

    /// As a frame carries it, in 12 bits.
    pub(crate) fn vlan_id(&self) -> u16 {
        self.vlan.unwrap_or(0) & 0xfff
    }
}

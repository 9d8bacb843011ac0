//! Reading the flow table.

mod batch;

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use libbpf_rs::MapHandle;
use vcc_engine::{FlowState, sys};

use crate::plain::from_bytes;
use crate::{Error, Result};
use batch::Batches;

/// How many flows one system call brings.
const ROOM: usize = 1024;

/// One connection at a port, as it stood when it was read.
#[derive(Clone)]
pub struct Flow {
    pub guest: SocketAddr,
    pub peer: SocketAddr,
    /// The 802.1Q VLAN in which it runs.
    pub vlan: Option<u16>,
    pub state: FlowState,
}

impl Flow {
    /// Whether the guest and the peer understand the windows between them at different scales, or
    /// may do so in a moment, when the handshake ends. Without vcc such a connection crawls.
    pub fn depends_on_translation(&self) -> bool {
        match self.state.stage.into() {
            sys::STAGE_SYN_SENT | sys::STAGE_SYN_RECEIVED => true,
            sys::STAGE_ESTABLISHED => self.state.wscale_shown != self.state.wscale_peer,
            _ => false,
        }
    }
}

/// Reads all flows in batches: a system call for each would take a hundred times as long.
pub(crate) fn read(map: &MapHandle) -> Result<Vec<Flow>> {
    let mut flows = Vec::new();
    let mut batches = Batches::new(map, ROOM);
    while let Some(entries) = batches.next().map_err(|e| Error::system("read the flows", e))? {
        for (key, value) in entries {
            flows.push(flow(key, value).ok_or(Error::OtherVersion)?);
        }
    }
    Ok(flows)
}

fn flow(key: &[u8], value: &[u8]) -> Option<Flow> {
    let key: sys::vcc_key = from_bytes(key)?;
    let entry: sys::vcc_entry_abi = from_bytes(value)?;
    Some(Flow {
        guest: SocketAddr::new(address(key.guest_addr), u16::from_be(key.guest_port)),
        peer: SocketAddr::new(address(key.peer_addr), u16::from_be(key.peer_port)),
        vlan: (key.vlan != 0).then_some(key.vlan),
        state: FlowState(entry.flow),
    })
}

fn address(bytes: [u8; 16]) -> IpAddr {
    Ipv6Addr::from(bytes).to_canonical()
}

#[cfg(test)]
pub(crate) mod tests;

//! Reading the flow table.

mod tag;

use std::fmt;
use std::net::SocketAddr;

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use vcc_engine::{FlowKey, FlowState, sys};

use crate::batch::Batches;
use crate::maps::{Maps, keep};
use crate::plain::from_bytes;
use crate::{Error, Result};
pub(crate) use tag::secrets;
use tag::{Secrets, tag};

/// Flows per system call.
const ROOM: usize = 1024;

/// Identifies a connection at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId {
    pub guest: SocketAddr,
    pub peer: SocketAddr,
    /// The 802.1Q VLAN ID.
    pub vlan: Option<u16>,
    /// The connection is inside a tunnel.
    pub inside: bool,
}

impl FlowId {
    /// `port` is the port's index.
    pub(crate) fn key(&self, port: u32) -> sys::vcc_key {
        let key = *FlowKey::new(self.guest, self.peer, self.vlan).with_inside(self.inside).as_raw();
        sys::vcc_key { port: port as u16, ..key }
    }

    pub(crate) fn of_key(key: &sys::vcc_key) -> Self {
        let key = FlowKey::from_raw(*key);
        Self { guest: key.guest(), peer: key.peer(), vlan: key.vlan(), inside: key.is_inside() }
    }
}

impl fmt::Display for FlowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.guest, self.peer)?;
        if self.inside {
            f.write_str(" in a tunnel")?;
        }
        self.vlan.map_or(Ok(()), |vlan| write!(f, " in VLAN {vlan}"))
    }
}

/// One connection at a port, as of the time when it was read.
#[derive(Clone)]
pub struct Flow {
    pub guest: SocketAddr,
    pub peer: SocketAddr,
    /// The 802.1Q VLAN ID.
    pub vlan: Option<u16>,
    /// The connection is inside a tunnel.
    pub inside: bool,
    pub state: FlowState,
}

impl Flow {
    pub(crate) fn new(id: FlowId, state: sys::vcc_flow) -> Self {
        let FlowId { guest, peer, vlan, inside } = id;
        Self { guest, peer, vlan, inside, state: FlowState(state) }
    }

    pub fn id(&self) -> FlowId {
        let Self { guest, peer, vlan, inside, .. } = *self;
        FlowId { guest, peer, vlan, inside }
    }

    /// Whether guest and peer use different window scales, or may do so when the handshake ends.
    /// Without vcc such a connection would be very slow.
    pub fn depends_on_translation(&self) -> bool {
        self.state.depends_on_translation()
    }
}

/// Reads the flows of a port.
pub(crate) fn read(map: &MapHandle, port: u32) -> Result<Vec<Flow>> {
    let mut flows = Vec::new();
    each(map, |of_port, flow| {
        if of_port == port {
            flows.push(flow());
        }
    })?;
    Ok(flows)
}

/// Visits the flows of all ports, with the port's index, in batches: one system call per flow would
/// take a hundred times as long.
pub(crate) fn each(map: &MapHandle, mut visit: impl FnMut(u32, &dyn Fn() -> Flow)) -> Result<()> {
    const DOING: &str = "read the flows";
    let mut batches = Batches::new(map, ROOM);
    while let Some(entries) = batches.next().map_err(|e| Error::system(DOING, e))? {
        for (_, value) in entries {
            let entry: sys::vcc_entry = from_bytes(value).ok_or_else(|| Error::layout(DOING))?;
            visit(entry.key.port.into(), &|| Flow::new(FlowId::of_key(&entry.key), entry.flow));
        }
    }
    Ok(())
}

/// The flow table of a host, for looking up single connections.
pub(crate) struct Table {
    flows: MapHandle,
    secrets: Secrets,
}

impl Table {
    pub fn from_maps(maps: &Maps) -> Result<Self> {
        let constants = maps.constants().ok_or_else(|| Error::layout("read the constants"))?;
        Ok(Self { flows: keep(&maps.flows)?, secrets: constants.tag_secrets })
    }

    /// The state of one connection; None if the port does not know it.
    pub fn look_up(&self, key: &sys::vcc_key) -> Result<Option<sys::vcc_flow>> {
        const DOING: &str = "read a flow";
        let value = self.flows.lookup(&self.tag(key), MapFlags::ANY);
        let Some(value) = value.map_err(|e| Error::system(DOING, e))? else { return Ok(None) };
        let entry: sys::vcc_entry = from_bytes(&value).ok_or_else(|| Error::layout(DOING))?;
        Ok((entry.key == *key).then_some(entry.flow))
    }

    /// A connection's key in the map.
    pub fn tag(&self, key: &sys::vcc_key) -> [u8; 8] {
        tag(&self.secrets, key).to_ne_bytes()
    }
}

#[cfg(test)]
pub(crate) mod tests;

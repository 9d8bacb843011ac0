//! The maps of guest/flood_channel.h.

use std::path::Path;

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use vcc_channel::Flow;
use vcc_net::netlink::bytes;

use crate::{Error, Result};

/// The maps' names in the object.
pub(crate) const LEASES: &str = "flood_leases";
pub(crate) const FLOWS: &str = "flood_flows";

/// Where the congestion control looks.
pub(crate) trait Words {
    /// The session that was written last.
    fn session(&mut self) -> Result<u32>;

    /// The host holds in this session until then, by the kernel's monotonic clock.
    fn lease(&mut self, session: u32, until_ns: u64) -> Result<()>;

    /// The host has so much room for a flow; `None`: it does not hold it.
    fn report(&mut self, session: u32, flow: &Flow, grant_bytes: Option<u32>) -> Result<()>;
}

/// The maps of a registered congestion control.
#[derive(Debug)]
pub(crate) struct Reports {
    leases: MapHandle,
    flows: MapHandle,
}

impl Reports {
    pub fn open(leases: &Path, flows: &Path) -> Result<Self> {
        let open = |path: &Path| {
            MapHandle::from_pinned_path(path)
                .map_err(|error| Error::file("open", path, std::io::Error::other(error)))
        };
        Ok(Reports { leases: open(leases)?, flows: open(flows)? })
    }

    /// Whether the host has a lease at this time, by the kernel's monotonic clock.
    pub fn is_leased(&self, now_ns: u64) -> Result<bool> {
        let value = self.lease_value()?;
        Ok(bytes(&value, 0).map(u64::from_ne_bytes).is_some_and(|until_ns| now_ns < until_ns))
    }

    /// struct flood_lease.
    fn lease_value(&self) -> Result<Vec<u8>> {
        Ok(self.leases.lookup(&ONLY, MapFlags::ANY).map_err(failed)?.unwrap_or_default())
    }
}

/// The map of leases has one element.
const ONLY: [u8; 4] = 0u32.to_ne_bytes();

fn failed(error: libbpf_rs::Error) -> Error {
    Error::Report { why: format!("{error:#}") }
}

impl Words for Reports {
    fn session(&mut self) -> Result<u32> {
        Ok(bytes(&self.lease_value()?, 8).map(u32::from_ne_bytes).unwrap_or_default())
    }

    fn lease(&mut self, session: u32, until_ns: u64) -> Result<()> {
        let mut value = [0; 16];
        value[..8].copy_from_slice(&until_ns.to_ne_bytes());
        value[8..12].copy_from_slice(&session.to_ne_bytes());
        self.leases.update(&ONLY, &value, MapFlags::ANY).map_err(failed)
    }

    fn report(&mut self, session: u32, flow: &Flow, grant_bytes: Option<u32>) -> Result<()> {
        let mut key = [0; 36];
        key[..16].copy_from_slice(&flow.guest);
        key[16..32].copy_from_slice(&flow.peer);
        key[32..34].copy_from_slice(&flow.guest_port.to_ne_bytes());
        key[34..].copy_from_slice(&flow.peer_port.to_ne_bytes());
        let words = [session, grant_bytes.is_some().into(), grant_bytes.unwrap_or_default()];
        let value = words.map(u32::to_ne_bytes);
        self.flows.update(&key, value.as_flattened(), MapFlags::ANY).map_err(failed)
    }
}

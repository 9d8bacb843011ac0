//! How full a port's flow table is, without reading it.

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use vcc_engine::sys;

use crate::plain::from_bytes;
use crate::{Error, Result};

/// How many flows a port has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub flows: u32,
    /// Of these, in their handshake.
    pub half_open: u32,
    /// The longest ever that a CPU was held to look at flows whose time had come, in us.
    pub turn_longest_us: u32,
}

pub(crate) fn read(map: &MapHandle) -> Result<Usage> {
    const DOING: &str = "read how full the flow table is";
    let value = map.lookup(&[0; 4], MapFlags::ANY).map_err(|e| Error::system(DOING, e))?;
    let usage: sys::vcc_usage =
        value.as_deref().and_then(from_bytes).ok_or_else(|| Error::layout(DOING))?;
    Ok(Usage {
        flows: usage.flows,
        half_open: usage.half_open,
        turn_longest_us: usage.turn_longest_us,
    })
}

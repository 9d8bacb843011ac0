//! How full a port's flow table is.

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use vcc_engine::{half_open_max, sys};

use crate::plain::from_bytes;
use crate::{Error, Result};

/// The number of flows at a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub flows: u32,
    /// Flows in their handshake, which `flows` includes.
    pub half_open: u32,
    /// The longest time that a CPU has spent on flows that were due.
    pub turn_longest_us: u32,
}

/// Which part of a flow table is nearly full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// The table as a whole: new connections will find no room.
    Connections,
    /// The share for handshakes: older ones give way to newer ones, as in a SYN flood.
    Handshakes,
}

impl Usage {
    const SHORT_PERCENT: u64 = 90;
    /// Hysteresis: a shortage ends when there is clearly room again.
    const STILL_SHORT_PERCENT: u64 = 80;

    /// The shortage of a port that tracks `max_flows` connections, after the shortage `before`.
    pub fn shortage(&self, max_flows: u32, before: Option<Shortage>) -> Option<Shortage> {
        let is_short = |what, used: u32, room: u32| {
            let still = before == Some(what);
            let percent = if still { Self::STILL_SHORT_PERCENT } else { Self::SHORT_PERCENT };
            u64::from(used) * 100 >= u64::from(room) * percent
        };
        if is_short(Shortage::Connections, self.flows, max_flows) {
            Some(Shortage::Connections)
        } else {
            let handshakes = half_open_max(max_flows);
            is_short(Shortage::Handshakes, self.half_open, handshakes)
                .then_some(Shortage::Handshakes)
        }
    }
}

pub(crate) fn read(map: &MapHandle, index: u32) -> Result<Usage> {
    let usage = read_raw(map, index)?;
    Ok(Usage {
        flows: usage.flows,
        half_open: usage.half_open,
        turn_longest_us: usage.turn_longest_us,
    })
}

pub(crate) fn read_raw(map: &MapHandle, index: u32) -> Result<sys::vcc_usage> {
    const DOING: &str = "read how full the flow table is";
    let value =
        map.lookup(&index.to_ne_bytes(), MapFlags::ANY).map_err(|e| Error::system(DOING, e))?;
    value.as_deref().and_then(from_bytes).ok_or_else(|| Error::layout(DOING))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortage_begins_and_ends_once() {
        let usage = |flows, half_open| Usage { flows, half_open, ..Usage::default() };
        let mut before = None;
        let mut look = |usage: Usage| {
            before = usage.shortage(1000, before);
            before
        };
        let connections = Some(Shortage::Connections);
        assert_eq!(
            [899, 900, 850, 899, 799].map(|flows| look(usage(flows, 0))),
            [None, connections, connections, connections, None]
        );
        let handshakes = Some(Shortage::Handshakes);
        assert_eq!(
            [224, 225, 201, 199].map(|half_open| look(usage(500, half_open))),
            [None, handshakes, handshakes, None]
        );
        assert_eq!(look(usage(950, 250)), connections);
    }
}

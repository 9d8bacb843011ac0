//! What a benchmark asks of a whole host.

use libbpf_rs::{MapCore, MapFlags};
use vcc_engine::sys;

use crate::host::Room;
use crate::{AttachOptions, Counters, Error, Host, Result, counts, flows};

impl Host {
    /// One that is not pinned, of the size of a real one, with so many ports without devices and
    /// without timers.
    pub fn unpinned(ports: u32) -> Result<Self> {
        let (host, _) = Self::load(None, Room::OF_HOST, false)?;
        for index in 0..ports {
            host.enter(index, &AttachOptions::default().port(false))?;
        }
        Ok(host)
    }

    /// How many flows the table of all ports has room for.
    pub fn flow_capacity(&self) -> u32 {
        self.maps.flows.max_entries()
    }

    /// The number of flows of all ports of which `is_so`.
    pub fn count_flows(&self, is_so: impl Fn(&sys::vcc_flow) -> bool) -> Result<u32> {
        let mut count = 0;
        flows::each(&self.maps.flows, |_, flow| count += u32::from(is_so(&flow().state.0)))?;
        Ok(count)
    }

    /// The counters of the port with this index.
    pub fn counters(&self, index: u32) -> Result<Counters> {
        counts::counters(&self.maps.counts, index)
    }

    /// For how many microseconds timers have held a CPU at most, and how often it was more than a
    /// thousand.
    pub fn held_by_timers(&self) -> Result<(u32, u32)> {
        const DOING: &str = "read how long timers have held a CPU";
        let timers = &self.maps.timers;
        let mut held = (0, 0);
        for number in 0..timers.max_entries() {
            let timer = timers.lookup(&number.to_ne_bytes(), MapFlags::ANY);
            let timer = timer.map_err(|e| Error::system(DOING, e))?;
            let words = timer.as_deref().and_then(|timer| timer.last_chunk::<8>());
            let [a, b, c, d, e, f, g, h] = *words.ok_or_else(|| Error::layout(DOING))?;
            let longest_us = u32::from_ne_bytes([a, b, c, d]);
            held = (longest_us.max(held.0), held.1 + u32::from_ne_bytes([e, f, g, h]));
        }
        Ok(held)
    }
}

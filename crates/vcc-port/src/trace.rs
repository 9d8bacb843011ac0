//! Recording the state that the engine infers, ACK by ACK.

use std::time::Duration;

use libbpf_rs::MapHandle;
use vcc_engine::sys;

use crate::flows::{Flow, FlowId};
use crate::lock::Lock;
use crate::maps::{Maps, keep};
use crate::ring::Ring;
use crate::{Result, counters, counts, params};

const RING_BYTES: u32 = 256 << 10;

/// A recording at one port, which ends when it is dropped.
pub struct Trace {
    ring: Ring,
    switch: Switch,
    counts: MapHandle,
    lost_before: u64,
    flow: Option<FlowId>,
    /// Keeps other processes from the same; None if the port is not pinned.
    _role: Option<Lock>,
}

/// A flow right after an ACK was passed to the guest.
#[derive(Clone)]
pub struct TraceEvent {
    /// CLOCK_MONOTONIC.
    pub at_us: u64,
    pub flow: Flow,
}

/// Makes the datapath report ACKs, until it is dropped.
struct Switch {
    ports: MapHandle,
    port: u32,
    generation: u32,
    pinned: bool,
}

impl Trace {
    pub(crate) fn start(
        maps: &Maps,
        port: u32,
        generation: u32,
        flow: Option<FlowId>,
        role: Option<Lock>,
    ) -> Result<Self> {
        let ports = keep(&maps.ports)?;
        let switch = Switch { ports, port, generation, pinned: role.is_some() };
        // A process that was killed while tracing left it on.
        switch.off()?;
        let ring = Ring::open(&maps.traces, port, RING_BYTES)?;
        let counts = keep(&maps.counts)?;
        let lost_before = counts::counters(&counts, port)?.get(counters::TRACE_LOST);
        switch.on(flow.map_or_else(sys::vcc_key::default, |flow| flow.key(port)))?;
        Ok(Self { ring, switch, counts, lost_before, flow, _role: role })
    }

    /// Waits up to `timeout` for the next ACK; None after the timeout or a signal.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<TraceEvent>> {
        let Some(sys::vcc_event { now_us, key, flow, .. }) = self.ring.next(timeout)? else {
            return Ok(None);
        };
        Ok(Some(TraceEvent { at_us: now_us, flow: Flow::new(FlowId::of_key(&key), flow) }))
    }

    /// The recorded connection; None if all are recorded.
    pub fn flow(&self) -> Option<FlowId> {
        self.flow
    }

    /// Stops recording. [`Self::next`] still returns what was recorded.
    pub fn stop(&mut self) -> Result<()> {
        self.switch.off()
    }

    /// The number of ACKs that were not recorded because the ring buffer was full.
    pub fn lost(&self) -> Result<u64> {
        let counted = counts::counters(&self.counts, self.switch.port)?;
        // Another port has the index if this one was detached meanwhile.
        Ok(counted.get(counters::TRACE_LOST).saturating_sub(self.lost_before))
    }
}

impl Switch {
    fn on(&self, traced: sys::vcc_key) -> Result<()> {
        self.change(1, traced)
    }

    fn off(&self) -> Result<()> {
        self.change(0, sys::vcc_key::default())
    }

    fn change(&self, trace: u8, traced: sys::vcc_key) -> Result<()> {
        let of = params::Of { ports: &self.ports, index: self.port, generation: self.generation };
        // A port that was detached meanwhile has no trace any more.
        of.change(self.pinned, |port| {
            port.params.trace = trace;
            port.traced = traced;
        })
        .map(drop)
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        // If this fails, the next trace or sweep corrects it.
        let _ = self.off();
    }
}

//! Recording the state that the engine infers, ACK by ACK.

use std::time::Duration;

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use vcc_engine::sys;

use crate::flows::{Flow, FlowId};
use crate::lock::Lock;
use crate::maps::{Maps, keep};
use crate::plain::to_bytes;
use crate::ring::Ring;
use crate::{Error, Result, counters, params};

/// A recording at one port, which ends when it is dropped.
pub struct Trace {
    ring: Ring,
    switch: Switch,
    counters: MapHandle,
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
    params: MapHandle,
    traced: MapHandle,
    pinned: bool,
}

impl Trace {
    pub(crate) fn start(maps: &Maps, flow: Option<FlowId>, role: Option<Lock>) -> Result<Self> {
        let pinned = role.is_some();
        let switch = Switch { params: keep(&maps.params)?, traced: keep(&maps.traced)?, pinned };
        // A process that was killed while tracing left it on.
        switch.set(false)?;
        let ring = Ring::open(&maps.traces)?;
        let counters = keep(&maps.counters)?;
        let lost_before = counters::read(&counters)?.get(counters::TRACE_LOST);
        switch.point_at(&flow.map_or_else(sys::vcc_key::default, |flow| flow.key()))?;
        switch.set(true)?;
        Ok(Self { ring, switch, counters, lost_before, flow, _role: role })
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
        self.switch.set(false)
    }

    /// The number of ACKs that were not recorded because the ring buffer was full.
    pub fn lost(&self) -> Result<u64> {
        Ok(counters::read(&self.counters)?.get(counters::TRACE_LOST) - self.lost_before)
    }
}

impl Switch {
    fn set(&self, on: bool) -> Result<()> {
        params::change(&self.params, self.pinned, |params| params.0.trace = on.into())
    }

    fn point_at(&self, key: &sys::vcc_key) -> Result<()> {
        self.traced
            .update(&0u32.to_ne_bytes(), to_bytes(key), MapFlags::ANY)
            .map_err(|e| Error::system("select the traced connection", e))
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        // If this fails, the next trace or sweep corrects it.
        let _ = self.set(false);
        let _ = self.point_at(&sys::vcc_key::default());
    }
}

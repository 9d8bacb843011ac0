//! Recording what the engine infers, ACK by ACK.

use std::time::Duration;

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use vcc_engine::sys;

use crate::datapath::Maps;
use crate::flows::{Flow, FlowId};
use crate::lock::Lock;
use crate::plain::to_bytes;
use crate::ring::Ring;
use crate::{Error, Result, counters, params};

/// A recording at one port, from [`crate::Port::trace`] until it is dropped.
pub struct Trace {
    ring: Ring,
    switch: Switch,
    counters: MapHandle,
    lost_before: u64,
    flow: Option<FlowId>,
    /// Held against other processes, where they could open the port.
    _role: Option<Lock>,
}

/// A flow right after an ACK passed to the guest.
#[derive(Clone)]
pub struct TraceEvent {
    /// CLOCK_MONOTONIC.
    pub at_us: u64,
    pub flow: Flow,
}

/// What makes the datapath tell of ACKs; off again when dropped.
struct Switch {
    params: MapHandle,
    traced: MapHandle,
    pinned: bool,
}

impl Trace {
    pub(crate) fn start(maps: &Maps, flow: Option<FlowId>, role: Option<Lock>) -> Result<Self> {
        let keep =
            |map: &MapHandle| MapHandle::try_from(map).map_err(|e| Error::system("keep a map", e));
        let pinned = role.is_some();
        let switch = Switch { params: keep(&maps.params)?, traced: keep(&maps.traced)?, pinned };
        // Whoever was killed while tracing left it on.
        switch.set(false)?;
        let ring = Ring::open(&maps.traces)?;
        let counters = keep(&maps.counters)?;
        let lost_before = counters::read(&counters)?.get(counters::TRACE_LOST);
        switch.point_at(&flow.map_or_else(sys::vcc_key::default, |flow| flow.key()))?;
        switch.set(true)?;
        Ok(Self { ring, switch, counters, lost_before, flow, _role: role })
    }

    /// The next ACK, waiting up to `timeout` for it; None also after a signal.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<TraceEvent>> {
        let Some(sys::vcc_event { now_us, key, flow, .. }) = self.ring.next(timeout)? else {
            return Ok(None);
        };
        Ok(Some(TraceEvent { at_us: now_us, flow: Flow::new(FlowId::of_key(&key), flow) }))
    }

    /// What is recorded: this connection, or all of the port.
    pub fn flow(&self) -> Option<FlowId> {
        self.flow
    }

    /// Records nothing more; what has been recorded can still be taken by [`Self::next`].
    pub fn stop(&mut self) -> Result<()> {
        self.switch.set(false)
    }

    /// How many ACKs could not be recorded because nobody took those before.
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
            .map_err(|e| Error::system("choose what is traced", e))
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        // If that fails, the next trace or command puts it right.
        let _ = self.set(false);
        let _ = self.point_at(&sys::vcc_key::default());
    }
}

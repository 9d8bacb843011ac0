//! What is known of a flow when a run is over.

use std::ops::Range;

/// The windows of a sender at one time.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// Since the start of the window of measurement.
    pub at_us: u64,
    pub cwnd_segs: u32,
    /// The peer's window, as the guest was shown it.
    pub snd_wnd_bytes: u32,
    pub mss_bytes: u32,
}

impl Sample {
    pub fn cwnd_bytes(&self) -> u64 {
        u64::from(self.cwnd_segs) * u64::from(self.mss_bytes)
    }

    /// What may be in flight: the lesser of the two windows.
    pub fn send_window_segs(&self) -> f64 {
        let bytes = self.cwnd_bytes().min(self.snd_wnd_bytes.into());
        bytes as f64 / f64::from(self.mss_bytes)
    }
}

#[derive(Debug, Clone, Default)]
pub struct FlowResult {
    /// As the guest itself sees it, and as its peer does.
    pub guest_has_ecn: bool,
    pub peer_has_ecn: bool,
    pub payload_ok: bool,
    /// What had been received at the start of the window of measurement, at the end of each of its
    /// phases, and in between as often as was asked for.
    pub received_at_bounds_bytes: Vec<u64>,
    pub received_over_time: Vec<Received>,
    /// Within the window of measurement, as are the next two.
    pub retransmitted_segs: u64,
    pub retransmitted_bytes: u64,
    pub sent_segs: u64,
    pub samples: Vec<Sample>,
    /// Of a ping-pong: how long each answer took.
    pub responses: Vec<Response>,
}

#[derive(Debug, Clone, Copy)]
pub struct Response {
    /// When the message left, since the start of the window of measurement.
    pub at_us: u64,
    pub took_ns: u64,
}

#[derive(Debug, Clone, Copy)]
pub struct Received {
    /// Since the start of the window of measurement.
    pub at_us: u64,
    pub bytes: u64,
}

impl FlowResult {
    /// Payload that arrived within these phases; 0 is the first.
    pub fn received_bytes_in(&self, phases: &Range<u32>) -> u64 {
        let at = |bound: u32| self.received_at_bounds_bytes.get(bound as usize).copied();
        match (at(phases.start), at(phases.end)) {
            (Some(before), Some(after)) => after - before,
            _ => 0,
        }
    }

    /// Payload that arrived within the window of measurement.
    pub fn received_bytes(&self) -> u64 {
        let bounds = &self.received_at_bounds_bytes;
        bounds.last().zip(bounds.first()).map_or(0, |(last, first)| last - first)
    }
}

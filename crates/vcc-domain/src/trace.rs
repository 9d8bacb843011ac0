//! Records the engine's inferred state at each ACK.

use vcc_engine::FlowState;

use vcc_engine::FlowKey;

/// A flow's state just before and after an ACK to the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracedAck {
    pub at_ns: u64,
    pub key: FlowKey,
    pub before: Inferred,
    pub after: Inferred,
}

/// The inferred state of the guest's sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inferred {
    pub snd_una: u32,
    pub flight_bytes: u32,
    /// The underlay's cwnd.
    pub cwnd_segs: u32,
    pub mss_bytes: u32,
    pub srtt_us8: u32,
    /// Segments that the guest retransmitted.
    pub retransmissions: u32,
    /// Segments on which the guest set CWR itself.
    pub guest_cwrs: u16,
    /// The last window shown to the guest; 0 before the first.
    pub window_shown_bytes: u32,
}

impl Inferred {
    pub(crate) fn from_flow(flow: &FlowState) -> Self {
        Inferred {
            snd_una: flow.snd_una,
            flight_bytes: flow.flight_bytes(),
            cwnd_segs: flow.cc.cwnd_segs,
            mss_bytes: u32::from(flow.mss_bytes),
            srtt_us8: flow.srtt_us8,
            retransmissions: flow.retransmissions,
            guest_cwrs: flow.guest_cwrs,
            window_shown_bytes: flow.window_shown_bytes().unwrap_or(0),
        }
    }

    pub fn cwnd_bytes(&self) -> u64 {
        u64::from(self.cwnd_segs) * u64::from(self.mss_bytes)
    }
}

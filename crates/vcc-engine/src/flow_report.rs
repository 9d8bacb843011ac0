//! A flow's state in the terms and units in which vcc shows it.

use crate::{Feedback, FlowState, sys};

/// The stage of a connection as seen from the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    New,
    SynSent,
    SynReceived,
    Established,
    Closed,
}

impl Stage {
    pub const ALL: [Self; 5] =
        [Self::New, Self::SynSent, Self::SynReceived, Self::Established, Self::Closed];

    pub fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::SynSent => "syn-sent",
            Self::SynReceived => "syn-received",
            Self::Established => "established",
            Self::Closed => "closed",
        }
    }
}

impl Feedback {
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Agreed => "agreed",
            Self::Lost => "lost",
        }
    }
}

impl FlowState {
    pub fn stage(&self) -> Stage {
        match self.stage.into() {
            sys::STAGE_SYN_SENT => Stage::SynSent,
            sys::STAGE_SYN_RECEIVED => Stage::SynReceived,
            sys::STAGE_ESTABLISHED => Stage::Established,
            sys::STAGE_CLOSED => Stage::Closed,
            _ => Stage::New,
        }
    }

    /// The ECN that the guest negotiated, from its view.
    pub fn ecn_guest(&self) -> &'static str {
        if self.has(sys::FLOW_ACCECN_GUEST) {
            "accurate"
        } else if self.has(sys::FLOW_ECN_GUEST) {
            "yes"
        } else {
            "no"
        }
    }

    /// Does the guest's data leave as ECT? Not after a fallback, although the peer may have
    /// accepted ECN (RFC 3168, 6.1.1).
    pub fn ecn_fabric(&self) -> &'static str {
        let agreed = self.has(sys::FLOW_ECN_FABRIC) && !self.has(sys::FLOW_ECN_FELL_BACK);
        match (agreed, self.accecn) {
            (false, _) => "no",
            (true, 0) => "yes",
            (true, _) => "accurate",
        }
    }

    /// The underlay's cwnd, if it is computed.
    pub fn cwnd_segs(&self) -> Option<u32> {
        self.is_managed().then_some(self.cc.cwnd_segs)
    }

    /// The same in 1/1024 of a segment: without a floor, the window may have part of one, or be less.
    pub fn cwnd_1024(&self) -> Option<u32> {
        let segs_1024 = self.cwnd_segs()? * sys::SEGMENT_1024;
        Some(segs_1024.saturating_add_signed(self.cc.part_1024.into()))
    }

    /// The same in segments, to a thousandth.
    pub fn cwnd(&self) -> Option<f64> {
        let segs = f64::from(self.cwnd_1024()?) / f64::from(sys::SEGMENT_1024);
        Some((segs * 1e3).round() / 1e3)
    }

    /// The same in bytes.
    pub fn cwnd_bytes(&self) -> Option<u64> {
        let cwnd_1024 = u64::from(self.cwnd_1024()?);
        Some(cwnd_1024 * u64::from(self.mss_bytes) / u64::from(sys::SEGMENT_1024))
    }

    /// None if it is not computed, or before the first congestion.
    pub fn ssthresh_segs(&self) -> Option<u32> {
        let ssthresh_segs = self.cc.ssthresh_segs;
        (self.is_managed() && ssthresh_segs < sys::SSTHRESH_INFINITE).then_some(ssthresh_segs)
    }

    /// The last window shown to the guest.
    pub fn window_shown_bytes(&self) -> Option<u32> {
        let window_bytes = u32::from(self.window_shown) << self.wscale_shown;
        self.has(sys::FLOW_WINDOW_SHOWN).then_some(window_bytes)
    }

    /// The window that the peer offered then.
    pub fn window_received_bytes(&self) -> Option<u64> {
        let window_bytes = u64::from(self.window_received) << self.wscale_peer;
        self.has(sys::FLOW_WINDOW_SHOWN).then_some(window_bytes)
    }

    /// SRTT between port and peer, after the first sample.
    pub fn srtt_us(&self) -> Option<u32> {
        (self.srtt_us8 != 0).then_some(self.srtt_us8 / 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_known_once_one_was_shown() {
        let mut flow = FlowState(sys::vcc_flow {
            window_shown: 3,
            wscale_shown: 5,
            window_received: 2,
            wscale_peer: 7,
            ..Default::default()
        });
        assert_eq!((flow.window_shown_bytes(), flow.window_received_bytes()), (None, None));
        flow.0.flags = sys::FLOW_WINDOW_SHOWN;
        assert_eq!(
            (flow.window_shown_bytes(), flow.window_received_bytes()),
            (Some(96), Some(256))
        );
    }
}

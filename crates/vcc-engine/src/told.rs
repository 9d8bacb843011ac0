//! What a flow's state says, in the words and units in which it is told everywhere.

use crate::{Feedback, FlowState, sys};

/// How far a connection is, as far as the port has seen it.
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

    /// The ECN that the guest negotiated, as far as it knows.
    pub fn ecn_guest(&self) -> &'static str {
        if self.has(sys::FLOW_ACCECN_GUEST) {
            "accurate"
        } else if self.has(sys::FLOW_ECN_GUEST) {
            "yes"
        } else {
            "no"
        }
    }

    /// Does what the guest sends go out with ECN? Not where a SYN that asked for it went unanswered,
    /// though the peer may have taken it for agreed (RFC 3168, 6.1.1).
    pub fn ecn_fabric(&self) -> &'static str {
        let agreed = self.has(sys::FLOW_ECN_FABRIC) && !self.has(sys::FLOW_ECN_FELL_BACK);
        if agreed { "yes" } else { "no" }
    }

    /// The underlay's window, where it is computed.
    pub fn cwnd_segs(&self) -> Option<u32> {
        self.is_managed().then_some(self.cc.cwnd_segs)
    }

    /// None: not computed, or not yet found.
    pub fn ssthresh_segs(&self) -> Option<u32> {
        let ssthresh_segs = self.cc.ssthresh_segs;
        (self.is_managed() && ssthresh_segs < sys::SSTHRESH_INFINITE).then_some(ssthresh_segs)
    }

    /// The smoothed round trip between port and peer, once there was one.
    pub fn srtt_us(&self) -> Option<u32> {
        (self.srtt_us8 != 0).then_some(self.srtt_us8 / 8)
    }
}

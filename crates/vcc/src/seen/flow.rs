//! One connection, in a person's words and units.

use std::sync::Arc;

use serde::Serialize;
use vcc_engine::{Feedback, FlowState, Params, Underlay, sys};
use vcc_port::{Flow, FlowId};

use super::limit::{self, Limited};
use super::rates::Rates;

/// What of these is not known, or is none, is None.
#[derive(Clone, Serialize)]
pub struct FlowView {
    pub port: String,
    pub guest: String,
    pub peer: String,
    pub vlan: Option<u16>,
    pub stage: &'static str,
    pub underlay: String,
    /// Of the policy, by which it is treated; none at a port that was attached by hand.
    pub rule: Option<String>,
    /// What the guest negotiated, as far as it knows.
    pub ecn_guest: &'static str,
    /// What was negotiated between vcc and the peer.
    pub ecn_fabric: &'static str,
    pub snd_una: u32,
    pub flight_bytes: u32,
    pub cwnd_segs: Option<u32>,
    /// None: not yet found.
    pub ssthresh_segs: Option<u32>,
    pub mss_bytes: u16,
    pub window_shown_bytes: Option<u32>,
    pub window_received_bytes: Option<u64>,
    pub srtt_us: Option<u32>,
    pub alpha: Option<f64>,
    pub marks: u32,
    pub reductions: u32,
    pub retransmissions: u32,
    pub drops: u32,
    pub policed: u16,
    /// Between two ends under vcc.
    pub feedback: &'static str,
    pub forged: u16,
    /// What the far end told of the guest's data; 24 bits each, as they are on the wire.
    pub heard_ect0_bytes: Option<u32>,
    pub heard_ce_bytes: Option<u32>,
    /// What this end tells of the peer's.
    pub counted_ect0_bytes: Option<u32>,
    pub counted_ce_bytes: Option<u32>,
    /// Between the last two reads, where there were two.
    pub goodput_bits_per_s: Option<f64>,
    pub marks_per_s: Option<f64>,
    pub reductions_per_s: Option<f64>,
    pub retransmissions_per_s: Option<f64>,
    pub limited_by: &'static str,
    pub limited_by_text: String,
    #[serde(skip)]
    pub key: FlowKey,
}

/// Which connection, among those of all ports; see `sampler::keys`.
pub type FlowKey = (Arc<str>, FlowId);

impl FlowView {
    pub fn new(port: &str, key: FlowKey, flow: &Flow, params: &Params, now_us: u64) -> Self {
        let state = &flow.state;
        let managed = state.is_managed();
        let heard = state.has(sys::FLOW_FEEDBACK_HEARD).then_some(state.heard);
        let counted = state.has(sys::FLOW_FEEDBACK).then_some(state.counted);
        let shown = state.has(sys::FLOW_WINDOW_SHOWN);
        let Limited { by, text: limited_by_text } = limit::limited(state, params, now_us);
        Self {
            port: port.into(),
            guest: flow.guest.to_string(),
            peer: flow.peer.to_string(),
            vlan: flow.vlan,
            stage: stage(state),
            underlay: Underlay::from_number(state.underlay)
                .map_or_else(|| state.underlay.to_string(), |underlay| underlay.to_string()),
            rule: None,
            ecn_guest: ecn_guest(state),
            ecn_fabric: if state.has(sys::FLOW_ECN_FABRIC) { "yes" } else { "no" },
            snd_una: state.snd_una,
            flight_bytes: state.flight_bytes(),
            cwnd_segs: managed.then_some(state.cc.cwnd_segs),
            ssthresh_segs: ssthresh_segs(state),
            mss_bytes: state.mss_bytes,
            window_shown_bytes: shown.then(|| state.window_shown_bytes()),
            window_received_bytes: shown
                .then(|| u64::from(state.window_received) << state.wscale_peer),
            srtt_us: (state.srtt_us8 != 0).then_some(state.srtt_us8 / 8),
            alpha: state.alpha(),
            marks: state.marks,
            reductions: state.reductions,
            retransmissions: state.retransmissions,
            drops: state.drops.into(),
            policed: state.policed,
            feedback: match state.feedback() {
                Feedback::None => "none",
                Feedback::Agreed => "agreed",
                Feedback::Lost => "lost",
            },
            forged: state.forged.into(),
            heard_ect0_bytes: heard.map(|heard| heard.ect0_bytes),
            heard_ce_bytes: heard.map(|heard| heard.ce_bytes),
            counted_ect0_bytes: counted.map(|counted| counted.ect0_bytes),
            counted_ce_bytes: counted.map(|counted| counted.ce_bytes),
            goodput_bits_per_s: None,
            marks_per_s: None,
            reductions_per_s: None,
            retransmissions_per_s: None,
            limited_by: by.name(),
            limited_by_text,
            key,
        }
    }

    pub fn set_rates(&mut self, rates: &Rates) {
        self.goodput_bits_per_s = Some(rates.goodput_bits_per_s);
        self.marks_per_s = Some(rates.marks_per_s);
        self.reductions_per_s = Some(rates.reductions_per_s);
        self.retransmissions_per_s = Some(rates.retransmissions_per_s);
    }
}

pub const STAGES: [&str; 5] = ["new", "syn-sent", "syn-received", "established", "closed"];

fn stage(state: &FlowState) -> &'static str {
    match state.stage.into() {
        sys::STAGE_SYN_SENT => "syn-sent",
        sys::STAGE_SYN_RECEIVED => "syn-received",
        sys::STAGE_ESTABLISHED => "established",
        sys::STAGE_CLOSED => "closed",
        _ => "new",
    }
}

fn ecn_guest(state: &FlowState) -> &'static str {
    if state.has(sys::FLOW_ACCECN_GUEST) {
        "accurate"
    } else if state.has(sys::FLOW_ECN_GUEST) {
        "yes"
    } else {
        "no"
    }
}

/// None: not computed, or not yet found.
pub fn ssthresh_segs(state: &FlowState) -> Option<u32> {
    let ssthresh_segs = state.cc.ssthresh_segs;
    (state.is_managed() && ssthresh_segs < sys::SSTHRESH_INFINITE).then_some(ssthresh_segs)
}

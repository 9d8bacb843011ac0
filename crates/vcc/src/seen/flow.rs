//! One connection, in a person's words and units.

use std::sync::Arc;

use serde::Serialize;
use vcc_engine::{Params, Underlay, sys};
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
        let heard = state.has(sys::FLOW_FEEDBACK_HEARD).then_some(state.heard);
        let counted = state.has(sys::FLOW_FEEDBACK).then_some(state.counted);
        let shown = state.has(sys::FLOW_WINDOW_SHOWN);
        let Limited { by, text: limited_by_text } = limit::limited(state, params, now_us);
        Self {
            port: port.into(),
            guest: flow.guest.to_string(),
            peer: flow.peer.to_string(),
            vlan: flow.vlan,
            stage: state.stage().name(),
            underlay: Underlay::from_number(state.underlay)
                .map_or_else(|| state.underlay.to_string(), |underlay| underlay.to_string()),
            rule: None,
            ecn_guest: state.ecn_guest(),
            ecn_fabric: state.ecn_fabric(),
            snd_una: state.snd_una,
            flight_bytes: state.flight_bytes(),
            cwnd_segs: state.cwnd_segs(),
            ssthresh_segs: state.ssthresh_segs(),
            mss_bytes: state.mss_bytes,
            window_shown_bytes: shown.then(|| state.window_shown_bytes()),
            window_received_bytes: shown
                .then(|| u64::from(state.window_received) << state.wscale_peer),
            srtt_us: state.srtt_us(),
            alpha: state.alpha(),
            marks: state.marks,
            reductions: state.reductions,
            retransmissions: state.retransmissions,
            drops: state.drops.into(),
            policed: state.policed,
            feedback: state.feedback().name(),
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

//! One connection, from the engine's state of it.

use std::sync::Arc;

use vcc_engine::{Feedback, FlowState, Underlay, sys};

use crate::snapshot::{Counts, Flow, Stage};

pub fn view(flow: &vcc_port::Flow, port: usize, rule: Option<Arc<str>>, is_current: bool) -> Flow {
    let state = &flow.state;
    let managed = state.is_managed();
    let ssthresh = state.cc.ssthresh_segs;
    Flow {
        port,
        rule,
        is_current,
        guest: flow.guest,
        peer: flow.peer,
        vlan: flow.vlan,
        stage: stage(state),
        underlay: Underlay::from_number(state.underlay).map_or("unknown", Underlay::name),
        ecn_guest: if state.has(sys::FLOW_ACCECN_GUEST) {
            "accurate"
        } else if state.has(sys::FLOW_ECN_GUEST) {
            "yes"
        } else {
            "no"
        },
        ecn_fabric: if state.has(sys::FLOW_ECN_FABRIC) { "yes" } else { "no" },
        feedback: match state.feedback() {
            Feedback::None => "none",
            Feedback::Agreed => "agreed",
            Feedback::Lost => "lost",
        },
        snd_una: state.snd_una,
        cwnd_segs: managed.then_some(state.cc.cwnd_segs),
        ssthresh_segs: (managed && ssthresh < sys::SSTHRESH_INFINITE).then_some(ssthresh),
        window_shown_bytes: state.has(sys::FLOW_WINDOW_SHOWN).then(|| state.window_shown_bytes()),
        mss_bytes: state.mss_bytes,
        srtt_us: (state.srtt_us8 != 0).then_some(state.srtt_us8 / 8),
        alpha: state.alpha(),
        counts: Counts {
            marks: state.marks.into(),
            reductions: state.reductions.into(),
            retransmissions: state.retransmissions.into(),
            drops: state.drops.into(),
        },
    }
}

fn stage(state: &FlowState) -> Stage {
    match state.stage.into() {
        sys::STAGE_SYN_SENT => Stage::SynSent,
        sys::STAGE_SYN_RECEIVED => Stage::SynReceived,
        sys::STAGE_ESTABLISHED => Stage::Established,
        sys::STAGE_CLOSED => Stage::Closed,
        _ => Stage::New,
    }
}

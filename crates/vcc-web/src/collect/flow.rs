//! One connection, from the engine's state of it.

use std::sync::Arc;

use vcc_engine::{Underlay, sys};

use crate::snapshot::{Counts, Flow};

pub fn view(flow: &vcc_port::Flow, port: usize, rule: Option<Arc<str>>, is_current: bool) -> Flow {
    let state = &flow.state;
    Flow {
        port,
        rule,
        is_current,
        guest: flow.guest,
        peer: flow.peer,
        vlan: flow.vlan,
        stage: state.stage(),
        underlay: Underlay::from_number(state.underlay).map_or("unknown", Underlay::name),
        ecn_guest: state.ecn_guest(),
        ecn_fabric: state.ecn_fabric(),
        feedback: state.feedback().name(),
        snd_una: state.snd_una,
        cwnd_segs: state.cwnd_segs(),
        ssthresh_segs: state.ssthresh_segs(),
        window_shown_bytes: state.has(sys::FLOW_WINDOW_SHOWN).then(|| state.window_shown_bytes()),
        mss_bytes: state.mss_bytes,
        srtt_us: state.srtt_us(),
        alpha: state.alpha(),
        counts: Counts {
            marks: state.marks.into(),
            reductions: state.reductions.into(),
            retransmissions: state.retransmissions.into(),
            drops: state.drops.into(),
        },
    }
}

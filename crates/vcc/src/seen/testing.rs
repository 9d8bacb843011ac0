//! Flows for tests of what shows them.

use vcc_engine::{FlowState, Params, Underlay, sys};
use vcc_port::Flow;

use super::FlowView;

/// An established connection that fills its window of 10 segments.
pub fn flow(guest: &str, peer: &str) -> FlowView {
    let dctcp: Underlay = "dctcp".parse().expect("an underlay");
    let state = sys::vcc_flow {
        flags: sys::FLOW_WINDOW_SHOWN | sys::FLOW_ECN_FABRIC,
        stage: sys::STAGE_ESTABLISHED as u8,
        underlay: dctcp.number(),
        snd_nxt: 14_400,
        mss_bytes: 1440,
        srtt_us8: 8 * 1250,
        window_shown: 14_400 >> 5,
        wscale_shown: 5,
        window_received: u16::MAX,
        wscale_peer: 7,
        cc: sys::vcc_cc_state { cwnd_segs: 10, ssthresh_segs: 8, ..Default::default() },
        ..Default::default()
    };
    let [guest, peer] = [guest, peer].map(|end| end.parse().expect("an end"));
    let flow = Flow { guest, peer, vlan: None, state: FlowState(state) };
    FlowView::new("veth3", ("veth3".into(), flow.id()), &flow, &Params::default(), 0)
}

//! A flow, a port and a rule for tests of what shows them.

use vcc_engine::{Action, Delays, FlowState, Mode, Params, Underlay, sys};
use vcc_port::Flow;

use crate::flow::{FlowView, Place};
use crate::port::PortView;
use crate::rule::{RuleView, Totals};
use crate::sums::Sums;

/// The state of an established connection that fills its window of 10 segments.
pub fn state() -> FlowState {
    let dctcp: Underlay = "dctcp".parse().expect("an underlay");
    FlowState(sys::vcc_flow {
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
    })
}

/// With that state, at the port `veth3`.
pub fn flow(guest: &str, peer: &str) -> FlowView {
    flow_of(guest, peer, state())
}

pub fn flow_of(guest: &str, peer: &str, state: FlowState) -> FlowView {
    let [guest, peer] = [guest, peer].map(|end| end.parse().expect("an end"));
    let place = Place { index: 0, key: "veth3".into(), port: "veth3".into(), tenant: None };
    let flow = Flow { guest, peer, vlan: None, inside: false, state };
    FlowView::new(&place, &flow, None, &Params::default(), None, 0)
}

/// In shadow mode at a port, with a window of 10 segments of 1440 bytes.
pub fn shadow_flow(port: &str, una: u32, flight_bytes: u32, marks: u32) -> FlowView {
    let mut flow = flow("192.0.2.1:40000", "192.0.2.2:80");
    flow.key.0 = port.into();
    flow.port = port.into();
    flow.mode = Some(Mode::Shadow);
    let state = &mut flow.state.0;
    (state.snd_una, state.snd_nxt, state.marks) = (una, una + flight_bytes, marks);
    state.cc.path.rtt_min_us = 250;
    flow
}

/// What a port has measured of these delays in us.
pub fn delays(fabric_us: &[u32], guest_us: &[u32]) -> Delays {
    let mut delays = Delays::default();
    let fabric = fabric_us.iter().map(|&fabric_us| Action { fabric_us, ..Action::default() });
    let guest = guest_us.iter().map(|&guest_us| Action { guest_us, ..Action::default() });
    fabric.chain(guest).for_each(|action| delays.count(&action));
    delays
}

/// A port that was attached by hand.
pub fn port(name: &str) -> PortView {
    PortView {
        port: name.into(),
        tenant: None,
        index: None,
        same_guest_as: None,
        shown_at: None,
        underlay: Some("dctcp".into()),
        mode: Some("enforce".into()),
        max_flows: Some(65_536),
        held_bytes: None,
        promised_bytes: None,
        channel: None,
        channel_malformed: None,
        cpu: None,
        cost: None,
        run_time: None,
        counters: Vec::new(),
        delays: Some(Delays::default()),
        sums: Sums::default(),
        unpromised: None,
        failure: None,
    }
}

pub fn rule(name: &str) -> RuleView {
    RuleView {
        name: name.into(),
        mode: "enforce".into(),
        underlay: "dctcp".into(),
        ended: Totals::default(),
        in_domains: Vec::new(),
        connections: 0,
        sums: Sums::default(),
    }
}

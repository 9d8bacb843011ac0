//! The effect of a new policy on live connections.

use vcc_engine::{Underlay, sys};
use vcc_frames::payload;
use vcc_frames::wire::*;
use vcc_port::Program;

use super::*;
use crate::conversation::{Connection as Ends, MSS_BYTES, Shape};
use crate::direction::Direction::{FromGuest, ToGuest};

fn window(frame: &[u8]) -> u16 {
    u16::from_be_bytes([
        frame[ETHERNET_BYTES + IPV4_BYTES + 14],
        frame[ETHERNET_BYTES + IPV4_BYTES + 15],
    ])
}

fn ip_ecn(frame: &[u8]) -> u8 {
    frame[ETHERNET_BYTES + 1] & CE
}

const ENFORCED: &str = "[[rules]]\nname = \"first\"\npeer_port = 443\nunderlay = \"reno-ecn\"\n";

#[test]
fn live_flows_are_judged_anew_at_their_next_packet() {
    if !vcc_testing::can_attach() {
        return;
    }
    let mut ruled = Ruled::new(ENFORCED, None);
    let mut live = Ruling::open(&ruled, 40_000);
    assert_eq!(ip_ecn(&live.data(FromGuest)), ECT_0, "under an underlay with ECN");
    let ends = live.ends;
    let underlay = |name: &str| name.parse::<Underlay>().expect("an underlay").number();

    ruled.apply("[[rules]]\nname = \"none\"\npeer_port = 80\n[default]\nunderlay = \"dctcp\"");
    let mut live = Ruling { ruled: &ruled, ends };
    assert_eq!(live.state().expect("a flow").underlay, underlay("reno-ecn"), "nothing passed yet");
    let cwnd_segs = live.state().expect("a flow").cc.cwnd_segs;
    live.data(FromGuest);
    let state = live.state().expect("a flow");
    assert_eq!((ruled.rule(), state.underlay), (Some("default"), underlay("dctcp")));
    assert_eq!(
        state.cc.cwnd_segs, cwnd_segs,
        "a new underlay continues with the window of the old"
    );
    assert_eq!(ruled.shared.rule_totals().expect("totals")[1].connections, 1);
}

#[test]
fn a_flow_that_depends_on_vcc_is_released_and_not_dropped() {
    if !vcc_testing::can_attach() {
        return;
    }
    let mut ruled = Ruled::new(ENFORCED, None);
    let mut live = Ruling::open(&ruled, 40_000);
    for _ in 0..2 {
        live.data(FromGuest);
    }
    let limited = live.send(ToGuest, &live.ends.packet(ToGuest));
    let scale = live.state().map(|f| f.wscale_peer - f.wscale_shown).expect("a flow");
    assert!(scale > 0 && window(&limited) < 502 << scale, "the underlay's window is shown");
    let ends = live.ends;

    for text in ["", "[default]\nmode = \"shadow\"", "[default]\nunderlay = \"transparent\""] {
        ruled.apply(text);
        assert_eq!(ruled.datapath.judge_flows().expect("judged"), 1);
        let mut live = Ruling { ruled: &ruled, ends: Ends::new(ends.shape, 40_000) };
        (live.ends.guest_next, live.ends.peer_next) = (ends.guest_next, ends.peer_next);
        let state = live.state().expect("a flow");
        assert_ne!(state.flags & sys::FLOW_RELEASED, 0, "{text}");
        let mut marked = live.ends.packet(ToGuest);
        (marked.payload, marked.traffic_class) = (payload(MSS_BYTES), CE);
        let shown = live.send(ToGuest, &marked);
        assert_eq!(
            window(&shown),
            502 << scale,
            "the peer's window, as the guest reads it: {text}"
        );
        assert_eq!(ip_ecn(&shown), 0, "the guest did not negotiate it: {text}");
        let mut answer = live.ends.packet(FromGuest);
        answer.payload = payload(MSS_BYTES);
        let frame = live.send(FromGuest, &answer);
        let flags = frame[ETHERNET_BYTES + IPV4_BYTES + 13];
        assert_ne!(u16::from(flags) & ECE, 0, "but the peer did, and is answered: {text}");
        assert_eq!(ip_ecn(&frame), 0, "nobody would reduce for a mark: {text}");
    }
    ruled.apply(ENFORCED);
    assert_eq!(ruled.datapath.judge_flows().expect("judged"), 1);
    let flags = ruled.datapath.flows().expect("flows")[0].state.flags;
    assert_eq!(flags & sys::FLOW_RELEASED, 0, "and under the underlay again");
}

#[test]
fn a_flow_that_does_not_depend_on_vcc_is_let_go() {
    if !vcc_testing::can_attach() {
        return;
    }
    let mut ruled = Ruled::new("[default]\nmode = \"shadow\"", None);
    let live = Ruling::open(&ruled, 40_000);
    assert!(live.state().is_some());
    ruled.apply("");
    assert_eq!(ruled.datapath.judge_flows().expect("judged"), 1);
    assert!(ruled.datapath.flows().expect("flows").is_empty());
}

#[test]
fn a_handshake_ends_as_it_began() {
    if !vcc_testing::can_attach() {
        return;
    }
    let mut ruled = Ruled::new(ENFORCED, None);
    let mut ends = Ends::new(Shape::plain(FromGuest), 40_000);
    let syn = ends.syn();
    ends.sent(FromGuest, &syn);
    ruled.send(Program::FromGuest, &syn);
    ruled.apply("[default]\nunderlay = \"cubic\"");
    ruled.send(Program::ToGuest, &ends.syn_ack());
    let flows = ruled.datapath.flows().expect("flows");
    assert_eq!(u32::from(flows[0].state.stage), sys::STAGE_ESTABLISHED);
    ends.peer_next += 1;
    ruled.send(Program::FromGuest, &ends.packet(FromGuest));
    assert_eq!(ruled.rule(), Some("default"));
}

/// ECN was negotiated with the peer and not with the guest, under any policies that are
/// applied meanwhile.
#[test]
fn a_handshake_that_outlasts_two_policies_keeps_its_promises() {
    if !vcc_testing::can_attach() {
        return;
    }
    for last in ["", "[default]\nmode = \"shadow\"", "[default]\nunderlay = \"cubic\""] {
        let mut ruled = Ruled::new(ENFORCED, None);
        let mut ends = Ends::new(Shape::plain(FromGuest), 40_000);
        let syn = ends.syn();
        ends.sent(FromGuest, &syn);
        ruled.send(Program::FromGuest, &syn);
        for text in ["[default]\nunderlay = \"reno\"", last] {
            ruled.datapath.settle_flows().expect("settled");
            ruled.apply(text);
        }
        ruled.datapath.settle_flows().expect("settled");
        assert_eq!(ruled.rule(), Some("default"), "{last}");
        let mut answer = ends.syn_ack();
        answer.flags |= ECE;
        ends.sent(ToGuest, &answer);
        let shown = ruled.send(Program::ToGuest, &answer);
        let flags = u16::from(shown[ETHERNET_BYTES + IPV4_BYTES + 13]);
        assert_eq!(flags & ECE, 0, "the guest did not ask: {last}");
        let mut marked = ends.packet(ToGuest);
        (marked.payload, marked.traffic_class) = (payload(MSS_BYTES), CE);
        ends.sent(ToGuest, &marked);
        assert_eq!(ip_ecn(&ruled.send(Program::ToGuest, &marked)), 0, "{last}");
        let echo = ruled.send(Program::FromGuest, &ends.packet(FromGuest));
        let flags = u16::from(echo[ETHERNET_BYTES + IPV4_BYTES + 13]);
        assert_ne!(flags & ECE, 0, "the peer's mark is answered: {last}");
    }
}

#[test]
fn what_was_counted_of_a_flow_stays_its_rules_when_its_ports_are_used_again() {
    if !vcc_testing::can_attach() {
        return;
    }
    let mut ruled = Ruled::new(ENFORCED, None);
    let reopen_by = |ruled: &Ruled| {
        let mut flow = Ruling::open(ruled, 40_000);
        flow.data(FromGuest);
        let mut ack = flow.ends.packet(ToGuest);
        ack.flags |= ECE;
        flow.send(ToGuest, &ack);
        // An update whose window is the one shown: it would be a duplicate ACK to the guest.
        flow.data(FromGuest);
        let update = Packet { flags: ACK, window: 0xfffe, ..ack };
        ruled.datapath.run(Program::ToGuest, &update.frame(), 0).expect("run");
        let state = flow.state().expect("a flow");
        assert_eq!((state.marks, state.reductions, state.drops), (1, 1, 1));
        let mut reset = flow.ends.packet(FromGuest);
        reset.flags |= RST;
        flow.send(FromGuest, &reset);
        assert_eq!(u32::from(flow.state().expect("a flow").stage), sys::STAGE_CLOSED);
        flow.ends
    };
    reopen_by(&ruled);
    let closed = reopen_by(&ruled);
    let totals = &ruled.shared.rule_totals().expect("totals")[0];
    let counted = (totals.marks, totals.reductions, totals.drops);
    assert_eq!((totals.connections, counted), (2, (1, 1, 1)), "of the first, which has ended");

    ruled.apply("");
    ruled.send(Program::FromGuest, &Ends::new(closed.shape, 40_000).syn());
    assert!(ruled.datapath.flows().expect("flows").is_empty(), "no rule wants it any more");
}

//! Both ECN fields (RFC 6040).

use vcc_engine::Params;
use vcc_frames::wire::*;
use vcc_frames::{Packet, payload};
use vcc_port::counters;

use super::{looking_inside, run, seen_from, vxlan};
use crate::conversation::{Connection, Shape};
use crate::direction::Direction::{self, FromGuest, ToGuest};
use crate::direction::NEXT;
use crate::layout::Layout;
use crate::loaded::Loaded;

/// A guest without ECN whose connection has it in the fabric, with a peer under vcc.
struct Talk {
    port: Loaded,
    connection: Connection,
}

impl Talk {
    fn new() -> Self {
        let port = Loaded::without_timer(&looking_inside(Params::default()));
        let connection = Connection::new(Shape::plain(ToGuest), 20_000);
        let mut talk = Self { port, connection };
        let mut syn = talk.connection.syn();
        syn.flags |= ECE | CWR;
        syn.options.extend(vcc_frames::options::hello(HELLO_OFFER));
        talk.send(ToGuest, &syn, [0, 0]);
        let syn_ack = talk.connection.syn_ack();
        let [_, (_, flags)] = talk.send(FromGuest, &syn_ack, [0, 0]);
        assert_eq!(flags & (ECE | CWR), ECE, "ECN is agreed");
        let ack = talk.connection.packet(ToGuest);
        talk.send(ToGuest, &ack, [0, 0]);
        talk
    }

    /// Returns what is outside and inside: ECN and TCP's flags.
    fn send(&mut self, from: Direction, packet: &Packet, ecn: [u8; 2]) -> [(u8, u16); 2] {
        self.connection.sent(from, packet);
        let tunnel = seen_from(&vxlan(1), from);
        let packet = Packet { traffic_class: ecn[1], ..packet.clone() };
        let output = run(&self.port, from, &tunnel.wrap(&packet.frame(), ecn[0]), 0);
        assert_eq!(output.return_value, NEXT);
        let opened = tunnel.open(&output.frame).expect("right");
        let at = Layout::parse(&opened.frame, 0).expect("TCP");
        [(opened.ecn, 0), (at.ecn(&opened.frame), at.flags(&opened.frame))]
    }

    fn data(&mut self, from: Direction, ecn: [u8; 2]) -> [u8; 2] {
        let mut packet = self.connection.packet(from);
        packet.payload = payload(100);
        self.send(from, &packet, ecn).map(|(ecn, _)| ecn)
    }

    /// The bytes that have come with a mark.
    fn marked_bytes(&self) -> u32 {
        let flows = self.port.flows().expect("flows");
        assert!(flows[0].inside);
        flows[0].state.0.counted.ce_bytes
    }
}

/// Both fields say what the fabric is to see, as if the encapsulator had copied it (4.1).
#[test]
fn what_the_guest_sends_is_capable_outside_too() {
    if !vcc_testing::can_attach() {
        return;
    }
    let mut talk = Talk::new();
    assert_eq!(talk.data(FromGuest, [0, 0]), [ECT_0, ECT_0]);
    let ack = talk.connection.packet(FromGuest);
    assert_eq!(talk.send(FromGuest, &ack, [0, 0]).map(|(ecn, _)| ecn), [0, 0]);
}

/// What the guest wrote into either field does not leave.
#[test]
fn ecn_of_the_guests_own_leaves_on_neither() {
    if !vcc_testing::can_attach() {
        return;
    }
    let mut talk = Talk::new();
    for outer in [0, ECT_0, ECT_1, CE] {
        for inner in [0, ECT_0, ECT_1, CE] {
            let ack = talk.connection.packet(FromGuest);
            let left = talk.send(FromGuest, &ack, [outer, inner]).map(|(ecn, _)| ecn);
            assert_eq!(left, [0, 0], "an ACK: {outer} {inner}");
            let data = talk.data(FromGuest, [outer, inner]);
            let negotiated = data.iter().all(|ecn| [0, ECT_0].contains(ecn));
            assert!(negotiated, "data: {outer} {inner}: {data:?}");
        }
    }
}

/// A mark on either is a mark (4.2), and a guest without ECN sees none on either, or its
/// decapsulator would drop the segment.
#[test]
fn a_mark_outside_is_one_inside() {
    if !vcc_testing::can_attach() {
        return;
    }
    let mut talk = Talk::new();
    for outer in [0, ECT_0, ECT_1, CE] {
        for inner in [ECT_0, ECT_1, CE] {
            let before = talk.marked_bytes();
            assert_eq!(talk.data(ToGuest, [outer, inner]), [0, 0], "{outer} {inner}");
            let is_mark = outer == CE || inner == CE;
            let marked_bytes = talk.marked_bytes().wrapping_sub(before);
            assert_eq!(marked_bytes, if is_mark { 100 } else { 0 }, "{outer} {inner}");
        }
    }
}

/// A decapsulator must drop it (4.2), so the guest does not have it.
#[test]
fn a_mark_on_what_cannot_be_marked_is_left_to_the_guest() {
    if !vcc_testing::can_attach() {
        return;
    }
    let mut talk = Talk::new();
    let before = talk.port.flows().expect("flows")[0].state.0;
    assert_eq!(talk.data(ToGuest, [CE, 0]), [CE, 0]);
    let after = talk.port.flows().expect("flows")[0].state.0;
    assert_eq!(after.rcv_nxt, before.rcv_nxt);
    assert_eq!(talk.port.counters().expect("counters").get(counters::CANNOT_MARK), 1);
    // The segments that the encapsulator has not reported to the inner end.
    assert_eq!(talk.data(ToGuest, [ECT_0, 0]), [ECT_0, 0]);
}

//! `receive` together with `split`: the port acknowledges in the names of both ends.

use vcc_domain::{CannotTakeOver, Port};
use vcc_engine::{Params, sys};
use vcc_frames::{Packet, payload};

use crate::common::sealed::edited;
use crate::guest::{FIRST_WINDOW, Guest, NO_ACKS, SEG_BYTES, snooping};

const SENT_SEGS: u32 = 15;

fn both() -> Params {
    Params(sys::vcc_params { act: sys::ACT_SPLIT as u8, ..snooping().0 })
}

/// The guest has sent more than may leave, all of which has been acknowledged to it.
fn promised() -> Guest {
    let mut guest = Guest::with(both()).accept();
    for number in 0..SENT_SEGS {
        guest.send(&data(&guest, number));
    }
    let shown = guest.wait_ms(0).to_guest;
    assert_eq!(shown.last().map(|segment| segment.ack), Some(SENT_SEGS * SEG_BYTES));
    assert!(guest.flow().flight_bytes() < SENT_SEGS * SEG_BYTES);
    guest
}

fn data(guest: &Guest, number: u32) -> Packet {
    let own = guest.guest_packet(0, FIRST_WINDOW);
    let seq = own.seq.wrapping_add(number * SEG_BYTES);
    Packet { seq, payload: payload(SEG_BYTES as usize), ..own }
}

/// It carries to the guest an acknowledgement of what has not left.
#[test]
fn data_of_the_peer_is_acknowledged_while_the_guests_is_held() {
    let mut guest = promised();
    guest.data(0, SEG_BYTES);
    assert_eq!(guest.data(SEG_BYTES, SEG_BYTES).acks(), [2 * SEG_BYTES]);
    // Given again, it acknowledges what was acknowledged to the guest before.
    let given = guest.wait_ms(1500).to_guest;
    let again =
        given.iter().find(|segment| segment.payload_bytes > 0).expect("the first one again");
    assert_eq!((again.seq, again.ack), (0, SENT_SEGS * SEG_BYTES));
}

/// A segment that was overtaken is old to the peer, but not yet to the guest.
#[test]
fn an_acknowledgement_on_what_was_acknowledged_for_the_guest_frees_the_buffer() {
    let mut guest = promised();
    guest.data(0, SEG_BYTES);
    assert_eq!(guest.data(SEG_BYTES, SEG_BYTES).acks(), [2 * SEG_BYTES]);
    let before_bytes = guest.port.held_bytes();
    let mut overtaken = guest.peer_packet(0, SEG_BYTES);
    overtaken.ack = overtaken.ack.wrapping_add(5 * SEG_BYTES);
    let mut frame = vcc_domain::Frame::full(overtaken.frame());
    let mut out = vcc_domain::Out::default();
    let _ = guest.port.to_guest(guest.now_ns, &mut frame, &mut out);
    assert_eq!(guest.flow().flight_bytes(), 10 * SEG_BYTES, "five more have left");
    let freed_bytes = before_bytes - guest.port.held_bytes();
    assert!(freed_bytes >= 5 * SEG_BYTES, "{freed_bytes}");
}

const STATE: &[u8] = include_bytes!("fixtures/0.1.0.state");

/// What a version has handed over, the next ones take: promises to both ends, with the bytes that keep
/// them.
#[test]
fn a_state_of_a_released_version_is_taken_over() {
    let mut port = Port::new(both(), 16);
    let arrived = port.take_over(0, STATE).expect("it is read");
    assert_eq!((arrived.connections, arrived.waiting.len()), (1, 1));
    assert!(port.held_bytes() > 3 * SEG_BYTES, "{}", port.held_bytes());
    let (_, flow) = port.flows().next().expect("a connection");
    assert!(flow.can_travel() && flow.depends_on_translation());
}

fn refused(state: &[u8]) -> Option<CannotTakeOver> {
    Port::new(both(), 16).take_over(0, state).err()
}

const LINK: &str = "\"link\":{\"bytes\":[2,0,0,0,0,2,2,0,0,0,0,1,8,0,69,0,4,16,18,52,64,0,64,6,16,170,10,0,0,2,10,0,0,9],\
     \"ip_at\":14,\"tcp_at\":34}";
const NO_LINK: &str = "\"link\":{\"bytes\":[],\"ip_at\":0,\"tcp_at\":0}";

/// It could not be given to the peer again, nor could its end be reported.
#[test]
fn a_promise_without_the_guests_headers_is_none() {
    assert_eq!(refused(&edited(STATE, LINK, NO_LINK)), Some(CannotTakeOver::Row(1)));
}

/// They are promised when the guest has filled the hole.
#[test]
fn what_is_behind_a_hole_without_copies_is_none() {
    let end = "\"sacked_end\":4294966473";
    let hole = edited(STATE, "\"sacked_from\":0", "\"sacked_from\":4294966573");
    let hole = edited(&hole, end, "\"sacked_end\":4294966673");
    assert_eq!(refused(&hole), Some(CannotTakeOver::Row(1)));
}

/// As of one whose frames all have IP options.
#[test]
fn nothing_is_said_for_a_guest_whose_headers_are_unknown() {
    let mut guest = Guest::with(both()).accept();
    let (_, state) = guest.port.hand_over("vcc", std::iter::empty());
    let text = String::from_utf8_lossy(&state);
    let link = text.split_once("\"link\":{").and_then(|(_, rest)| rest.split_once('}'));
    let link = format!("\"link\":{{{}}}", link.expect("headers").0);
    guest.port = Port::new(both(), 16);
    let state = edited(&state, &link, NO_LINK);
    // As if the peer had used up its window.
    let text = String::from_utf8_lossy(&state);
    let number = |name: &str| {
        let rest = text.split_once(name).expect("a number").1;
        rest[..rest.find(',').expect("more")].to_owned()
    };
    let [edge, acked] = ["\"told_edge\":", "\"guest_ack\":"].map(number);
    let state = edited(&state, &format!("\"told_edge\":{edge}"), &format!("\"told_edge\":{acked}"));
    guest.port.take_over(guest.now_ns, &state).expect("a state");
    let mut out = vcc_domain::Out::default();
    guest.port.go_on(guest.now_ns, &mut out);
    assert_eq!(out, vcc_domain::Out::default());
    for free_segs in [0, 100, 256] {
        assert_eq!(guest.reads(free_segs).acks(), NO_ACKS);
    }
    // Sent to the address that no guest has announced.
    for number in 0..4 {
        let data = Packet { macs: [[0; 6]; 2], ..guest.peer_packet(number * SEG_BYTES, SEG_BYTES) };
        assert_eq!(guest.receive(&data).acks(), NO_ACKS);
    }
    assert_eq!(guest.wait_ms(100).acks(), NO_ACKS);
}

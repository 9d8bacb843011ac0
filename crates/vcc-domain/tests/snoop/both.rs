//! `snoop` beside `split`: the port acknowledges in the names of both ends.

use vcc_domain::Port;
use vcc_engine::{Params, sys};
use vcc_frames::{Packet, payload};

use crate::guest::{FIRST_WINDOW, Guest, SEG_BYTES, snooping};

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
    assert_eq!(shown.last().map(|said| said.ack), Some(SENT_SEGS * SEG_BYTES));
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
    // Given again, it says what the guest has been told.
    let given = guest.wait_ms(1500).to_guest;
    let again = given.iter().find(|said| said.payload_bytes > 0).expect("the first one again");
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

/// What a version has handed over, the next ones take: promises to both ends, with the bytes that keep
/// them.
#[test]
fn a_state_of_a_released_version_is_taken_over() {
    let state = include_bytes!("fixtures/0.1.0.state");
    let mut port = Port::new(both(), 16);
    let arrived = port.take_over(0, state).expect("it is read");
    assert_eq!((arrived.connections, arrived.waiting.len()), (1, 1));
    assert!(port.held_bytes() > 3 * SEG_BYTES, "{}", port.held_bytes());
    let (_, flow) = port.flows().next().expect("a connection");
    assert!(flow.can_travel() && flow.depends_on_translation());
}

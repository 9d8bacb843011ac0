//! What a connection waits for, if the port acknowledges in the guest's name: for the guest's responses, and
//! not for its acknowledgements.

use vcc_engine::DelayedBy;
use vcc_frames::{Packet, payload};

use crate::guest::{FIRST_WINDOW, Guest, SEG_BYTES};

const ABSENT_MS: u64 = 60;
/// Longer than any delayed ACK.
const STOPPED_MS: u64 = 1000;

/// The guest runs again, and responds to all that it was sent.
fn respond(guest: &mut Guest, ack: u32) {
    let response = Packet { payload: payload(100), ..guest.guest_packet(ack, FIRST_WINDOW) };
    assert!(guest.send(&response).passed);
}

/// What the connection waits for, as other processes see it.
fn waits(guest: &Guest) -> Option<DelayedBy> {
    let seen = guest.port.seen().next().expect("the flow");
    seen.state.with_open_wait(guest.port.params(), guest.now_ns / 1000).delayed_by()
}

fn guest_delay_us(guest: &Guest) -> Option<u32> {
    guest.flow().guest_delay_us()
}

#[test]
fn a_response_is_the_guests_though_its_question_was_acknowledged() {
    // A delayed ACK of the port; one at once; one for each two segments.
    for question_segs in [&[100][..], &[SEG_BYTES; 2], &[SEG_BYTES; 6]] {
        let mut guest = Guest::new().accept();
        guest.acks(0, FIRST_WINDOW);
        let mut end = 0;
        for bytes in question_segs {
            guest.data(end, *bytes);
            end += bytes;
        }
        let sent = guest.wait_ms(ABSENT_MS);
        let acked = sent.acks().last().copied().unwrap_or(end);
        assert_eq!(acked, end, "acknowledged without the guest");
        assert_eq!(guest_delay_us(&guest), None);
        respond(&mut guest, end);
        assert_eq!(guest_delay_us(&guest), Some(ABSENT_MS as u32 * 1000), "{question_segs:?}");
    }
}

#[test]
fn the_guests_own_acknowledgement_ends_the_question() {
    let mut guest = Guest::new().accept();
    guest.acks(0, FIRST_WINDOW);
    guest.data(0, 100);
    guest.wait_ms(ABSENT_MS);
    guest.acks(100, FIRST_WINDOW);
    guest.wait_ms(1000);
    respond(&mut guest, 100);
    assert_eq!(guest_delay_us(&guest), None);
}

/// Nothing was measured before, and each answer to the peer is the port's.
#[test]
fn a_peer_that_has_used_up_the_window_waits_for_the_guest() {
    let mut guest = Guest::new().accept();
    guest.acks(0, FIRST_WINDOW);
    for end in (0..FIRST_WINDOW).step_by(SEG_BYTES as usize) {
        assert_eq!(waits(&guest), None, "{end}");
        guest.data(end, SEG_BYTES);
    }
    guest.wait_ms(STOPPED_MS);
    assert_eq!(waits(&guest), Some(DelayedBy::Guest));
    guest.reads(256);
    guest.acks(FIRST_WINDOW, FIRST_WINDOW);
    assert_eq!(guest_delay_us(&guest), Some(STOPPED_MS as u32 * 1000));
}

#[test]
fn a_peer_that_sends_does_not_wait_for_the_guest() {
    let mut guest = Guest::new().accept();
    guest.acks(0, FIRST_WINDOW);
    for turn in 0..20 {
        for seg in 0..4 {
            guest.data((4 * turn + seg) * SEG_BYTES, SEG_BYTES);
        }
        guest.wait_ms(ABSENT_MS);
        guest.reads(256);
        guest.acks((4 * turn + 4) * SEG_BYTES, FIRST_WINDOW);
        assert_eq!(guest_delay_us(&guest), None);
    }
}

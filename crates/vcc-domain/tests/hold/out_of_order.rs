//! Segments of the guest that were reordered on their way to the port wait for those before them.

use vcc_domain::BufferSpec;
use vcc_engine::{BufferPolicy, Params, sys};
use vcc_frames::Packet;
use vcc_frames::wire::*;

use crate::ends::{Ends, Guest, MSS_BYTES, holding};
use crate::split::splitting;

const MSS: u32 = MSS_BYTES as u32;
const WINDOW_BYTES: u32 = 60_000;

fn treatments() -> [Params; 3] {
    [holding(), Params(sys::vcc_params { retransmit: 1, ..holding().0 }), splitting()]
}

fn begun(params: Params, ends: &Ends) -> Guest {
    let mut guest = Guest::with(params, BufferSpec::default());
    guest.watch.splits = u32::from(params.0.act) == sys::ACT_SPLIT;
    ends.open(&mut guest, 60_000);
    guest
}

/// Each pair of segments is swapped, and the guest sends nothing again.
#[test]
fn what_was_reordered_arrives() {
    for params in treatments() {
        let mut ends = Ends::new(0);
        let mut guest = begun(params, &ends);
        for number in 0..40 {
            let _ = guest.send(&ends.data((number ^ 1) * MSS, MSS_BYTES));
        }
        ends.drain(&mut guest, WINDOW_BYTES);
        assert_eq!((ends.in_sequence, guest.port.held_bytes()), (40 * MSS, 0), "{params:?}");
    }
}

/// The first of 40 comes last, with a FIN behind the others.
#[test]
fn a_burst_behind_a_gap_waits_for_it() {
    for params in treatments() {
        let mut ends = Ends::new(0);
        let mut guest = begun(params, &ends);
        // The windows admit what the peer has room for.
        for number in 0..20 {
            let _ = guest.send(&ends.data(number * MSS, MSS_BYTES));
        }
        let held_bytes = guest.port.held_bytes();
        for number in 21..40 {
            let _ = guest.send(&ends.data(number * MSS, MSS_BYTES));
        }
        let fin = Packet { flags: FIN | ACK, ..ends.guest_ack(40 * MSS) };
        let _ = guest.send(&fin);
        // Some of them twice.
        let _ = guest.send(&ends.data(30 * MSS, MSS_BYTES));
        assert!(guest.port.held_bytes() > held_bytes + 19 * MSS);
        let _ = guest.send(&ends.data(20 * MSS, MSS_BYTES));
        ends.drain(&mut guest, WINDOW_BYTES);
        assert_eq!((ends.in_sequence, ends.finished), (40 * MSS, true), "{params:?}");
        assert_eq!(guest.port.held_bytes(), 0);
    }
}

/// Under `split` what is behind a gap is not promised until it is in sequence, and then at once.
#[test]
fn a_gap_that_is_filled_is_acknowledged_with_what_was_behind_it() {
    let ends = Ends::new(0);
    let mut guest = begun(splitting(), &ends);
    let _ = guest.send(&ends.data(0, MSS_BYTES));
    for number in 2..6 {
        let _ = guest.send(&ends.data(number * MSS, MSS_BYTES));
    }
    let promised = |guest: &Guest| guest.port.seen_of(&ends.key()).expect("a flow").promised_bytes;
    assert_eq!(promised(&guest), MSS);
    let _ = guest.send(&ends.data(MSS, MSS_BYTES));
    assert_eq!(promised(&guest), 6 * MSS);
}

/// A guest that never fills its gap has its share of the buffer, until its connection ends.
#[test]
fn what_is_behind_a_gap_has_no_more_than_the_buffer() {
    let ends = Ends::new(0);
    let size_bytes = 256 << 10;
    let buffer = BufferSpec { size_bytes, policy: BufferPolicy::Fair };
    let mut guest = Guest::with(splitting(), buffer);
    guest.watch.splits = true;
    ends.open(&mut guest, 60_000);
    let _ = guest.send(&ends.data(0, MSS_BYTES));
    for offset in 2 * MSS..2 * MSS + 10_000 {
        let _ = guest.send(&ends.data(offset, 1));
    }
    assert!(guest.port.held_bytes() <= size_bytes, "{}", guest.port.held_bytes());
    let _ = guest.send(&Packet { flags: RST | ACK, ..ends.guest_ack(MSS) });
    guest.wait_ms(60_000);
    assert_eq!(guest.port.held_bytes(), 0);
}

/// While another connection has the rest of the buffer, so that a share that was granted is not granted anew.
#[test]
fn a_segment_that_waited_behind_a_gap_has_used_its_grant_once() {
    let granted = |order: [u32; 6]| {
        let [ends, other] = [0, 1].map(Ends::new);
        let buffer = BufferSpec { size_bytes: 64 << 10, policy: BufferPolicy::Fair };
        let mut guest = Guest::with(splitting(), buffer);
        guest.watch.splits = true;
        ends.open(&mut guest, 60_000);
        other.open(&mut guest, 60_000);
        for number in order {
            let _ = guest.send(&ends.data(number * MSS, MSS_BYTES));
        }
        guest.port.seen_of(&ends.key()).expect("a flow").share.granted_bytes
    };
    assert_eq!(granted([1, 2, 3, 4, 5, 0]), granted([0, 1, 2, 3, 4, 5]));
}

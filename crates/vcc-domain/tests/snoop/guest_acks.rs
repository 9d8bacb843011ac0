//! What becomes of the guest's own segments after a promise.

use vcc_engine::{Params, sys};
use vcc_frames::options;
use vcc_frames::wire::*;
use vcc_frames::{Packet, payload};

use crate::guest::{FIRST_WINDOW, Guest, NO_ACKS, SEG_BYTES, UNIT, snooping};

const PROMISED: u32 = 4 * SEG_BYTES;

/// A guest in whose name four segments were acknowledged.
fn promised(guest: Guest) -> Guest {
    let mut guest = guest.accept();
    for offset in (0..PROMISED).step_by(SEG_BYTES as usize) {
        guest.data(offset, SEG_BYTES);
    }
    assert!(guest.port.promised_bytes() > PROMISED);
    guest
}

/// A window of the guest's that ends where its first one did.
fn same_edge(ack: u32) -> u32 {
    FIRST_WINDOW - ack
}

#[test]
fn what_says_nothing_new_is_absorbed() {
    let mut guest = promised(Guest::new());
    for ack in [SEG_BYTES, 2 * SEG_BYTES, PROMISED] {
        let sent = guest.acks(ack, same_edge(ack));
        assert_eq!((sent.acks(), sent.passed), (vec![], false), "{ack}");
    }
    assert_eq!(guest.port.promised_bytes(), 0, "no copies are kept");
}

#[test]
fn a_window_passes_with_what_was_promised() {
    let mut guest = promised(Guest::new());
    let sent = guest.acks(SEG_BYTES, FIRST_WINDOW);
    let segment = &sent.to_fabric[0];
    assert_eq!((segment.ack, segment.flags), (PROMISED, ACK));
    assert!(
        (segment.ack + segment.window).abs_diff(SEG_BYTES + FIRST_WINDOW) < 2 * UNIT,
        "{segment:?}"
    );
}

#[test]
fn data_passes_with_what_was_promised() {
    let mut guest = promised(Guest { stamps: Some((700, 100)), ..Guest::new() });
    guest.stamps = Some((710, 100));
    let data = Packet { payload: payload(100), ..guest.guest_packet(SEG_BYTES, 59_000) };
    let segment = &guest.send(&data).to_fabric[0];
    assert_eq!((segment.seq, segment.ack, segment.payload_bytes), (0, PROMISED, 100));
    assert_eq!(segment.options, options::join(&[options::timestamps(710, 100)]));
}

/// What the guest sends acknowledges what waits for the delayed ACK.
#[test]
fn data_acknowledges_what_has_arrived() {
    let mut guest = Guest::new().accept();
    guest.data(0, SEG_BYTES);
    let data = Packet { payload: payload(100), ..guest.guest_packet(0, FIRST_WINDOW) };
    assert_eq!(guest.send(&data).acks(), [SEG_BYTES]);
    assert_eq!(guest.wait_ms(100).acks(), NO_ACKS);
}

/// A real hole at the edge of what was promised: the peer counts duplicate ACKs (RFC 5681).
#[test]
fn duplicate_acks_pass() {
    for sack in [false, true] {
        let mut guest = promised(Guest { sack, ..Guest::new() });
        assert_eq!(guest.acks(PROMISED, same_edge(PROMISED)).acks(), NO_ACKS);
        for _ in 0..3 {
            assert_eq!(guest.acks(PROMISED, same_edge(PROMISED)).acks(), [PROMISED]);
        }
    }
}

#[test]
fn sack_blocks_pass_without_what_was_promised() {
    let mut guest = promised(Guest::new());
    let at = |bytes: u32| guest.guest_packet(bytes, 0).ack;
    let known = (at(2 * SEG_BYTES), at(3 * SEG_BYTES));
    let news = (at(6 * SEG_BYTES), at(7 * SEG_BYTES));
    let with = |blocks: &[(u32, u32)]| Packet {
        options: options::join(&[options::sack(blocks)]),
        ..guest.guest_packet(SEG_BYTES, same_edge(SEG_BYTES))
    };
    let (both, nothing) = (with(&[known, news]), with(&[known]));
    let segment = guest.send(&both).to_fabric.remove(0);
    assert_eq!(segment.ack, PROMISED);
    let one = options::sack(&[news]);
    assert!(
        segment.options.windows(one.len()).any(|option| option == one),
        "{:?}",
        segment.options
    );
    assert!(!segment.options.windows(4).any(|bytes| bytes == known.0.to_be_bytes()));
    assert_eq!(guest.send(&nothing).acks(), NO_ACKS, "no news is left");
}

/// What the guest reports behind a hole is complete once the hole is filled in its ring.
#[test]
fn a_hole_that_is_filled_is_acknowledged_up_to_what_the_guest_has() {
    let mut guest = promised(Guest::new());
    let at = |bytes: u32| guest.guest_packet(bytes, 0).ack;
    let blocks = [(at(5 * SEG_BYTES), at(8 * SEG_BYTES))];
    for number in 5..8 {
        assert_eq!(guest.data(number * SEG_BYTES, SEG_BYTES).acks(), NO_ACKS, "behind the hole");
    }
    let report = Packet {
        options: options::join(&[options::sack(&blocks)]),
        ..guest.guest_packet(PROMISED, same_edge(PROMISED))
    };
    assert_eq!(guest.send(&report).acks(), [PROMISED]);
    assert_eq!(guest.data(PROMISED, SEG_BYTES).acks(), [8 * SEG_BYTES]);
    // The guest has discarded what it had reported (RFC 2018, 8), and is given it again.
    assert_eq!(guest.acks(5 * SEG_BYTES, same_edge(5 * SEG_BYTES)).acks(), NO_ACKS);
    let given: Vec<u32> = guest.wait_ms(2000).to_guest.iter().map(|segment| segment.seq).collect();
    assert_eq!(given[0], 5 * SEG_BYTES);
    let sent = guest.acks(6 * SEG_BYTES, same_edge(6 * SEG_BYTES));
    let given: Vec<u32> = sent.to_guest.iter().map(|segment| segment.seq).collect();
    assert_eq!(given, [6 * SEG_BYTES, 7 * SEG_BYTES]);
    guest.acks(8 * SEG_BYTES, same_edge(8 * SEG_BYTES));
    assert_eq!(guest.port.promised_bytes(), 0);
}

/// A guest may discard what lies beyond a window that it has drawn back (RFC 9293, 3.8.6).
#[test]
fn what_was_reported_beyond_a_window_that_is_drawn_back_is_not_promised() {
    let mut guest = promised(Guest::new());
    let at = |bytes: u32| guest.guest_packet(bytes, 0).ack;
    let blocks = [(at(5 * SEG_BYTES), at(8 * SEG_BYTES))];
    for number in 5..8 {
        guest.data(number * SEG_BYTES, SEG_BYTES);
    }
    let report = Packet {
        options: options::join(&[options::sack(&blocks)]),
        ..guest.guest_packet(PROMISED, same_edge(PROMISED))
    };
    guest.send(&report);
    guest.acks(PROMISED, 2 * SEG_BYTES);
    guest.data(PROMISED, SEG_BYTES);
    assert_eq!(guest.wait_ms(100).acks(), [5 * SEG_BYTES]);
}

/// It has got what fills the hole on a way that the port does not see.
#[test]
fn a_promise_that_begins_with_the_guests_own_acknowledgement_is_kept() {
    let mut guest = Guest::new().accept();
    let at = |bytes: u32| guest.guest_packet(bytes, 0).ack;
    let blocks = [(at(SEG_BYTES), at(2 * SEG_BYTES))];
    assert_eq!(guest.data(SEG_BYTES, SEG_BYTES).acks(), NO_ACKS, "behind the hole");
    let report = Packet {
        options: options::join(&[options::sack(&blocks)]),
        ..guest.guest_packet(0, same_edge(0))
    };
    guest.send(&report);
    // It has discarded what it had reported (RFC 2018, 8).
    assert_eq!(guest.acks(SEG_BYTES, same_edge(SEG_BYTES)).acks(), [2 * SEG_BYTES]);
    let given: Vec<u32> = guest.wait_ms(2000).to_guest.iter().map(|segment| segment.seq).collect();
    assert_eq!(given, [SEG_BYTES]);
}

/// What the guest has reported and the port has no copy of, it might not have after all.
#[test]
fn what_is_reported_counts_as_far_as_there_are_copies() {
    let mut guest = promised(Guest::new());
    let at = |bytes: u32| guest.guest_packet(bytes, 0).ack;
    let blocks = [(at(5 * SEG_BYTES), at(8 * SEG_BYTES))];
    // The same twice, and one that is in another.
    for (offset, bytes) in [(5, 1000), (5, 1000), (5, 500), (7, 1000)] {
        guest.data(offset * SEG_BYTES, bytes);
    }
    let report = Packet {
        options: options::join(&[options::sack(&blocks)]),
        ..guest.guest_packet(PROMISED, same_edge(PROMISED))
    };
    assert_eq!(guest.send(&report).acks(), [PROMISED]);
    assert_eq!(guest.data(PROMISED, SEG_BYTES).acks(), [6 * SEG_BYTES]);
}

/// Neither end may believe that the connection continues.
#[test]
fn a_guest_that_never_takes_what_it_has_reported_is_reset_as_its_peer_is() {
    let mut guest = promised(Guest::new());
    let at = |bytes: u32| guest.guest_packet(bytes, 0).ack;
    let blocks = [(at(5 * SEG_BYTES), at(6 * SEG_BYTES))];
    guest.data(5 * SEG_BYTES, SEG_BYTES);
    let report = Packet {
        options: options::join(&[options::sack(&blocks)]),
        ..guest.guest_packet(PROMISED, same_edge(PROMISED))
    };
    guest.send(&report);
    guest.data(PROMISED, SEG_BYTES);
    let own_ack = 5 * SEG_BYTES;
    let is_reset = (0..600).any(|_| {
        guest.acks(own_ack, same_edge(own_ack));
        let sent = guest.wait_ms(1000);
        let [to_guest, to_peer] =
            [&sent.to_guest, &sent.to_fabric].map(|all| all.iter().find(|it| it.flags & RST != 0));
        if let (Some(to_guest), Some(to_peer)) = (to_guest, to_peer) {
            assert_eq!((to_guest.seq, to_peer.ack), (own_ack, 6 * SEG_BYTES));
        }
        to_guest.is_some() && to_peer.is_some()
    });
    assert!(is_reset);
    assert_eq!(guest.port.counters().get(vcc_engine::sys::COUNT_PROMISE_BROKEN), 1);
}

/// After both FINs, too, and once.
#[test]
fn a_guest_that_has_ended_and_never_takes_its_data_is_reset() {
    let idle_closed_ms = 1000 * 1000;
    let mut guest =
        promised(Guest::with(Params(sys::vcc_params { idle_closed_ms, ..snooping().0 })));
    guest.receive(&Packet { flags: FIN | ACK, ..guest.peer_packet(PROMISED, 0) });
    let fin = guest.guest_packet(SEG_BYTES, same_edge(SEG_BYTES));
    guest.send(&Packet { flags: FIN | ACK, ..fin.clone() });
    let mut resets = 0;
    for _ in 0..200 {
        guest.send(&Packet { seq: fin.seq.wrapping_add(1), ..fin.clone() });
        resets += guest.wait_ms(5000).to_guest.iter().filter(|it| it.flags & RST != 0).count();
    }
    assert_eq!((resets, guest.port.promised_bytes()), (1, 0));
}

#[test]
fn a_guest_that_is_heard_is_given_its_data_again_after_twice_the_time() {
    let mut guest = promised(Guest::new());
    let is_given = |sent: crate::guest::Sent| sent.to_guest.iter().any(|it| it.payload_bytes > 0);
    assert!(is_given(guest.wait_ms(1001)));
    guest.acks(0, FIRST_WINDOW);
    assert!(!is_given(guest.wait_ms(1900)));
    assert!(is_given(guest.wait_ms(200)));
}

#[test]
fn a_guest_that_shrinks_its_window_says_so_and_is_given_its_data_again() {
    let mut guest = promised(Guest::new());
    let segment = guest.acks(SEG_BYTES, 0).to_fabric.remove(0);
    assert_eq!((segment.ack, segment.window), (PROMISED, 0));
    let given: u32 = (0..600)
        .map(|_| {
            guest.wait_ms(1000).to_guest.iter().filter(|it| it.seq == SEG_BYTES).count() as u32
        })
        .sum();
    assert!(given > 7, "{given}");
    assert_eq!(guest.port.counters().get(vcc_engine::sys::COUNT_PROMISE_BROKEN), 0);
    // It opens again, and takes one after the other.
    let sent = guest.acks(SEG_BYTES, FIRST_WINDOW);
    assert!(sent.to_fabric[0].window > 50_000);
    let sent = guest.acks(2 * SEG_BYTES, FIRST_WINDOW);
    assert_eq!(
        sent.to_guest.iter().map(|it| it.seq).collect::<Vec<_>>(),
        [2 * SEG_BYTES, 3 * SEG_BYTES]
    );
    guest.acks(PROMISED, FIRST_WINDOW);
    assert_eq!(guest.port.promised_bytes(), 0);
}

#[test]
fn a_reset_ends_the_promise() {
    for by_guest in [false, true] {
        let mut guest = promised(Guest::new());
        if by_guest {
            guest.send(&Packet { flags: RST | ACK, ..guest.guest_packet(0, 0) });
        } else {
            guest.receive(&Packet { flags: RST | ACK, ..guest.peer_packet(PROMISED, 0) });
        }
        assert_eq!(guest.port.promised_bytes(), 0);
        assert!(guest.wait_ms(5000).to_guest.is_empty());
    }
}

/// A listener that takes no more connections has discarded the last ACK of the handshake and the
/// data behind it. It repeats its SYN-ACK, and is given the data again.
#[test]
fn a_syn_ack_again_does_not_begin_anew() {
    let mut guest = promised(Guest::new());
    let mut again = guest.guest_packet(0, 0);
    again.seq = again.seq.wrapping_sub(1);
    again.flags = SYN | ACK;
    again.window = FIRST_WINDOW as u16;
    guest.send(&again);
    assert!(guest.port.promised_bytes() > PROMISED);
    let sent = guest.wait_ms(2000);
    assert_eq!(sent.to_guest.first().map(|it| it.seq), Some(0));
    assert_eq!(guest.data(PROMISED, 0).acks(), NO_ACKS);
}

/// The guest's own acknowledgement reports all that it must.
#[test]
fn a_window_that_waits_for_room_does_not_open_once_snoop_is_off() {
    for is_on in [true, false] {
        let mut guest = Guest { ring_segs: 100, ..Guest::new() }.accept();
        guest.acks(0, 500_000);
        for number in 0..92 {
            guest.ring_segs -= 1;
            guest.data(number * SEG_BYTES, SEG_BYTES);
        }
        assert_eq!(guest.reads(9).acks(), [92 * SEG_BYTES], "with a window of one segment");
        guest.acks(92 * SEG_BYTES, 500_000);
        if !is_on {
            guest.port.set_params(Params::default());
        }
        assert_eq!(guest.reads(300).acks().len(), usize::from(is_on));
    }
}

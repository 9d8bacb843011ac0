//! `split`: a promise that is not kept ends the connection at both ends.

use std::iter;
use std::sync::Arc;

use vcc_domain::{CannotTakeOver, Frame, Out, Verdict};
use vcc_engine::sys;
use vcc_frames::wire::*;
use vcc_frames::{MACS, Packet};

use crate::common::memory::Memory;
use crate::common::segment::Segment;
use crate::ends::{Ends, Guest, MSS_BYTES};
use crate::split::{begun, guest as new_guest};

const WINDOW_BYTES: u32 = 60_000;
const MSS: u32 = MSS_BYTES as u32;

/// The sequence numbers of RSTs.
fn resets(frames: &[Frame]) -> Vec<u32> {
    frames
        .iter()
        .map(|frame| {
            let segment = Segment::read(&frame.bytes).expect("TCP");
            assert!(segment.has(RST) && segment.is_right(&frame.bytes, false));
            segment.seq
        })
        .collect()
}

/// Ten segments of 30 are in flight.
fn promised(ends: &Ends) -> Guest {
    let mut guest = begun(ends);
    for number in 0..30 {
        let _ = guest.send(&ends.data(number * MSS, MSS_BYTES));
    }
    guest
}

/// Both ends get RSTs, and what they send later is answered with one that they believe.
#[test]
fn both_ends_get_resets_and_again_when_they_ask() {
    for killed in [true, false] {
        let mut ends = Ends::new(0);
        let mut guest = begun(&ends);
        let memory = Arc::new(Memory::default());
        guest.port.keep_ledger(memory.clone());
        for number in 0..30 {
            let _ = guest.send(&ends.data(number * MSS, MSS_BYTES));
        }
        let [promise] = memory.promises()[..] else { panic!("a promise") };
        assert_eq!(promise.promised, ends.seq(30 * MSS));
        assert_eq!((promise.snd_una, promise.snd_nxt), (ends.seq(0), ends.seq(10 * MSS)));
        let mut out = Out::default();
        if killed {
            guest.port = new_guest().port;
            guest.port.end_promises(guest.now_ns, [promise], &mut out);
            guest.port.keep_ledger(memory.clone());
        } else {
            guest.port.end(guest.now_ns, &mut out);
        }
        assert_eq!(memory.promises(), [promise], "as long as the ends may ask");
        assert_eq!(resets(&out.to_guest), [ends.irs.wrapping_add(1)]);
        assert_eq!(resets(&out.to_fabric)[..2], [ends.seq(10 * MSS), ends.seq(0)]);
        assert_eq!(guest.port.held_bytes(), 0);
        (guest.shown, guest.left) = Default::default();
        // A challenge ACK (RFC 5961, 3.2).
        let _ = guest.receive(&ends.peer_ack(4 * MSS, WINDOW_BYTES));
        assert_eq!(resets(&guest.left), [ends.seq(4 * MSS)]);
        let _ = guest.send(&ends.data(30 * MSS, MSS_BYTES));
        assert_eq!(resets(&guest.shown), [ends.irs.wrapping_add(1)]);
        // A new connection between the same ports.
        ends.iss = ends.iss.wrapping_add(1 << 20);
        ends.open(&mut guest, 60_000);
        assert_eq!(memory.promises(), []);
        let _ = guest.send(&ends.data(0, MSS_BYTES));
        ends.take(&mut guest);
        assert_eq!(ends.in_sequence, MSS);
    }
}

/// Thirty segments were promised, and ten of them have left.
fn broken(ends: &Ends) -> Guest {
    let mut guest = promised(ends);
    guest.port.end(guest.now_ns, &mut Out::default());
    (guest.shown, guest.left) = Default::default();
    guest
}

/// Neither end may have heard of the RSTs; each answers a SYN with an ACK (RFC 5961, 4).
#[test]
fn a_stray_syn_does_not_make_the_port_forget() {
    let ends = Ends::new(0);
    let seq = ends.irs.wrapping_sub(123_456);
    let stray = Packet { seq, ..Packet::syn(ends.peer, ends.guest) };
    let mut guest = broken(&ends);
    assert_eq!(guest.receive_forged(&stray), Verdict::Pass);
    let _ = guest.send(&ends.guest_ack(30 * MSS));
    assert_eq!(guest.shown.len(), 2);
    assert_eq!(resets(&guest.shown[1..]), [ends.irs.wrapping_add(1)]);
    let _ = guest.receive_forged(&ends.peer_ack(4 * MSS, WINDOW_BYTES));
    assert_eq!(resets(&guest.left), [ends.seq(4 * MSS)]);
    // The guest listens again, but the peer still has the connection.
    let answer = Packet { seq: 7, ack: seq.wrapping_add(1), flags: SYN | ACK, ..ends.syn() };
    assert_eq!(guest.send(&answer), Verdict::Pass);
    guest.left.clear();
    let _ = guest.receive_forged(&ends.peer_ack(4 * MSS, WINDOW_BYTES));
    assert_eq!(resets(&guest.left), [ends.seq(4 * MSS)]);
}

#[test]
fn a_new_connection_of_either_end_begins() {
    for by_guest in [true, false] {
        let mut ends = Ends::new(0);
        let mut guest = broken(&ends);
        ends.iss = ends.iss.wrapping_add(1 << 20);
        ends.irs = ends.irs.wrapping_add(1 << 21);
        match by_guest {
            true => ends.open(&mut guest, 60_000),
            false => ends.accept(&mut guest, WINDOW_BYTES),
        }
        let _ = guest.send(&ends.data(0, MSS_BYTES));
        ends.drain(&mut guest, WINDOW_BYTES);
        assert_eq!(ends.in_sequence, MSS);
        assert!(
            guest.shown.iter().all(|frame| {
                Segment::read(&frame.bytes).is_some_and(|segment| !segment.has(RST))
            })
        );
    }
}

/// A peer that lacks one of the segments answers all but one RST, and then perhaps nobody is there.
#[test]
fn an_end_in_order_sends_a_rst_for_each_segment_that_the_peer_may_lack() {
    let ends = Ends::new(0);
    let mut guest = promised(&ends);
    let mut out = Out::default();
    guest.port.end(guest.now_ns, &mut out);
    let mut resets_sent = resets(&out.to_fabric);
    resets_sent.sort_by_key(|seq| seq.wrapping_sub(ends.seq(0)));
    assert_eq!(resets_sent, (0..=10).map(|number| ends.seq(number * MSS)).collect::<Vec<_>>());
}

#[test]
fn the_segments_of_a_super_segment_are_some_of_them() {
    let ends = Ends::new(0);
    let mut guest = begun(&ends);
    let _ = guest.send_super(&ends.data(0, 4 * MSS_BYTES + 10), MSS_BYTES);
    let mut out = Out::default();
    guest.port.end(guest.now_ns, &mut out);
    let resets_sent = resets(&out.to_fabric);
    for number in 0..=4 {
        assert!(resets_sent.contains(&ends.seq(number * MSS)), "{number}");
    }
}

/// A RST that is not believed is answered, until an end that has not heard of it has given up.
#[test]
fn a_ledger_forgets_what_has_ended_long_ago() {
    let ends = Ends::new(0);
    let mut guest = begun(&ends);
    let memory = Arc::new(Memory::default());
    guest.port.keep_ledger(memory.clone());
    let _ = guest.send(&ends.data(0, MSS_BYTES));
    guest.port.end(guest.now_ns, &mut Out::default());
    assert_eq!(memory.promises().len(), 1);
    guest.wait_ms(1_001_000);
    let _ = guest.receive(&ends.peer_ack(0, WINDOW_BYTES));
    assert_eq!(memory.promises(), []);
}

/// What is refused changes nothing: if the process is killed afterwards, its successor knows.
#[test]
fn a_ledger_keeps_what_it_has_when_a_state_is_refused() {
    let (ends, other) = (Ends::new(0), Ends::new(1));
    let (_, coming) = promised(&other).port.hand_over("vcc", iter::empty());
    let mut guest = begun(&ends);
    let memory = Arc::new(Memory::default());
    guest.port.keep_ledger(memory.clone());
    let _ = guest.send(&ends.data(0, MSS_BYTES));
    guest.port.end(guest.now_ns, &mut Out::default());
    other.open(&mut guest, 60_000);
    for number in 0..30 {
        let _ = guest.send(&other.data(number * MSS, MSS_BYTES));
    }
    let before = memory.promises();
    assert_eq!(before.len(), 2);
    let refused = guest.port.take_over(guest.now_ns, &coming).map(drop);
    assert!(matches!(refused, Err(CannotTakeOver::Here(_))), "{refused:?}");
    assert_eq!(memory.promises(), before);
}

/// A guest may have several ways to its peers.
#[test]
fn a_rst_takes_the_connections_own_way() {
    let (ends, other) = (Ends::new(0), Ends::new(1));
    let mut guest = promised(&ends);
    let gateway = [2, 0, 0, 0, 0, 77];
    let _ = guest.send(&Packet { macs: [gateway, MACS[1]], ..other.syn() });
    guest.shown.clear();
    let _ = guest.send(&ends.data(30 * MSS, MSS_BYTES));
    let mut out = Out::default();
    guest.port.end(guest.now_ns, &mut out);
    for frame in &out.to_fabric {
        assert_eq!(frame.bytes[..12], MACS.concat());
    }
    for frame in guest.shown.iter().chain(&out.to_guest) {
        assert_eq!(frame.bytes[..12], [MACS[1], MACS[0]].concat());
    }
}

#[test]
fn a_rst_with_a_wrong_checksum_ends_nothing() {
    let mut ends = Ends::new(0);
    let mut guest = promised(&ends);
    guest.receive_corrupt(&Packet { flags: RST | ACK, ..ends.peer_ack(0, 0) });
    ends.drain(&mut guest, WINDOW_BYTES);
    assert_eq!((ends.in_sequence, guest.port.held_bytes()), (30 * MSS, 0));
}

/// Of what is in flight, the peer has nothing.
#[test]
fn by_an_acknowledgement_with_a_wrong_checksum_nothing_is_delivered() {
    let mut ends = Ends::new(0);
    let mut guest = promised(&ends);
    guest.left.clear();
    guest.receive_corrupt(&ends.peer_ack(10 * MSS, WINDOW_BYTES));
    guest.wait_ms(1000);
    ends.drain(&mut guest, WINDOW_BYTES);
    assert_eq!((ends.in_sequence, guest.port.held_bytes()), (30 * MSS, 0));
}

/// Three segments and both FINs have passed, and the peer has none of the former.
fn closed(ends: &Ends) -> Guest {
    let mut guest = begun(ends);
    for number in 0..3 {
        let _ = guest.send(&ends.data(number * MSS, MSS_BYTES));
    }
    let _ = guest.receive(&Packet { flags: FIN | ACK, ..ends.peer_ack(0, WINDOW_BYTES) });
    let ack = ends.irs.wrapping_add(2);
    let _ = guest.send(&Packet { flags: FIN | ACK, ack, ..ends.guest_ack(3 * MSS) });
    assert_eq!(u32::from(ends.flow(&guest).stage), sys::STAGE_CLOSED);
    guest.left.clear();
    guest.shown.clear();
    guest
}

/// As into a live connection (RFC 5961, 4): the guest's socket is still there, and answers.
#[test]
fn a_blind_syn_after_both_fins_ends_nothing() {
    let mut ends = Ends::new(0);
    let mut guest = closed(&ends);
    let seq = ends.irs.wrapping_sub(123_456);
    let _ = guest.receive_forged(&Packet { seq, ..Packet::syn(ends.peer, ends.guest) });
    for _ in 0..20 {
        guest.wait_ms(100);
        while ends.take(&mut guest) {
            let acked = ends.in_sequence + u32::from(ends.finished);
            let seq = ends.irs.wrapping_add(2);
            let _ = guest.receive(&Packet { seq, ..ends.peer_ack(acked, WINDOW_BYTES) });
        }
    }
    assert_eq!((ends.in_sequence, ends.finished), (3 * MSS, true));
    assert_eq!(guest.port.held_bytes(), 0);
}

/// A guest that has rebooted: what the one before it was promised does not arrive.
#[test]
fn a_new_connection_of_the_guest_ends_the_one_before() {
    for by_syn_ack in [false, true] {
        let ends = Ends::new(0);
        let mut guest = closed(&ends);
        let iss = ends.iss.wrapping_add(1 << 20);
        if by_syn_ack {
            let seq = ends.irs.wrapping_add(1 << 20);
            let _ = guest.receive(&Packet { seq, ..Packet::syn(ends.peer, ends.guest) });
            let ack = seq.wrapping_add(1);
            let _ = guest.send(&Packet { flags: SYN | ACK, seq: iss, ack, ..ends.syn() });
        } else {
            let _ = guest.send(&Packet { seq: iss, ..ends.syn() });
        }
        assert_eq!(guest.port.held_bytes(), 0);
        let resets_sent = resets(&guest.left[1..]);
        for number in 0..=3 {
            assert!(resets_sent.contains(&ends.seq(number * MSS)), "{number} of {resets_sent:?}");
        }
        assert_eq!(resets(&guest.shown[usize::from(by_syn_ack)..]), [ends.irs.wrapping_add(2)]);
    }
}

#[test]
fn what_was_delivered_is_not_ended() {
    let mut ends = Ends::new(0);
    let mut guest = promised(&ends);
    ends.drain(&mut guest, WINDOW_BYTES);
    let mut out = Out::default();
    guest.port.end(guest.now_ns, &mut out);
    assert_eq!(out, Out::default());
}

//! `retransmit`: the port retains what has left, and repairs its losses.

use vcc_domain::{BufferSpec, Frame, Verdict};
use vcc_engine::{Params, sys};
use vcc_frames::wire::*;
use vcc_frames::{Packet, options};

use crate::common::segment::Segment;
use crate::ends::{Ends, Guest, MSS_BYTES, holding};

const WINDOW_BYTES: u32 = 60_000;
const MSS: u32 = MSS_BYTES as u32;
const RTO_MIN_MS: u64 = 5;

pub fn repairing() -> Params {
    let rto_min_us = RTO_MIN_MS as u32 * 1000;
    Params(sys::vcc_params { retransmit: 1, rto_min_us, ..holding().0 })
}

fn guest() -> Guest {
    Guest::with(repairing(), BufferSpec::default())
}

fn sacking() -> Ends {
    let mut ends = Ends::new(0);
    ends.sack = true;
    ends
}

fn offsets(ends: &Ends, frames: &[Frame]) -> Vec<u32> {
    frames
        .iter()
        .map(|frame| {
            let segment = Segment::read(&frame.bytes).expect("TCP");
            segment.seq.wrapping_sub(ends.seq(0)) / MSS
        })
        .collect()
}

/// Ten segments of `sent` leave after an RTT sample of a millisecond.
fn begun(ends: &mut Ends, sent: u32) -> Guest {
    let mut guest = guest();
    ends.open(&mut guest, 60_000);
    let _ = guest.send(&ends.data(0, MSS_BYTES));
    guest.wait_ms(1);
    ends.take(&mut guest);
    let _ = guest.receive(&ends.peer_ack(MSS, WINDOW_BYTES));
    for number in 1..=sent {
        let _ = guest.send(&ends.data(number * MSS, MSS_BYTES));
    }
    guest.shown.clear();
    guest
}

/// A duplicate ACK of everything before `ack` that reports segments `from` to `to - 1`.
fn reports(ends: &Ends, ack: u32, from: u32, to: u32) -> Packet {
    let block = options::sack(&[(ends.seq(from * MSS), ends.seq(to * MSS))]);
    Packet { options: options::join(&[block]), ..ends.peer_ack(ack * MSS, WINDOW_BYTES) }
}

#[test]
fn a_loss_is_repaired_and_the_guest_does_not_see_it() {
    let mut ends = sacking();
    let mut guest = begun(&mut ends, 10);
    assert_eq!(offsets(&ends, &guest.left), (1..=10).collect::<Vec<_>>());
    guest.left.clear();
    guest.wait_ms(1);
    for to in 3..=10 {
        let _ = guest.receive(&reports(&ends, 1, 2, to));
    }
    assert_eq!(offsets(&ends, &guest.left)[..1], [1], "RACK, RFC 8985");
    assert_eq!(u32::from(ends.flow(&guest).ca_state), sys::CA_RECOVERY);
    assert_eq!(ends.flow(&guest).reductions, 1);
    // Window updates at the most, and none of them with a block.
    for frame in &guest.shown {
        let segment = Segment::read(&frame.bytes).expect("TCP");
        assert!(!segment.options().contains(&5), "SACK is for the port");
    }
    let _ = guest.receive(&ends.peer_ack(11 * MSS, WINDOW_BYTES));
    assert_eq!(guest.port.held_bytes(), 0);
}

/// Without SACK, the third duplicate ACK reports a loss, and so does each partial ACK (RFC 6582).
#[test]
fn a_peer_without_sack_is_served_by_newreno() {
    let mut ends = Ends::new(0);
    let mut guest = begun(&mut ends, 10);
    guest.left.clear();
    guest.wait_ms(1);
    let duplicate = ends.peer_ack(MSS, WINDOW_BYTES);
    let verdicts: Vec<_> = (0..3).map(|_| guest.receive(&duplicate)).collect();
    assert_eq!(verdicts, [Verdict::Drop; 3]);
    assert_eq!(offsets(&ends, &guest.left), [1]);
    guest.wait_ms(1);
    let _ = guest.receive(&ends.peer_ack(4 * MSS, WINDOW_BYTES));
    assert_eq!(offsets(&ends, &guest.left)[..2], [1, 4]);
}

#[test]
fn what_the_guest_retransmits_is_dropped_while_the_port_repairs() {
    let mut ends = sacking();
    let mut guest = begun(&mut ends, 10);
    guest.left.clear();
    assert_eq!(guest.send(&ends.data(MSS, MSS_BYTES)), Verdict::Held);
    assert!(guest.left.is_empty());
    assert_eq!(ends.flow(&guest).retransmissions, 0);
    // Its acknowledgement does not wait.
    let news = Packet { ack: ends.irs.wrapping_add(1001), ..ends.data(MSS, MSS_BYTES) };
    let _ = guest.receive(&Packet { payload: vec![7; 1000], ..ends.peer_ack(MSS, WINDOW_BYTES) });
    assert_eq!(guest.send(&news), Verdict::Held);
    assert_eq!(guest.left.len(), 1);
    assert_eq!(Segment::read(&guest.left[0].bytes).expect("TCP").payload.len(), 0);
}

/// The last segments are lost: nothing reports it (RFC 8985, 7).
#[test]
fn a_lost_tail_is_probed_before_the_timeout() {
    let mut ends = sacking();
    let mut guest = begun(&mut ends, 5);
    guest.left.clear();
    guest.wait_ms(3);
    assert_eq!(offsets(&ends, &guest.left), [5], "after two RTTs");
    let _ = guest.receive(&reports(&ends, 1, 5, 6));
    assert_eq!(offsets(&ends, &guest.left)[1], 1, "which reveals the loss");
}

/// RFC 6298, 2.2: the handshake is a sample of the RTT. Without one, a first flight of which nothing
/// arrives would wait for a second.
#[test]
fn a_lost_first_flight_waits_for_no_second() {
    for guest_opens in [true, false] {
        let ends = Ends::new(0);
        let mut guest = guest();
        if guest_opens {
            let _ = guest.send(&ends.syn());
            guest.wait_ms(1);
            let _ = guest.receive(&ends.syn_ack(60_000));
            let _ = guest.send(&ends.guest_ack(0));
        } else {
            let _ = guest.receive(&ends.peer_syn());
            let _ = guest.send(&ends.answer());
            guest.wait_ms(1);
            let _ = guest.receive(&ends.peer_ack(0, WINDOW_BYTES));
        }
        for number in 0..5 {
            let _ = guest.send(&ends.data(number * MSS, MSS_BYTES));
        }
        guest.left.clear();
        guest.wait_ms(1 + 2 * RTO_MIN_MS);
        assert_eq!(offsets(&ends, &guest.left)[..1], [0], "guest opens: {guest_opens}");
    }
}

/// RFC 6298 with the minimum of the treatment, and a backoff that continues.
#[test]
fn the_retransmission_timer_backs_off() {
    let mut ends = Ends::new(0);
    let mut guest = begun(&mut ends, 1);
    let mut sent_ms = Vec::new();
    for now_ms in 0..10_000 {
        if !std::mem::take(&mut guest.left).is_empty() {
            sent_ms.push(now_ms);
        }
        guest.wait_ms(1);
    }
    let gaps: Vec<_> = sent_ms.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!((RTO_MIN_MS..3 * RTO_MIN_MS).contains(&gaps[0]), "{gaps:?}");
    for pair in gaps.windows(2) {
        assert!((2 * pair[0] - 2..=2 * pair[0] + 2).contains(&pair[1]), "{gaps:?}");
    }
    assert!(gaps.len() >= 8, "past the six doublings of the model: {gaps:?}");
    assert_eq!(u32::from(ends.flow(&guest).ca_state), sys::CA_LOSS);
}

/// RFC 2018, 8: after a timeout, what SACK blocks have reported is sent again as well.
#[test]
fn a_peer_that_reneges_on_sack_gets_everything_again() {
    let mut ends = sacking();
    let mut guest = begun(&mut ends, 6);
    guest.left.clear();
    guest.wait_ms(1);
    // Even the first segment in flight.
    let _ = guest.receive(&reports(&ends, 1, 1, 7));
    ends.drain(&mut guest, WINDOW_BYTES);
    for _ in 0..20 {
        guest.wait_ms(50);
        ends.drain(&mut guest, WINDOW_BYTES);
    }
    assert_eq!(ends.in_sequence, 7 * MSS);
    assert_eq!(guest.port.held_bytes(), 0);
}

/// RFC 3168, 6.1.5; the peer answers with ECE until it hears of the reduction.
#[test]
fn retransmissions_are_not_ecn_capable() {
    let mut guest = guest();
    let mut ends = sacking();
    let _ = guest.send(&ends.syn());
    let answer = ends.syn_ack(60_000);
    let _ = guest.receive(&Packet { flags: answer.flags | ECE, ..answer });
    let _ = guest.send(&ends.guest_ack(0));
    for number in 0..5 {
        let _ = guest.send(&ends.data(number * MSS, MSS_BYTES));
    }
    let ecn = |frame: &Frame| frame.bytes[ETHERNET_BYTES + 1] & 3;
    let data: Vec<_> = guest.left.iter().skip(2).map(ecn).collect();
    assert_eq!(data, [2; 5], "ECT(0)");
    guest.left.clear();
    ends.in_sequence = 0;
    guest.wait_ms(3000);
    assert!(!guest.left.is_empty());
    assert!(guest.left.iter().all(|frame| ecn(frame) == 0));
}

/// Law 14; the port's persist timer asks for the window (RFC 9293, 3.8.6.1).
#[test]
fn a_window_that_shrinks_below_the_flight_is_probed_with_nothing_beyond_it() {
    let mut ends = Ends::new(0);
    let mut guest = begun(&mut ends, 10);
    guest.left.clear();
    let _ = guest.receive(&ends.peer_ack(3 * MSS, 0));
    guest.wait_ms(20_000);
    assert!(guest.left.len() > 5);
    for frame in &guest.left {
        let segment = Segment::read(&frame.bytes).expect("TCP");
        assert_eq!((segment.end(), segment.payload.len()), (ends.seq(3 * MSS - 1), 0));
    }
    guest.left.clear();
    let _ = guest.receive(&ends.peer_ack(3 * MSS, WINDOW_BYTES));
    ends.in_sequence = 3 * MSS;
    ends.drain(&mut guest, WINDOW_BYTES);
    guest.wait_ms(30_000);
    ends.drain(&mut guest, WINDOW_BYTES);
    assert_eq!(ends.in_sequence, 11 * MSS);
}

/// After both FINs the flow is closed, and its last data may still be lost.
#[test]
fn the_last_data_before_both_fins_is_repaired() {
    let mut ends = Ends::new(0);
    let mut guest = begun(&mut ends, 3);
    let fin = Packet { flags: FIN | ACK, ..ends.guest_ack(4 * MSS) };
    let peers_fin = Packet { flags: FIN | ACK, ..ends.peer_ack(MSS, WINDOW_BYTES) };
    let _ = guest.receive(&peers_fin);
    let ack = ends.irs.wrapping_add(2);
    let _ = guest.send(&Packet { ack, ..fin });
    assert_eq!(u32::from(ends.flow(&guest).stage), sys::STAGE_CLOSED);
    guest.left.clear();
    for _ in 0..20 {
        guest.wait_ms(100);
        while ends.take(&mut guest) {
            let acked = ends.in_sequence + u32::from(ends.finished);
            let seq = ends.irs.wrapping_add(2);
            let _ = guest.receive(&Packet { seq, ..ends.peer_ack(acked, WINDOW_BYTES) });
        }
    }
    assert_eq!((ends.in_sequence, ends.finished), (4 * MSS, true));
    assert_eq!(guest.port.held_bytes(), 0);
}

/// A peer may take a FIN behind data that it has for a duplicate, as smoltcp 0.14 does.
#[test]
fn a_fin_whose_data_is_acknowledged_is_sent_again_alone() {
    let mut ends = Ends::new(0);
    let mut guest = begun(&mut ends, 3);
    let last = ends.data(4 * MSS, 300);
    let _ = guest.send(&Packet { flags: FIN | ACK, ..last });
    ends.take(&mut guest);
    guest.wait_ms(1);
    let data_end = 4 * MSS + 300;
    let _ = guest.receive(&ends.peer_ack(data_end, WINDOW_BYTES));
    guest.left.clear();
    guest.wait_ms(1000);
    assert!(guest.left.len() > 2);
    for frame in &guest.left {
        let segment = Segment::read(&frame.bytes).expect("TCP");
        assert!(segment.has(FIN));
        assert_eq!((segment.seq, segment.payload.len()), (ends.seq(data_end), 0));
    }
}

/// Only the lost part of a super-segment is sent again.
#[test]
fn a_super_segment_is_repaired_in_parts() {
    let mut ends = sacking();
    let mut guest = begun(&mut ends, 0);
    let _ = guest.send_super(&ends.data(MSS, 10 * MSS_BYTES), MSS_BYTES);
    let _ = guest.send_super(&ends.data(11 * MSS, 10 * MSS_BYTES), MSS_BYTES);
    ends.take(&mut guest);
    guest.wait_ms(1);
    // Neither edge of the hole is one of a frame that left; the block's left one is within a segment.
    let block = options::sack(&[(ends.seq(4 * MSS - 10), ends.seq(ends.in_sequence))]);
    let report =
        Packet { options: options::join(&[block]), ..ends.peer_ack(2 * MSS, WINDOW_BYTES) };
    let _ = guest.receive(&report);
    let mut again = 0;
    for frame in &guest.left {
        let segment = Segment::read(&frame.bytes).expect("TCP");
        let at = segment.seq.wrapping_sub(ends.seq(0));
        if at < 11 * MSS {
            assert_eq!((at, segment.payload.len()), (2 * MSS, MSS_BYTES));
            again += 1;
        }
    }
    assert_eq!(again, 1, "PRR grants the next one at the next ACK");
}

/// Its timers start then.
#[test]
fn repairing_that_begins_late_infers_no_timeout() {
    let mut guest = Guest::with(holding(), BufferSpec::default());
    let mut ends = sacking();
    ends.open(&mut guest, 60_000);
    let _ = guest.send(&ends.data(0, MSS_BYTES));
    guest.wait_ms(1);
    ends.take(&mut guest);
    let _ = guest.receive(&ends.peer_ack(MSS, WINDOW_BYTES));
    guest.wait_ms(10_000);
    for number in 1..5 {
        let _ = guest.send(&ends.data(number * MSS, MSS_BYTES));
    }
    guest.port.set_params(repairing());
    let _ = guest.send(&ends.data(5 * MSS, MSS_BYTES));
    guest.wait_ms(1);
    assert_eq!(u32::from(ends.flow(&guest).ca_state), sys::CA_OPEN);
    assert_eq!(ends.flow(&guest).reductions, 0);
}

#[test]
fn a_change_of_the_treatment_gives_the_repair_back_to_the_guest() {
    let mut ends = sacking();
    let mut guest = begun(&mut ends, 10);
    guest.left.clear();
    guest.port.set_params(holding());
    assert_eq!(guest.send(&ends.data(MSS, MSS_BYTES)), Verdict::Pass);
    assert_eq!(guest.port.held_bytes(), 0);
    // And again: what has left meanwhile stays the guest's.
    guest.port.set_params(repairing());
    let _ = guest.receive(&reports(&ends, 1, 2, 11));
    let shown = Segment::read(&guest.shown.last().expect("an ACK").bytes).expect("TCP").ack;
    assert_eq!(shown, ends.seq(MSS));
    assert_eq!(guest.send(&ends.data(MSS, MSS_BYTES)), Verdict::Pass);
    let _ = guest.receive(&ends.peer_ack(11 * MSS, WINDOW_BYTES));
    let _ = guest.send(&ends.data(11 * MSS, MSS_BYTES));
    assert!(guest.port.held_bytes() > MSS);
}

/// The guest has given up, or is gone: nothing was promised, so nobody is reset.
#[test]
fn what_no_peer_answers_is_discarded_after_fifteen_minutes() {
    let mut ends = sacking();
    let mut guest = begun(&mut ends, 30);
    assert!(guest.port.held_bytes() > 0 && guest.port.flows().count() == 1);
    guest.wait_ms(14 * 60_000);
    assert_eq!(guest.port.flows().count(), 1, "Linux tries for 924.6 s");
    guest.left.clear();
    guest.wait_ms(2 * 60_000);
    assert_eq!((guest.port.flows().count(), guest.port.held_bytes()), (0, 0));
    assert!(guest.shown.is_empty(), "the guest got {:?}", guest.shown);
    assert!(guest.left.iter().all(|frame| {
        let segment = Segment::read(&frame.bytes).expect("TCP");
        u32::from(segment.flags) & sys::TCP_RST == 0
    }));
    guest.left.clear();
    guest.wait_ms(60 * 60_000);
    assert!(guest.left.is_empty(), "it is retransmitted for ever");
}

//! `split`: what the port acknowledges to the guest in the peer's name.

use vcc_domain::{BufferSpec, Verdict};
use vcc_engine::{Params, Underlay, sys};
use vcc_frames::Packet;
use vcc_frames::wire::*;

use crate::common::rules::by_guest_port;
use crate::common::segment::Segment;
use crate::ends::{Ends, Guest, MSS_BYTES, holding};

const WINDOW_BYTES: u32 = 60_000;
const MSS: u32 = MSS_BYTES as u32;
const TIMESTAMPS: u8 = 8;

pub fn splitting() -> Params {
    let act = sys::ACT_SPLIT as u8;
    Params(sys::vcc_params { act, rto_min_us: 5_000, ..holding().0 })
}

pub fn guest() -> Guest {
    let mut guest = Guest::with(splitting(), BufferSpec::default());
    guest.watch.splits = true;
    guest
}

/// After a handshake, with nothing shown yet.
pub fn begun(ends: &Ends) -> Guest {
    let mut guest = guest();
    ends.open(&mut guest, 60_000);
    guest.shown.clear();
    guest.left.clear();
    guest
}

/// What the guest was shown since: acknowledged bytes, with payload or not.
fn acks(ends: &Ends, guest: &mut Guest) -> Vec<(u32, usize)> {
    let shown = std::mem::take(&mut guest.shown);
    shown
        .iter()
        .map(|frame| {
            let segment = Segment::read(&frame.bytes).expect("TCP");
            assert!(!segment.has(RST | SYN));
            (segment.ack.wrapping_sub(ends.seq(0)), segment.payload.len())
        })
        .collect()
}

#[test]
fn what_the_port_has_is_acknowledged_at_once() {
    let mut ends = Ends::new(0);
    ends.stamp = Some(77);
    let mut guest = begun(&ends);
    for number in 0..15 {
        let _ = guest.send(&ends.data(number * MSS, MSS_BYTES));
        let frame = guest.shown.last().expect("an ACK");
        let segment = Segment::read(&frame.bytes).expect("TCP");
        assert_eq!(segment.options(), [TIMESTAMPS]);
        assert_eq!(segment.seq, ends.irs.wrapping_add(1));
        assert!(frame.bytes.ends_with(&[0, 0, 0, 77, 0, 0, 0, 77]), "the peer's and the guest's");
        assert_eq!(acks(&ends, &mut guest), [((number + 1) * MSS, 0)]);
    }
    assert_eq!(guest.left.len(), 10, "the rest waits for the underlay's window");
    // The peer's ACKs say nothing new.
    ends.drain(&mut guest, WINDOW_BYTES);
    assert_eq!(acks(&ends, &mut guest), []);
    assert_eq!((ends.in_sequence, guest.port.held_bytes()), (15 * MSS, 0));
}

/// A TSval of the future would have all that the peer sends fail PAWS at the guest (RFC 7323, 5.3).
#[test]
fn the_peers_timestamp_is_not_one_that_the_guest_discards() {
    let mut ends = Ends::new(0);
    ends.stamp = Some(77);
    let mut guest = begun(&ends);
    ends.stamp = Some(77 + (1 << 18));
    guest.receive_corrupt(&ends.peer_ack(0, WINDOW_BYTES));
    ends.stamp = Some(77);
    let _ = guest.send(&ends.data(0, MSS_BYTES));
    let frame = guest.shown.last().expect("an ACK");
    assert!(frame.bytes.ends_with(&[0, 0, 0, 77, 0, 0, 0, 77]));
}

/// An older TSval would fail PAWS at the guest (RFC 7323, 5.3).
#[test]
fn the_peers_timestamp_is_its_latest_whatever_overtakes() {
    let mut ends = Ends::new(0);
    ends.stamp = Some(77);
    let mut guest = begun(&ends);
    let earlier = ends.peer_ack(0, WINDOW_BYTES);
    ends.stamp = Some(90);
    let _ = guest.receive(&ends.peer_ack(0, WINDOW_BYTES - 2000));
    let _ = guest.receive(&earlier);
    // A blind SYN begins nothing.
    ends.stamp = Some(1 << 30);
    let _ = guest.receive_forged(&Packet { seq: ends.irs.wrapping_add(9999), ..ends.syn_ack(9) });
    ends.stamp = Some(78);
    let _ = guest.send(&ends.data(0, MSS_BYTES));
    let frame = guest.shown.last().expect("an ACK");
    assert!(frame.bytes.ends_with(&[0, 0, 0, 90, 0, 0, 0, 78]), "{:?}", &frame.bytes[54..]);
}

/// The treatment was another one when the peer last sent its time.
#[test]
fn the_peers_timestamp_is_known_when_splitting_begins() {
    let mut ends = Ends::new(0);
    ends.stamp = Some(77);
    let mut guest = Guest::with(holding(), BufferSpec::default());
    guest.watch.splits = true;
    ends.open(&mut guest, 60_000);
    guest.port.set_params(splitting());
    guest.shown.clear();
    let _ = guest.send(&ends.data(0, MSS_BYTES));
    let segment = Segment::read(&guest.shown[0].bytes).expect("TCP");
    assert_eq!((segment.ack, segment.options()), (ends.seq(MSS), vec![TIMESTAMPS]));
}

#[test]
fn data_of_the_peer_carries_what_was_promised() {
    let ends = Ends::new(0);
    let mut guest = begun(&ends);
    let _ = guest.send(&ends.data(0, MSS_BYTES));
    let data = Packet { payload: vec![7; 100], ..ends.peer_ack(0, WINDOW_BYTES) };
    assert_eq!(guest.receive(&data), Verdict::Pass);
    assert_eq!(acks(&ends, &mut guest), [(MSS, 0), (MSS, 100)]);
}

/// None for a FIN: the peer acknowledges it itself.
#[test]
fn a_fin_is_acknowledged_when_the_peer_has() {
    let mut ends = Ends::new(0);
    let mut guest = begun(&ends);
    let last = Packet { flags: FIN | ACK, ..ends.data(0, MSS_BYTES) };
    let _ = guest.send(&last);
    let bare = Packet { flags: FIN | ACK, ..ends.guest_ack(MSS) };
    let _ = guest.send(&bare);
    for (ack, _) in acks(&ends, &mut guest) {
        assert_eq!(ack, MSS);
    }
    ends.drain(&mut guest, WINDOW_BYTES);
    assert!(ends.finished);
    assert_eq!(acks(&ends, &mut guest), [(MSS + 1, 0)]);
}

/// As when several queues of its card reorder.
#[test]
fn a_gap_is_not_acknowledged() {
    let mut ends = Ends::new(0);
    let mut guest = begun(&ends);
    let _ = guest.send(&ends.data(0, MSS_BYTES));
    let _ = guest.send(&ends.data(2 * MSS, MSS_BYTES));
    assert_eq!(acks(&ends, &mut guest), [(MSS, 0)]);
    let _ = guest.send(&ends.data(MSS, MSS_BYTES));
    ends.drain(&mut guest, WINDOW_BYTES);
    assert_eq!(ends.in_sequence, 3 * MSS);
    let _ = guest.send(&ends.data(3 * MSS, MSS_BYTES));
    assert_eq!(acks(&ends, &mut guest).last(), Some(&(4 * MSS, 0)));
}

#[test]
fn what_the_guest_repeats_is_acknowledged_again() {
    let ends = Ends::new(0);
    let mut guest = begun(&ends);
    let _ = guest.send(&ends.data(0, MSS_BYTES));
    assert_eq!(guest.send(&ends.data(0, MSS_BYTES)), Verdict::Held);
    // A keep-alive (RFC 9293, 3.8.4).
    let _ = guest.send(&Packet { seq: ends.seq(MSS - 1), ..ends.guest_ack(0) });
    assert_eq!(acks(&ends, &mut guest), [(MSS, 0); 3]);
    let data = guest.left.iter().filter(|frame| {
        Segment::read(&frame.bytes).is_some_and(|segment| !segment.payload.is_empty())
    });
    assert_eq!(data.count(), 1, "the port owns its delivery");
}

/// With nothing outstanding, a keep-alive asks the peer.
#[test]
fn a_keep_alive_of_an_idle_guest_reaches_the_peer() {
    let mut ends = Ends::new(0);
    let mut guest = begun(&ends);
    let _ = guest.send(&ends.data(0, MSS_BYTES));
    ends.drain(&mut guest, WINDOW_BYTES);
    guest.shown.clear();
    guest.wait_ms(60_000);
    let _ = guest.send(&Packet { seq: ends.seq(MSS - 1), ..ends.guest_ack(0) });
    assert_eq!((guest.left.len(), acks(&ends, &mut guest)), (1, vec![]));
    assert_eq!(guest.receive(&ends.peer_ack(MSS, WINDOW_BYTES)), Verdict::Pass);
}

#[test]
fn a_loss_is_the_ports_to_repair() {
    let mut ends = Ends::new(0);
    let mut guest = begun(&ends);
    for number in 0..30 {
        let _ = guest.send(&ends.data(number * MSS, MSS_BYTES));
    }
    guest.shown.clear();
    guest.left.remove(3);
    for _ in 0..40 {
        guest.wait_ms(10);
        while ends.take(&mut guest) {
            let _ = guest.receive(&ends.peer_ack(ends.in_sequence, WINDOW_BYTES));
        }
    }
    assert_eq!((ends.in_sequence, guest.port.held_bytes()), (30 * MSS, 0));
    assert!(acks(&ends, &mut guest).iter().all(|&(ack, _)| ack == 30 * MSS));
    assert_eq!(ends.flow(&guest).reductions, 1);
}

#[test]
fn a_rst_of_either_end_discards_what_is_held() {
    for by_guest in [true, false] {
        let ends = Ends::new(0);
        let mut guest = begun(&ends);
        for number in 0..30 {
            let _ = guest.send(&ends.data(number * MSS, MSS_BYTES));
        }
        guest.left.clear();
        let verdict = if by_guest {
            guest.send(&Packet { flags: RST | ACK, ..ends.guest_ack(30 * MSS) })
        } else {
            guest.receive(&Packet { flags: RST | ACK, ..ends.peer_ack(0, 0) })
        };
        assert_eq!((verdict, guest.port.held_bytes()), (Verdict::Pass, 0));
        if by_guest {
            let rst = Segment::read(&guest.left[0].bytes).expect("TCP").seq;
            assert_eq!(rst, ends.seq(10 * MSS), "within the peer's window");
        }
    }
}

/// A RST that the guest would not believe ends nothing (RFC 5961).
#[test]
fn a_rst_with_a_wrong_sequence_number_ends_nothing() {
    let mut ends = Ends::new(0);
    let mut guest = begun(&ends);
    for number in 0..30 {
        let _ = guest.send(&ends.data(number * MSS, MSS_BYTES));
    }
    let seq = ends.irs.wrapping_add(1000);
    let rst = Packet { flags: RST | ACK, seq, ..ends.peer_ack(0, 0) };
    let _ = guest.receive_forged(&rst);
    ends.drain(&mut guest, WINDOW_BYTES);
    assert_eq!((ends.in_sequence, guest.port.held_bytes()), (30 * MSS, 0));
}

/// What is promised is kept under any later treatment.
#[test]
fn a_promise_outlives_a_change_of_the_treatment() {
    let mut ends = Ends::new(0);
    let mut guest = begun(&ends);
    for number in 0..30 {
        let _ = guest.send(&ends.data(number * MSS, MSS_BYTES));
    }
    let act = sys::ACT_WINDOW as u8;
    guest.port.set_params(Params(sys::vcc_params { act, ..splitting().0 }));
    guest.watch.windows = false;
    guest.shown.clear();
    guest.left.clear();
    for _ in 0..100 {
        guest.wait_ms(10);
        while ends.take(&mut guest) {
            let _ = guest.receive(&ends.peer_ack(ends.in_sequence, WINDOW_BYTES));
        }
    }
    assert_eq!((ends.in_sequence, guest.port.held_bytes()), (30 * MSS, 0));
    assert!(acks(&ends, &mut guest).iter().all(|&(ack, _)| ack == 30 * MSS));
    // From then on, the guest is acknowledged by its peer.
    let _ = guest.send(&ends.data(30 * MSS, MSS_BYTES));
    assert_eq!(acks(&ends, &mut guest), []);
}

#[test]
fn what_is_to_be_ignored_is_forgotten_when_the_promises_are_kept() {
    let reno: Underlay = "reno".parse().expect("an underlay");
    // Neither ECN, feedback nor a scale, on which it would depend.
    let plain = sys::vcc_params { underlay: reno.number(), feedback: 0, ..splitting().0 };
    let ignored = sys::vcc_params { mode: sys::MODE_IGNORE as u8, ..plain };
    let mut ends = Ends::new(0);
    ends.scales = [0, 0];
    let mut guest = guest();
    guest.port.set_rules(by_guest_port(&[Params(plain)]));
    ends.open(&mut guest, 60_000);
    guest.left.clear();
    for number in 0..30 {
        let _ = guest.send(&ends.data(number * MSS, MSS_BYTES));
    }
    guest.port.set_rules(by_guest_port(&[Params(ignored)]));
    guest.watch.windows = false;
    assert_eq!(guest.port.flows().count(), 1);
    ends.drain(&mut guest, WINDOW_BYTES);
    assert_eq!((ends.in_sequence, guest.port.held_bytes()), (30 * MSS, 0));
    assert_eq!(guest.send(&ends.data(30 * MSS, MSS_BYTES)), Verdict::Pass);
    assert_eq!(guest.port.flows().count(), 0);
}

/// The path MTU shrinks below what has been acknowledged, and the ICMP message is the guest's.
#[test]
fn segments_above_the_path_mtu_are_sent_again_in_smaller_ones() {
    let mut ends = Ends::new(0);
    let mut guest = begun(&ends);
    for number in 0..30 {
        let _ = guest.send(&ends.data(number * MSS, MSS_BYTES));
    }
    let _ = guest.send_super(&ends.data(30 * MSS, 20 * MSS_BYTES), MSS_BYTES);
    for _ in 0..400 {
        guest.wait_ms(20);
        guest.left.retain(|frame| {
            Segment::read(&frame.bytes).is_some_and(|segment| segment.payload.len() <= 576)
        });
        if ends.take(&mut guest) {
            let _ = guest.receive(&ends.peer_ack(ends.in_sequence, WINDOW_BYTES));
        }
    }
    assert_eq!((ends.in_sequence, guest.port.held_bytes()), (50 * MSS, 0));
}

/// As without a ledger: the peer answers, and no promise needs one.
#[test]
fn a_port_that_promises_nothing_holds_and_repairs() {
    let mut ends = Ends::new(0);
    let mut guest = guest();
    guest.port.promise_nothing("there is no room for a ledger");
    ends.open(&mut guest, 60_000);
    guest.shown.clear();
    for number in 0..15 {
        let _ = guest.send(&ends.data(number * MSS, MSS_BYTES));
        assert_eq!(acks(&ends, &mut guest), []);
    }
    assert!(guest.port.held_bytes() > 0);
    ends.drain(&mut guest, WINDOW_BYTES);
    let acks_sent = acks(&ends, &mut guest);
    assert_eq!(acks_sent.last().map(|(acked, _)| *acked), Some(15 * MSS), "{acks_sent:?}");
    assert_eq!((ends.in_sequence, guest.port.held_bytes()), (15 * MSS, 0));
}

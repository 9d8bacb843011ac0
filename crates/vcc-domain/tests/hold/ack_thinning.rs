//! ACKs to a guest that does not read its receive ring.

use vcc_domain::{BufferSpec, Verdict};
use vcc_engine::{BufferPolicy, Params, sys};
use vcc_frames::wire::*;
use vcc_frames::{Packet, options};

use crate::common::segment::Segment;
use crate::ends::{Ends, Guest, MSS_BYTES, RING_SEGS, holding};

const MSS: u32 = MSS_BYTES as u32;
const WINDOW_BYTES: u32 = 60_032;
/// Half of the ring has frames that the guest has not read.
const CROWDED_SEGS: u32 = RING_SEGS / 2 - 1;
const WAITS_MAX_MS: u64 = 100;

/// Ten segments of each connection have left, and the ring is crowded.
fn crowded<const N: usize>(mut guest: Guest, all: [Ends; N]) -> (Guest, [Ends; N]) {
    for ends in &all {
        ends.open(&mut guest, 60_000);
        for number in 0..10 {
            let _ = guest.send(&ends.data(number * MSS, MSS_BYTES));
        }
    }
    crowd(&mut guest);
    (guest, all)
}

fn crowd(guest: &mut Guest) {
    guest.set_room(RING_SEGS);
    guest.set_room(CROWDED_SEGS);
    guest.shown.clear();
}

fn one() -> (Guest, Ends) {
    let (guest, [ends]) = crowded(Guest::new(), [Ends::new(0)]);
    (guest, ends)
}

fn ack(ends: &Ends, segs: u32) -> Packet {
    ends.peer_ack(segs * MSS, WINDOW_BYTES)
}

/// What the guest has been given since: acknowledged segments, and payload.
fn taken(guest: &mut Guest, ends: &Ends) -> Vec<(u32, usize)> {
    let shown = std::mem::take(&mut guest.shown);
    let read = |bytes: &Vec<u8>| {
        let segment = Segment::read(bytes).expect("TCP");
        (segment.ack.wrapping_sub(ends.seq(0)) / MSS, segment.payload.len())
    };
    shown.iter().map(|frame| read(&frame.bytes)).collect()
}

#[test]
fn a_guest_that_reads_its_ring_gets_every_ack() {
    let (mut guest, ends) = one();
    guest.set_room(RING_SEGS / 2);
    for segs in 1..=10 {
        assert_eq!(guest.receive(&ack(&ends, segs)), Verdict::Pass);
    }
    assert!(!guest.port.waits_for_room());
}

/// Firmware that adds few buffers to a large ring, and reads each frame.
#[test]
fn a_ring_is_as_large_as_the_buffers_that_it_has_had() {
    let (mut guest, ends) = (Guest::new(), Ends::new(0));
    ends.open(&mut guest, 60_000);
    for number in 0..10 {
        let _ = guest.send(&ends.data(number * MSS, MSS_BYTES));
    }
    guest.set_room(8);
    guest.set_room(4);
    assert_eq!(guest.receive(&ack(&ends, 1)), Verdict::Pass);
    guest.set_room(3);
    assert_eq!(guest.receive(&ack(&ends, 2)), Verdict::Held);
}

/// A shell that does not report room.
#[test]
fn a_ring_of_which_nothing_is_known_gets_every_ack() {
    let mut guest = Guest::new();
    let ends = Ends::new(0);
    ends.open(&mut guest, 60_000);
    for number in 0..10 {
        let _ = guest.send(&ends.data(number * MSS, MSS_BYTES));
        assert_eq!(guest.receive(&ack(&ends, number + 1)), Verdict::Pass);
    }
}

#[test]
fn while_it_does_not_the_last_ack_waits() {
    let (mut guest, all) = crowded(Guest::new(), [0, 1, 2].map(Ends::new));
    assert!(guest.port.wants_room() && !guest.port.waits_for_room());
    for segs in 1..=5 {
        for ends in &all {
            assert_eq!(guest.receive(&ack(ends, segs)), Verdict::Held);
        }
    }
    assert!(guest.shown.is_empty() && guest.port.waits_for_room());
    // What they admit leaves all the same.
    assert_eq!(all[0].flow(&guest).snd_una, all[0].seq(5 * MSS));
    // Frames are put into it, which is no reading.
    guest.set_room(CROWDED_SEGS - 3);
    assert!(guest.shown.is_empty());
    guest.set_room(CROWDED_SEGS);
    assert_eq!(guest.shown.len(), 3);
    for (frame, ends) in guest.shown.iter().zip(&all) {
        let segment = Segment::read(&frame.bytes).expect("TCP");
        assert_eq!((segment.to, segment.ack), (ends.guest, ends.seq(5 * MSS)));
        assert_eq!(segment.window, ends.flow(&guest).window_shown);
    }
    assert!(!guest.port.waits_for_room());
}

#[test]
fn a_guest_that_sends_is_given_the_ack_at_once() {
    let (mut guest, [ends, other]) = crowded(Guest::new(), [0, 1].map(Ends::new));
    for ends in [&ends, &other] {
        let _ = guest.receive(&ack(ends, 1));
    }
    let _ = guest.send(&ends.data(10 * MSS, MSS_BYTES));
    assert_eq!(taken(&mut guest, &ends), [(1, 0)]);
    assert!(guest.port.waits_for_room(), "that of the other connection");
}

#[test]
fn as_many_as_the_ring_has_room_for_are_given_at_once() {
    let (mut guest, all) = crowded(Guest::new(), [0, 1, 2].map(Ends::new));
    guest.set_room(0);
    for ends in &all {
        let _ = guest.receive(&ack(ends, 1));
    }
    guest.wait_ms(2 * WAITS_MAX_MS);
    assert!(guest.shown.is_empty(), "a full ring");
    guest.set_room(2);
    assert_eq!(guest.shown.len(), 2);
    guest.set_room(0);
    guest.set_room(1);
    assert_eq!(guest.shown.len(), 3);
}

/// A driver may add buffers later than others do.
#[test]
fn it_does_not_wait_until_the_guest_would_retransmit() {
    let (mut guest, ends) = one();
    let _ = guest.receive(&ack(&ends, 1));
    guest.wait_ms(WAITS_MAX_MS / 2);
    let _ = guest.receive(&ack(&ends, 2));
    guest.wait_ms(WAITS_MAX_MS / 2 - 1);
    assert_eq!(taken(&mut guest, &ends), []);
    guest.wait_ms(1);
    assert_eq!(taken(&mut guest, &ends), [(2, 0)]);
    // And so again.
    let _ = guest.receive(&ack(&ends, 3));
    guest.wait_ms(WAITS_MAX_MS);
    assert_eq!(taken(&mut guest, &ends), [(3, 0)]);
}

/// The guest counts each of them (RFC 5681).
#[test]
fn duplicate_acks_are_not_merged() {
    let (mut guest, ends) = one();
    let _ = guest.receive(&ack(&ends, 1));
    let duplicate = ack(&ends, 2);
    let verdicts = [(); 4].map(|()| guest.receive(&duplicate));
    // The first one is new, and is in front of the second one.
    assert_eq!(verdicts, [Verdict::Held, Verdict::Held, Verdict::Pass, Verdict::Pass]);
    assert_eq!(taken(&mut guest, &ends), [(2, 0); 4]);
}

/// They report losses one by one (RFC 2018).
#[test]
fn acks_with_sack_blocks_are_not_merged() {
    let mut ends = Ends::new(0);
    ends.sack = true;
    let (mut guest, [ends]) = crowded(Guest::new(), [ends]);
    let reports = |to: u32| {
        let block = options::sack(&[(ends.seq(2 * MSS), ends.seq(to * MSS))]);
        Packet { options: options::join(&[block]), ..ack(&ends, 1) }
    };
    let _ = guest.receive(&ack(&ends, 1));
    for to in 3..=6 {
        let _ = guest.receive(&reports(to));
    }
    assert_eq!(taken(&mut guest, &ends), [(1, 0); 5]);
    // One that acknowledges more includes all that the one before reports.
    let _ = guest.receive(&ack(&ends, 6));
    let block = options::sack(&[(ends.seq(8 * MSS), ends.seq(9 * MSS))]);
    let more = Packet { options: options::join(&[block]), ..ack(&ends, 7) };
    assert_eq!(guest.receive(&more), Verdict::Pass);
    guest.set_room(RING_SEGS);
    assert_eq!(taken(&mut guest, &ends), [(7, 0)]);
}

/// Also behind a hole, where the guest's next number does not distinguish data from an ACK.
#[test]
fn data_does_not_wait() {
    let (mut guest, ends) = one();
    let _ = guest.receive(&ack(&ends, 1));
    for (segs, behind_bytes) in [(2, 3000), (3, 0)] {
        let bare = ack(&ends, segs);
        let seq = bare.seq.wrapping_add(behind_bytes);
        let data = Packet { seq, payload: vec![7; 500], ..bare };
        assert_eq!(guest.receive(&data), Verdict::Pass);
        assert_eq!(taken(&mut guest, &ends), [(segs, 500)]);
    }
}

/// A guest that speaks ECN itself hears each ECE (RFC 3168).
#[test]
fn acks_with_ece_are_not_merged() {
    let (mut guest, ends) = (Guest::new(), Ends::new(0));
    let ecn = |packet: Packet, flags| Packet { flags: packet.flags | flags, ..packet };
    let _ = guest.send(&ecn(ends.syn(), ECE | CWR));
    let _ = guest.receive(&ecn(ends.syn_ack(60_000), ECE));
    let _ = guest.send(&ends.guest_ack(0));
    for number in 0..10 {
        let _ = guest.send(&ends.data(number * MSS, MSS_BYTES));
    }
    crowd(&mut guest);
    for segs in 1..=10 {
        assert_eq!(guest.receive(&ecn(ack(&ends, segs), ECE)), Verdict::Pass);
    }
    assert_eq!(guest.shown.len(), 10);
    assert!(guest.shown.iter().all(|it| Segment::read(&it.bytes).expect("TCP").has(ECE)));
}

/// Marks that the port answers itself are counted, even if the ACK is dropped.
#[test]
fn an_ack_that_waits_has_reduced_the_window() {
    let (mut guest, ends) = (Guest::new(), Ends::new(0));
    let _ = guest.send(&ends.syn());
    let answer = ends.syn_ack(60_000);
    let _ = guest.receive(&Packet { flags: answer.flags | ECE, ..answer });
    let _ = guest.send(&ends.guest_ack(0));
    for number in 0..10 {
        let _ = guest.send(&ends.data(number * MSS, MSS_BYTES));
    }
    crowd(&mut guest);
    let marked = ack(&ends, 4);
    let _ = guest.receive(&Packet { flags: marked.flags | ECE, ..marked });
    let _ = guest.receive(&ack(&ends, 5));
    assert_eq!((ends.flow(&guest).marks, ends.flow(&guest).reductions), (1, 1));
    guest.set_room(RING_SEGS);
    assert_eq!(taken(&mut guest, &ends), [(5, 0)]);
}

#[test]
fn the_last_window_waits() {
    // A share of the buffer that the window field can express.
    let buffer = BufferSpec { size_bytes: 40_000, policy: BufferPolicy::Fair };
    let (mut guest, [ends]) = crowded(Guest::with_buffer(buffer), [Ends::new(0)]);
    let edge = |guest: &Guest| ends.flow(guest).right_edge;
    let edges = [5_000, 10_000, 15_000].map(|window_bytes| {
        assert_eq!(guest.receive(&ends.peer_ack(10 * MSS, window_bytes)), Verdict::Held);
        edge(&guest)
    });
    assert!(edges[0] != edges[1] && edges[1] != edges[2]);
    guest.set_room(RING_SEGS);
    let shown = guest.watch.shown_edge(ends.guest, ends.peer);
    assert_eq!(shown, Some(edge(&guest)));
    assert_eq!(taken(&mut guest, &ends), [(10, 0)]);
}

#[test]
fn data_of_the_peer_does_not_wait_and_acknowledges_as_well() {
    let (mut guest, ends) = one();
    let _ = guest.receive(&ack(&ends, 1));
    let data = Packet { payload: vec![9; 100], ..ack(&ends, 2) };
    assert_eq!(guest.receive(&data), Verdict::Pass);
    let more = Packet { seq: data.seq.wrapping_add(100), ..ack(&ends, 3) };
    assert_eq!(guest.receive(&more), Verdict::Held);
    // What was sent before it arrives behind it.
    let old = Packet { seq: data.seq.wrapping_add(100), payload: vec![9; 7], ..data };
    assert_eq!(guest.receive(&old), Verdict::Held);
    assert_eq!(taken(&mut guest, &ends), [(2, 100), (3, 0), (2, 7)]);
    assert!(!guest.port.waits_for_room());
}

#[test]
fn a_keep_alive_does_not_wait() {
    let (mut guest, ends) = one();
    let probe = ack(&ends, 0);
    let seq = probe.seq.wrapping_sub(1);
    assert_eq!(guest.receive(&Packet { seq, ..probe }), Verdict::Pass);
}

#[test]
fn a_fin_does_not_wait_and_acknowledges_as_well() {
    let (mut guest, ends) = one();
    let _ = guest.receive(&ack(&ends, 1));
    let fin = ack(&ends, 2);
    assert_eq!(guest.receive(&Packet { flags: fin.flags | FIN, ..fin }), Verdict::Pass);
    guest.set_room(RING_SEGS);
    assert_eq!(taken(&mut guest, &ends), [(2, 0)]);
}

/// Of either end: the guest has no use for an ACK any more.
#[test]
fn a_reset_ends_what_waits() {
    for from_guest in [true, false] {
        let (mut guest, ends) = one();
        let _ = guest.receive(&ack(&ends, 1));
        let _ = match from_guest {
            true => guest.send(&Packet { flags: RST | ACK, ..ends.guest_ack(10 * MSS) }),
            false => guest.receive(&Packet { flags: RST | ACK, ..ack(&ends, 1) }),
        };
        assert!(!guest.port.waits_for_room());
        guest.shown.clear();
        guest.set_room(RING_SEGS);
        assert!(guest.shown.is_empty());
    }
}

#[test]
fn a_forged_reset_does_not() {
    let (mut guest, ends) = one();
    let _ = guest.receive(&ack(&ends, 1));
    let forged = ack(&ends, 1);
    let seq = forged.seq.wrapping_add(1000);
    let _ = guest.receive_forged(&Packet { seq, flags: RST, ..forged });
    assert!(guest.port.waits_for_room());
}

/// Both have closed: the guest may still wait for the ACK of its data.
#[test]
fn the_end_of_the_connection_leaves_what_waits() {
    let (mut guest, ends) = one();
    let fin = ack(&ends, 1);
    let _ = guest.receive(&Packet { flags: fin.flags | FIN, ..fin });
    let seq = fin.seq.wrapping_add(1);
    guest.shown.clear();
    assert_eq!(guest.receive(&Packet { seq, ..ack(&ends, 10) }), Verdict::Held);
    let last = ends.guest_ack(10 * MSS);
    let _ = guest.send(&Packet { flags: last.flags | FIN, ack: seq, ..last });
    guest.set_room(RING_SEGS);
    assert_eq!(taken(&mut guest, &ends), [(10, 0)]);
}

#[test]
fn the_end_of_the_port_leaves_nothing_behind() {
    let (mut guest, ends) = one();
    let _ = guest.receive(&ack(&ends, 3));
    guest.end_port();
    assert_eq!(taken(&mut guest, &ends), [(3, 0)]);
}

/// What waits reaches the guest, and no more does.
#[test]
fn under_another_treatment_no_ack_waits() {
    for act in [sys::ACT_WINDOW, sys::ACT_HOLD] {
        let (mut guest, ends) = one();
        let _ = guest.receive(&ack(&ends, 1));
        let mode = if act == sys::ACT_HOLD { sys::MODE_IGNORE } else { sys::MODE_ENFORCE };
        let params = sys::vcc_params { act: act as u8, mode: mode as u8, ..holding().0 };
        guest.watch.windows = false;
        guest.port.set_params(Params(params));
        // Until the peer's window has reached the edge that the guest was shown.
        for segs in 2..=4 {
            let _ = guest.receive(&ends.peer_ack(segs * MSS, 8_000_000));
        }
        guest.set_room(RING_SEGS);
        assert_eq!(taken(&mut guest, &ends).last(), Some(&(4, 0)), "{act}");
        guest.set_room(CROWDED_SEGS);
        assert_eq!(guest.receive(&ends.peer_ack(5 * MSS, 8_000_000)), Verdict::Pass, "{act}");
    }
}

/// The port's own duplicate ACKs would be the guest's first of them.
#[test]
fn what_waits_is_in_front_of_the_ports_own_acks() {
    let params = Params(sys::vcc_params { emit: 1, emit_after_us: 1000, ..holding().0 });
    let guest = Guest::with(params, BufferSpec::default());
    let (mut guest, [ends]) = crowded(guest, [Ends::new(0)]);
    guest.wait_ms(1);
    let _ = guest.receive(&ack(&ends, 1));
    guest.wait_ms(WAITS_MAX_MS / 2);
    assert_eq!(taken(&mut guest, &ends)[..4], [(1, 0); 4]);
}

/// Under `split` most ACKs do not reach the guest anyway; windows do.
#[test]
fn a_window_waits_under_split_as_well() {
    let params = sys::vcc_params { act: sys::ACT_SPLIT as u8, ..holding().0 };
    let buffer = BufferSpec { size_bytes: 100_000, policy: BufferPolicy::Fair };
    let mut guest = Guest::with(Params(params), buffer);
    guest.watch.splits = true;
    let mut ends = Ends::new(0);
    ends.open(&mut guest, 60_000);
    let mut sent = 0;
    while sent + MSS <= ends.flow(&guest).right_edge.wrapping_sub(ends.seq(0)) {
        let _ = guest.send(&ends.data(sent, MSS_BYTES));
        sent += MSS;
    }
    crowd(&mut guest);
    ends.drain(&mut guest, WINDOW_BYTES);
    assert_eq!((ends.in_sequence, guest.shown.len()), (sent, 0));
    guest.set_room(RING_SEGS);
    assert_eq!(guest.shown.len(), 1);
    let shown = guest.watch.shown_edge(ends.guest, ends.peer);
    assert_eq!(shown, Some(ends.flow(&guest).right_edge));
}

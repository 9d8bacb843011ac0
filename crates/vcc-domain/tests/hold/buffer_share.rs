//! A connection's share of the buffer, whatever its guest sends: it is the most that it has, it is given back, and a
//! guest that waits for room is shown it.

use vcc_domain::{BufferSpec, Frame, Seen};
use vcc_engine::{BufferPolicy, Params, sys};
use vcc_frames::Packet;
use vcc_frames::wire::*;

use crate::common::segment::Segment;
use crate::ends::{Ends, Guest, MSS_BYTES, holding};
use crate::split::splitting;

const MSS: u32 = MSS_BYTES as u32;
const KIB: u32 = 1 << 10;

fn guest_with(params: Params, kib: u32) -> Guest {
    Guest::with(params, BufferSpec { size_bytes: kib * KIB, policy: BufferPolicy::Fair })
}

fn seen(guest: &Guest, ends: &Ends) -> Seen {
    guest.port.seen_of(&ends.key()).expect("a flow")
}

/// The window that the guest was shown last, beyond `sent` bytes.
fn shown_bytes(guest: &Guest, ends: &Ends, sent: u32) -> u32 {
    let edge = guest.watch.shown_edge(ends.guest, ends.peer).expect("a window");
    edge.wrapping_sub(ends.seq(sent))
}

/// The peer's window has no room for a segment, so one is held before all that the guest sends after it.
fn behind_a_small_window(ends: &Ends) -> Guest {
    let mut guest = guest_with(holding(), 256);
    ends.open(&mut guest, 60_000);
    let _ = guest.send(&ends.data(0, MSS_BYTES));
    let _ = guest.receive(&ends.peer_ack(0, 2 * MSS - 1));
    assert_eq!(guest.left.len(), 1 + 2, "the handshake and a segment");
    guest
}

#[test]
fn small_segments_behind_one_that_waits_have_no_more_than_the_buffer() {
    let ends = Ends::new(0);
    let mut guest = behind_a_small_window(&ends);
    let _ = guest.send(&ends.data(MSS, MSS_BYTES));
    for offset in 2 * MSS..2 * MSS + 20_000 {
        let _ = guest.send(&ends.data(offset, 1));
    }
    assert!(guest.port.held_bytes() <= 256 * KIB, "{}", guest.port.held_bytes());
}

/// A guest may send large frames before small ones, and the buffer of a frame is used again for the next one.
#[test]
fn what_is_held_has_no_more_memory_than_its_bytes() {
    let ends = Ends::new(0);
    let mut guest = behind_a_small_window(&ends);
    for (offset, payload_bytes) in [(MSS, MSS_BYTES), (2 * MSS, 1), (2 * MSS + 1, 1)] {
        let frame = ends.data(offset, payload_bytes).frame();
        let mut bytes = Vec::with_capacity(65_553);
        bytes.extend(frame);
        let _ = guest.send_frame(Frame::full(bytes));
    }
    guest.left.clear();
    let _ = guest.receive(&ends.peer_ack(MSS, 10 * MSS));
    assert_eq!(guest.left.len(), 3);
    for frame in &guest.left {
        assert!(frame.bytes.capacity() <= 2 * frame.bytes.len(), "{}", frame.bytes.capacity());
    }
}

#[test]
fn nothing_is_held_behind_a_fin() {
    let ends = Ends::new(0);
    let mut guest = behind_a_small_window(&ends);
    let _ = guest.send(&ends.data(MSS, MSS_BYTES));
    let fin = |offset| Packet { flags: FIN | ACK, ..ends.guest_ack(offset) };
    let _ = guest.send(&fin(2 * MSS));
    let held_bytes = guest.port.held_bytes();
    for offset in 1..100 {
        let _ = guest.send_stray(Frame::full(fin(2 * MSS + offset).frame()));
        let data = Packet { payload: vec![1; 100], ..fin(2 * MSS + 1) };
        let _ = guest.send_stray(Frame::full(data.frame()));
    }
    assert_eq!(guest.port.held_bytes(), held_bytes);
}

/// The peer acknowledges at once all that has left, and sends nothing more.
#[test]
fn an_ack_of_all_that_was_retained_shows_the_room_that_it_makes() {
    for params in [splitting(), Params(sys::vcc_params { retransmit: 1, ..holding().0 })] {
        let mut ends = Ends::new(0);
        let mut guest = guest_with(params, 64);
        guest.watch.splits = u32::from(params.0.act) == sys::ACT_SPLIT;
        ends.open(&mut guest, 60_000);
        let mut sent = 0;
        for round in 0..10 {
            let window_bytes = shown_bytes(&guest, &ends, sent);
            assert!(window_bytes >= 8 * MSS, "round {round}: {window_bytes}");
            while shown_bytes(&guest, &ends, sent) >= MSS {
                let _ = guest.send(&ends.data(sent, MSS_BYTES));
                sent += MSS;
            }
            guest.wait_ms(1);
            ends.drain(&mut guest, 60_000);
            assert_eq!((ends.in_sequence, guest.port.held_bytes()), (sent, 0));
        }
    }
}

/// A window without room for a segment is not shown, so the last of the data is acknowledged only once there is room:
/// then at once, and not when the peer has it.
#[test]
fn what_was_not_promised_for_lack_of_room_is_promised_when_some_has_left() {
    let mut ends = Ends::new(0);
    let mut guest = guest_with(splitting(), 64);
    guest.watch.splits = true;
    ends.open(&mut guest, 60_000);
    let mut sent = 0;
    while shown_bytes(&guest, &ends, sent) >= MSS {
        let _ = guest.send(&ends.data(sent, MSS_BYTES));
        sent += MSS;
    }
    let acked = |guest: &Guest| {
        let last = guest.shown.last().expect("an ACK");
        Segment::read(&last.bytes).expect("TCP").ack.wrapping_sub(ends.seq(0))
    };
    assert!(acked(&guest) < sent);
    for acked_segs in [5, 10, 13] {
        let _ = guest.receive(&ends.peer_ack(acked_segs * MSS, 60_000));
        guest.wait_ms(1);
    }
    assert_eq!(acked(&guest), sent);
    ends.drain(&mut guest, 60_000);
    assert_eq!(ends.in_sequence, sent);
}

/// The grants of connections that only receive, however much, are those of others soon.
#[test]
fn a_guest_that_sends_nothing_gives_its_grant_back() {
    let mut guest = guest_with(holding(), 1024);
    let downloads: Vec<Ends> = (0..6).map(Ends::new).collect();
    for ends in &downloads {
        ends.open(&mut guest, 60_000);
    }
    assert!(guest.port.granted_bytes() > 512 * KIB);
    let mut received = 0;
    for _ in 0..30 {
        guest.wait_ms(10);
        for ends in &downloads {
            let seq = ends.irs.wrapping_add(1 + received);
            let _ =
                guest.receive(&Packet { seq, payload: vec![1; 100], ..ends.peer_ack(0, 60_000) });
            let ack = seq.wrapping_add(100);
            let _ = guest.send(&Packet { ack, ..ends.guest_ack(0) });
        }
        received += 100;
    }
    assert_eq!(guest.port.granted_bytes(), 0);
    // One that sends again is granted a part of its share.
    let _ = guest.send(&downloads[0].data(0, MSS_BYTES));
    assert!(guest.port.granted_bytes() > 64 * KIB);
}

/// Small segments that are retained in flight take more of the buffer than their data.
#[test]
fn the_window_has_room_for_segments_as_small_as_those_before() {
    let params = Params(sys::vcc_params { retransmit: 1, ..holding().0 });
    let mut ends = Ends::new(0);
    let mut guest = guest_with(params, 64);
    ends.open(&mut guest, 60_000);
    let mut sent = 0;
    // Beyond the first window, which does not shrink (RFC 9293, 3.8.6).
    for _ in 0..400 {
        let _ = guest.send(&ends.data(sent, 100));
        sent += 100;
        guest.wait_ms(1);
        ends.drain(&mut guest, 60_000);
    }
    let before = guest.port.counters().get(sys::COUNT_NO_BUFFER);
    while shown_bytes(&guest, &ends, sent) >= 100 {
        let _ = guest.send(&ends.data(sent, 100));
        sent += 100;
    }
    let share = seen(&guest, &ends).share;
    assert!(share.held_bytes <= share.share_bytes, "{share:?}");
    assert_eq!(guest.port.counters().get(sys::COUNT_NO_BUFFER), before);
    ends.drain(&mut guest, 60_000);
    assert_eq!(ends.in_sequence, sent);
}

/// What leaves at once and is retained uses up the grant, so that it takes nothing of others' besides.
#[test]
fn what_is_retained_at_once_is_taken_off_the_grant() {
    let [ends, other] = [0, 1].map(Ends::new);
    let mut guest = guest_with(splitting(), 64);
    guest.watch.splits = true;
    ends.open(&mut guest, 60_000);
    // Its window stays when it has given its grant back, and another one is granted more.
    guest.wait_ms(300);
    assert_eq!(guest.port.granted_bytes(), 0);
    other.open(&mut guest, 60_000);
    for number in 0..10 {
        let _ = guest.send(&ends.data(number * MSS, MSS_BYTES));
        let Seen { share, .. } = seen(&guest, &ends);
        assert!(share.held_bytes + share.granted_bytes <= share.share_bytes, "{number}: {share:?}");
    }
    assert!(seen(&guest, &ends).share.granted_bytes > 0);
}

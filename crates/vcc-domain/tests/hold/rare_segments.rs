//! Segments that an end discards or that are rare, while segments are held.

use vcc_domain::{Frame, Verdict};
use vcc_frames::Packet;
use vcc_frames::wire::*;

use crate::common::segment::Segment;
use crate::ends::{Ends, Guest, MSS_BYTES};

const WINDOW_BYTES: u32 = 60_000;
const SENT: u32 = 30_000;

fn with_held(ends: &mut Ends) -> Guest {
    let mut guest = Guest::new();
    ends.open(&mut guest, 60_000);
    for offset in (0..SENT).step_by(MSS_BYTES) {
        let _ = guest.send(&ends.data(offset, MSS_BYTES));
    }
    ends.take(&mut guest);
    assert_eq!(ends.in_sequence, 10_000);
    guest
}

fn goes_on(mut guest: Guest, mut ends: Ends) {
    let _ = guest.receive(&ends.peer_ack(ends.in_sequence, WINDOW_BYTES));
    ends.drain(&mut guest, WINDOW_BYTES);
    assert_eq!((ends.in_sequence, guest.port.held_bytes()), (SENT, 0));
}

/// Law 17.
#[test]
fn what_the_guest_discards_releases_nothing() {
    let mut ends = Ends::new(0);
    let mut guest = with_held(&mut ends);
    let ack = ends.peer_ack(10_000, WINDOW_BYTES);
    let wrong = [
        // Of what has not left, though the guest has sent it.
        Packet { ack: ends.seq(10_001), ..ack.clone() },
        Packet { ack: ends.seq(SENT), ..ack.clone() },
        Packet { ack: ends.seq(500_000_000), ..ack.clone() },
        // Outside of the guest's window.
        Packet { seq: ack.seq.wrapping_sub(50_000), payload: vec![1; 100], ..ack.clone() },
        Packet { seq: ack.seq.wrapping_add(60_001 << 7), ..ack.clone() },
        Packet { seq: ack.seq.wrapping_add(0x8000_0000), ..ack.clone() },
    ];
    for packet in wrong {
        let before = (*ends.flow(&guest), guest.port.held_bytes());
        let _ = guest.receive_forged(&packet);
        assert_eq!(guest.left, [], "{packet:?}");
        let (flow, held_bytes) = before;
        assert_eq!(
            (ends.flow(&guest).snd_una, guest.port.held_bytes()),
            (flow.snd_una, held_bytes)
        );
    }
    goes_on(guest, ends);
}

#[test]
fn an_old_ack_moves_no_window() {
    let mut ends = Ends::new(0);
    let mut guest = with_held(&mut ends);
    let _ = guest.receive(&ends.peer_ack(10_000, WINDOW_BYTES));
    ends.take(&mut guest);
    let edge = guest.watch.shown_edge(ends.guest, ends.peer);
    for offset in [0, 5000, 9000] {
        guest.shown.clear();
        let _ = guest.receive(&ends.peer_ack(offset, WINDOW_BYTES * 10));
        assert_eq!(guest.left, []);
        let frame = guest.shown.pop().expect("it passes");
        let old = Segment::read(&frame.bytes).expect("TCP");
        let scale = ends.flow(&guest).wscale_shown;
        let old_edge = old.ack.wrapping_add(u32::from(old.window) << scale);
        assert!(edge.is_some_and(|edge| old_edge.wrapping_sub(edge) as i32 <= 0));
    }
    goes_on(guest, ends);
}

/// RFC 9293, 3.8.6: what lies beyond the new edge stays, and leaves when the window reopens.
#[test]
fn a_window_that_shrinks_takes_nothing_back() {
    let mut ends = Ends::new(0);
    let mut guest = with_held(&mut ends);
    let _ = guest.receive(&ends.peer_ack(5000, 5120));
    assert!(!ends.take(&mut guest));
    let _ = guest.receive(&ends.peer_ack(6000, 1024));
    assert!(!ends.take(&mut guest));
    let _ = guest.receive(&ends.peer_ack(10_000, 0));
    assert!(!ends.take(&mut guest));
    guest.wait_ms(60_000);
    goes_on(guest, ends);
}

/// The guest's retransmission timer is the persist timer: its probe has no data and is answered.
#[test]
fn a_retransmission_probes_a_shut_window() {
    let mut ends = Ends::new(0);
    let mut guest = with_held(&mut ends);
    let _ = guest.receive(&ends.peer_ack(10_000, 0));
    for _ in 0..20 {
        guest.wait_ms(3000);
        let held_bytes = guest.port.held_bytes();
        let _ = guest.send(&ends.data(10_000, MSS_BYTES));
        let probe = guest.left.pop().expect("a probe");
        let probe = Segment::read(&probe.bytes).expect("TCP");
        assert_eq!((probe.seq, probe.payload.len()), (ends.seq(9_999), 0));
        assert_eq!((guest.left.len(), guest.port.held_bytes()), (0, held_bytes));
        let _ = guest.receive(&ends.peer_ack(10_000, 0));
        assert_eq!(guest.left, []);
    }
    goes_on(guest, ends);
}

/// Its ACKs are for the peer's data, and the peer discards one beyond its window.
#[test]
fn the_guests_acks_pass_what_is_held() {
    let mut ends = Ends::new(0);
    let mut guest = with_held(&mut ends);
    for ack in 1..20 {
        let data = Packet { payload: vec![7; 100], ..ends.peer_ack(10_000, 0) };
        let seq = data.seq.wrapping_add((ack - 1) * 100);
        let _ = guest.receive(&Packet { seq, ..data });
        let ack = ends.irs.wrapping_add(1 + ack * 100);
        let answer = Packet { ack, ..ends.guest_ack(SENT) };
        assert_eq!(guest.send(&answer), Verdict::Pass);
        let left = guest.left.pop().expect("the ACK");
        let left = Segment::read(&left.bytes).expect("TCP");
        assert_eq!((left.seq, left.ack), (ends.seq(10_000), ack));
    }
    assert!(guest.port.held_bytes() > 20_000);
}

/// Its data waits for the peer's window, its acknowledgement does not.
#[test]
fn what_a_held_segment_acknowledges_reaches_the_peer_at_once() {
    for gso_size in [0, MSS_BYTES as u16] {
        let mut ends = Ends::new(0);
        let mut guest = with_held(&mut ends);
        let _ = guest.receive(&ends.peer_ack(10_000, 0));
        for (number, offset) in (1..).zip((SENT..SENT + 30_000).step_by(3000)) {
            let data = Packet { payload: vec![7; 100], ..ends.peer_ack(10_000, 0) };
            let seq = data.seq.wrapping_add((number - 1) * 100);
            let _ = guest.receive(&Packet { seq, ..data });
            let ack = ends.irs.wrapping_add(1 + number * 100);
            let packet = Packet { ack, flags: ACK | PSH | CWR, ..ends.data(offset, 3000) };
            let _ = guest.send_frame(Frame { gso_size, ..Frame::full(packet.frame()) });
            let left = guest.left.pop().expect("an ACK");
            let left = Segment::read(&left.bytes).expect("TCP");
            assert_eq!((left.seq, left.ack), (ends.seq(10_000), ack));
            assert_eq!((left.flags, left.payload.len()), (ACK, 0));
            assert!(guest.left.is_empty());
        }
        let _ = guest.receive(&Packet {
            seq: ends.irs.wrapping_add(1001),
            ..ends.peer_ack(10_000, WINDOW_BYTES)
        });
        assert!(!guest.left.is_empty());
    }
}

/// Nor is it lost with data that is dropped, because it is held already or follows a gap.
#[test]
fn what_a_dropped_segment_acknowledges_reaches_the_peer_at_once() {
    let mut ends = Ends::new(0);
    let mut guest = with_held(&mut ends);
    for (number, offset) in (1..).zip([12_000, 20_500, SENT + 5000]) {
        let data = Packet { payload: vec![7; 100], ..ends.peer_ack(9_000, 0) };
        let seq = data.seq.wrapping_add((number - 1) * 100);
        let _ = guest.receive(&Packet { seq, ..data });
        let ack = ends.irs.wrapping_add(1 + number * 100);
        let _ = guest.send(&Packet { ack, ..ends.data(offset, MSS_BYTES) });
        let left = guest.left.pop().expect("an ACK");
        let left = Segment::read(&left.bytes).expect("TCP");
        assert_eq!((left.seq, left.ack, left.payload.len()), (ends.seq(10_000), ack, 0));
        assert!(guest.left.is_empty());
    }
}

/// The urgent pointer counts from the segment's sequence number (RFC 9293, 3.1).
#[test]
fn the_urgent_pointer_stays_where_it_points() {
    let (mut guest, mut ends) = (Guest::new(), Ends::new(0));
    ends.open(&mut guest, 60_000);
    for urgent in [1u16, 9_999, 10_000, 10_001, 15_000, 20_000, 40_000] {
        let from = ends.in_sequence;
        let mut frame = ends.data(from, 20_000);
        frame.flags |= URG;
        let at = frame.headers();
        let mut bytes = frame.frame();
        write_u16(&mut bytes, at.l4 + 18, urgent);
        vcc_frames::checksum::fill(&mut bytes, &at);
        let whole = Frame { gso_size: MSS_BYTES as u16, ..Frame::full(bytes) };
        let _ = guest.send_frame(whole);
        let points_to = ends.seq(from).wrapping_add(urgent.into());
        let mut seen = false;
        loop {
            for frame in &guest.left {
                let segment = Segment::read(&frame.bytes).expect("TCP");
                if segment.has(URG) {
                    seen = true;
                    let to = segment.seq.wrapping_add(segment.urgent.into());
                    assert_eq!(
                        to,
                        points_to,
                        "{urgent} at {}",
                        segment.seq.wrapping_sub(ends.seq(from))
                    );
                }
            }
            if !ends.take(&mut guest) {
                break;
            }
            guest.wait_ms(1);
            let _ = guest.receive(&ends.peer_ack(ends.in_sequence, WINDOW_BYTES));
        }
        assert!(seen);
        assert_eq!(ends.in_sequence, from + 20_000);
    }
}

/// The peer's clock is coarse, and the guest's stands still.
#[test]
fn timestamps_that_stand_still_hold_nothing_up() {
    let mut ends = Ends::new(0);
    ends.stamp = Some(42);
    let guest = with_held(&mut ends);
    goes_on(guest, ends);
}

/// An older TSval than one that has passed would fail PAWS (RFC 7323, 5.3).
#[test]
fn timestamps_never_run_back() {
    let mut ends = Ends::new(0);
    ends.stamp = Some(0xffff_fff0);
    let mut guest = with_held(&mut ends);
    let mut before = 0xffff_fff0_u32;
    for stamp in 0..20u32 {
        ends.stamp = Some(0xffff_fff5u32.wrapping_add(stamp));
        let _ = guest.send(&ends.guest_ack(SENT));
        guest.wait_ms(1);
        let _ = guest.receive(&ends.peer_ack(ends.in_sequence, WINDOW_BYTES));
        for frame in &guest.left {
            let value = read_u32(&frame.bytes, 14 + 20 + 20 + 2);
            assert!(value.wrapping_sub(before) as i32 >= 0, "{value:#x} after {before:#x}");
            before = value;
        }
        ends.take(&mut guest);
    }
    assert_eq!((ends.in_sequence, guest.port.held_bytes()), (SENT, 0));
}

/// A hole in what the guest sent: a card with several queues reorders.
#[test]
fn what_the_guest_sends_out_of_order_arrives() {
    for window_bytes in [1024, 3000, WINDOW_BYTES] {
        let (mut guest, mut ends) = (Guest::new(), Ends::new(0));
        ends.open(&mut guest, 0);
        for offset in [0u32, 3000, 1000, 2000, 4000, 8000, 6000, 7000, 5000] {
            let _ = guest.send(&ends.data(offset, MSS_BYTES));
        }
        // The answers to the guest's retransmissions open the window.
        for _ in 0..30 {
            let _ = guest.receive(&ends.peer_ack(ends.in_sequence, window_bytes));
            ends.drain(&mut guest, window_bytes);
            guest.wait_ms(1000);
            if ends.in_sequence < 9000 {
                let _ = guest.send(&ends.data(ends.in_sequence, MSS_BYTES));
            }
            ends.take(&mut guest);
        }
        assert_eq!((ends.in_sequence, guest.port.held_bytes()), (9000, 0), "{window_bytes}");
    }
}

/// A super-segment above 64 KiB has the IP length 0 (RFC 2675; Linux: BIG TCP).
#[test]
fn a_super_segment_above_64_kib_leaves_in_parts() {
    let (mut guest, mut ends) = (Guest::new(), Ends::new(0));
    ends.open(&mut guest, 60_000);
    const BIG_BYTES: usize = 200_000;
    let data = ends.data(0, BIG_BYTES);
    let mut bytes = Packet { payload: Vec::new(), ..data.clone() }.frame();
    bytes.extend(&data.payload);
    bytes[16..18].fill(0);
    let mut whole = Frame { gso_size: MSS_BYTES as u16, ..Frame::full(bytes) };
    // The pseudo-header's length has 32 bits.
    whole.checksum = vcc_domain::Checksum::Partial;
    let head = vcc_frames::Headers { end: whole.bytes.len(), ..data.headers() };
    vcc_frames::checksum::fill_ipv4(&mut whole.bytes[14..34]);
    vcc_frames::checksum::make_partial(&mut whole.bytes, &head);
    let _ = guest.send_frame(whole);
    ends.drain(&mut guest, WINDOW_BYTES);
    assert_eq!((ends.in_sequence, guest.port.held_bytes()), (BIG_BYTES as u32, 0));
}

/// The path MTU shrinks below what is held (RFC 1191): the guest sends it again in smaller segments,
/// as those that leave are lost. None is held up for good.
#[test]
fn segments_held_above_the_path_mtu_are_sent_again_in_smaller_ones() {
    const SMALL_BYTES: usize = 500;
    let mut ends = Ends::new(0);
    let mut guest = with_held(&mut ends);
    let _ = guest.receive(&ends.peer_ack(10_000, WINDOW_BYTES));
    let too_big = |frame: &Frame| {
        Segment::read(&frame.bytes).is_some_and(|segment| segment.payload.len() > SMALL_BYTES)
    };
    let mut rounds = 0;
    while ends.in_sequence < SENT {
        guest.left.retain(|frame| !too_big(frame));
        if ends.take(&mut guest) {
            guest.wait_ms(1);
            let _ = guest.receive(&ends.peer_ack(ends.in_sequence, WINDOW_BYTES));
            continue;
        }
        // Its retransmission timer, or the ICMP message.
        guest.wait_ms(300);
        for offset in (ends.in_sequence..SENT).step_by(SMALL_BYTES).take(10) {
            let _ = guest.send(&ends.data(offset, SMALL_BYTES));
        }
        rounds += 1;
        assert!(rounds < 100, "stuck at {}", ends.in_sequence);
    }
    assert_eq!(guest.port.held_bytes(), 0);
}

/// A window from before an idle time is no longer valid (RFC 5681, 4.1), nor when a loss follows.
#[test]
fn a_loss_after_an_idle_time_does_not_restore_the_window() {
    let (mut guest, mut ends) = (Guest::new(), Ends::new(0));
    ends.open(&mut guest, 60_000);
    const BEFORE: u32 = 400_000;
    let _ = guest.send_super(&ends.data(0, 60_000), MSS_BYTES);
    for offset in (60_000..BEFORE).step_by(MSS_BYTES) {
        let _ = guest.send(&ends.data(offset, MSS_BYTES));
    }
    ends.drain(&mut guest, 500_000);
    assert_eq!(ends.in_sequence, BEFORE);
    assert!(ends.flow(&guest).cc.cwnd_segs > 100);
    guest.wait_ms(5000);
    for offset in (BEFORE..BEFORE + 100_000).step_by(MSS_BYTES) {
        let _ = guest.send(&ends.data(offset, MSS_BYTES));
    }
    assert_eq!(guest.left.len(), 10);
    guest.left.clear();
    // A fast retransmission, and an old ACK.
    guest.wait_ms(1);
    let _ = guest.send(&ends.data(BEFORE, MSS_BYTES));
    let _ = guest.receive(&ends.peer_ack(BEFORE - 1000, 500_000));
    assert_eq!(guest.left.len(), 1);
}

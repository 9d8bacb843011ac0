//! ICMP messages about segments that the path does not carry (RFC 1191).

use vcc_domain::{BufferSpec, Frame, Verdict};
use vcc_engine::{Params, sys};
use vcc_frames::wire::*;
use vcc_frames::{Headers, icmp};

use crate::common::segment::Segment;
use crate::ends::{Ends, Guest, INITIAL_WINDOW_BYTES, MSS_BYTES, holding};
use crate::retransmit::repairing;
use crate::split::splitting;

const WINDOW_BYTES: u32 = 60_000;
const MSS: u32 = MSS_BYTES as u32;
const RTO_MIN_NS: u64 = 5_000_000;
const SENT: u32 = 30 * MSS;
/// TCP's ports and sequence number.
const QUOTED_BYTES: usize = 8;
const SMALL_MTU_BYTES: u32 = 700;
const HEADERS_BYTES: usize = IPV4_BYTES + TCP_BYTES;
const SMALL_BYTES: usize = SMALL_MTU_BYTES as usize - HEADERS_BYTES;

/// A message about the packet in the frame, as it left.
fn about(frame: &Frame, mtu_bytes: u32) -> Frame {
    quoting(&frame.bytes, mtu_bytes, QUOTED_BYTES)
}

fn quoting(bytes: &[u8], mtu_bytes: u32, quoted_bytes: usize) -> Frame {
    let at = Headers {
        ipv6: false,
        l3: ETHERNET_BYTES,
        l4: ETHERNET_BYTES + IPV4_BYTES,
        end: bytes.len(),
    };
    Frame::full(icmp::too_big(bytes, &at, mtu_bytes, quoted_bytes))
}

/// Thirty segments, of which ten have left, are all with the port.
fn flooded(params: Params) -> (Ends, Guest) {
    let mut ends = Ends::new(0);
    ends.sack = true;
    let mut guest = Guest::with(params, BufferSpec::default());
    guest.watch.splits = params.0.act == sys::ACT_SPLIT as u8;
    // The window counts in segments, whose size changes.
    guest.watch.slack_bytes = MSS.into();
    ends.open(&mut guest, 60_000);
    guest.left.clear();
    for offset in (0..SENT).step_by(MSS_BYTES) {
        let _ = guest.send(&ends.data(offset, MSS_BYTES));
    }
    assert_eq!(guest.left.iter().map(payload_bytes).sum::<usize>(), INITIAL_WINDOW_BYTES as usize);
    (ends, guest)
}

fn payload_bytes(frame: &Frame) -> usize {
    Segment::read(&frame.bytes).expect("TCP").payload.len()
}

/// What left since, by offset and size; the guest's window updates aside.
fn left(ends: &Ends, guest: &Guest) -> Vec<(u32, usize)> {
    let segments = guest.left.iter().map(|frame| {
        let segment = Segment::read(&frame.bytes).expect("TCP");
        (segment.seq.wrapping_sub(ends.seq(0)), segment.payload.len())
    });
    segments.filter(|&(_, bytes)| bytes > 0).collect()
}

/// The peer takes what leaves, in segments that the small path carries, until nothing more does.
fn end(ends: &mut Ends, guest: &mut Guest) {
    loop {
        assert!(guest.left.iter().all(|frame| payload_bytes(frame) <= SMALL_BYTES));
        if !ends.take(guest) {
            return;
        }
        let _ = guest.receive(&ends.peer_ack(ends.in_sequence, WINDOW_BYTES));
    }
}

fn window_bytes(ends: &Ends, guest: &Guest) -> u32 {
    let flow = ends.flow(guest);
    flow.cc.cwnd_segs * u32::from(flow.mss_bytes)
}

#[test]
fn what_is_retained_leaves_again_in_smaller_segments_at_once() {
    for params in [repairing(), splitting()] {
        let (mut ends, mut guest) = flooded(params);
        let before_bytes = window_bytes(&ends, &guest);
        let message = about(&guest.left[0], SMALL_MTU_BYTES);
        guest.left.clear();
        assert_eq!(guest.receive_frame(message), Verdict::Pass);
        let again = left(&ends, &guest);
        let sizes = [SMALL_BYTES, MSS_BYTES - SMALL_BYTES].into_iter().cycle();
        assert!(again.iter().zip(sizes).all(|(&(_, bytes), size)| bytes == size), "{again:?}");
        let sent_bytes: usize = again.iter().map(|&(_, bytes)| bytes).sum();
        let window_bytes = window_bytes(&ends, &guest);
        assert!(before_bytes - window_bytes < SMALL_BYTES as u32, "no reduction");
        let room_bytes = window_bytes as usize - sent_bytes;
        assert!(room_bytes < SMALL_BYTES, "as much as the window admits");
        end(&mut ends, &mut guest);
        assert_eq!((ends.in_sequence, guest.port.held_bytes()), (SENT, 0));
        assert_eq!(ends.flow(&guest).reductions, 0);
        assert!(guest.now_ns < RTO_MIN_NS, "no timer was needed");
    }
}

/// What is in flight is the guest's to send again.
#[test]
fn what_is_held_leaves_in_smaller_segments() {
    let (mut ends, mut guest) = flooded(holding());
    let message = about(&guest.left[0], SMALL_MTU_BYTES);
    guest.left.clear();
    assert_eq!(guest.receive_frame(message.clone()), Verdict::Pass);
    assert_eq!(guest.shown.last(), Some(&message), "as it came");
    assert_eq!(left(&ends, &guest), []);
    for offset in (0..SENT).step_by(SMALL_BYTES) {
        let bytes = SMALL_BYTES.min((SENT - offset) as usize);
        let _ = guest.send(&ends.data(offset, bytes));
    }
    end(&mut ends, &mut guest);
    assert_eq!((ends.in_sequence, guest.port.held_bytes()), (SENT, 0));
    assert_eq!(ends.flow(&guest).reductions, 0);
}

#[test]
fn a_message_is_the_guests_alone_if_nothing_is_held() {
    let ends = Ends::new(0);
    let ignored = Params(sys::vcc_params { mode: sys::MODE_DRAIN as u8, ..splitting().0 });
    for params in [Params::default(), ignored] {
        let mut guest = Guest::with(params, BufferSpec::default());
        guest.watch.windows = false;
        ends.open(&mut guest, 60_000);
        let _ = guest.send(&ends.data(0, MSS_BYTES));
        let message = about(guest.left.last().expect("data"), SMALL_MTU_BYTES);
        let before = guest.port.flow(&ends.key()).map(|flow| flow.0);
        guest.left.clear();
        assert_eq!(guest.receive_frame(message.clone()), Verdict::Pass);
        assert_eq!(guest.shown.last(), Some(&message));
        assert_eq!(guest.port.flow(&ends.key()).map(|flow| flow.0), before);
        assert!(guest.left.is_empty());
        let _ = guest.send(&ends.data(MSS, MSS_BYTES));
        assert_eq!(left(&ends, &guest), [(MSS, MSS_BYTES)]);
    }
}

/// Only what is in flight is quoted by one who sees it (RFC 5927, 4.1), and a link that does not
/// carry it carries less.
#[test]
fn a_forged_or_stale_message_changes_nothing() {
    let (mut ends, mut guest) = flooded(splitting());
    let first = guest.left[0].clone();
    let last = guest.left.iter().rfind(|frame| payload_bytes(frame) > 0).expect("data").clone();
    ends.take(&mut guest);
    let _ = guest.receive(&ends.peer_ack(MSS, WINDOW_BYTES));
    let beyond = ends.data(SENT, MSS_BYTES).frame();
    let mut of_another = last.bytes.clone();
    of_another[ETHERNET_BYTES + IPV4_BYTES + 1] ^= 1;
    let mut corrupt = about(&last, SMALL_MTU_BYTES);
    *corrupt.bytes.last_mut().expect("a byte") ^= 1;
    let packet_bytes = (HEADERS_BYTES + MSS_BYTES) as u32;
    let forged = [
        about(&first, SMALL_MTU_BYTES),
        quoting(&beyond, SMALL_MTU_BYTES, QUOTED_BYTES),
        quoting(&of_another, SMALL_MTU_BYTES, QUOTED_BYTES),
        quoting(&last.bytes, SMALL_MTU_BYTES, QUOTED_BYTES - 1),
        corrupt,
        about(&last, 575),
        about(&last, packet_bytes),
        about(&last, 9000),
    ];
    guest.left.clear();
    let before = ends.flow(&guest).0;
    for (number, message) in forged.into_iter().enumerate() {
        assert_eq!(guest.receive_frame(message.clone()), Verdict::Pass);
        assert_eq!(guest.shown.last(), Some(&message), "{number}");
        assert_eq!((left(&ends, &guest), ends.flow(&guest).0), (vec![], before), "{number}");
    }
    let _ = guest.receive_frame(about(&last, packet_bytes - 1));
    assert_ne!(left(&ends, &guest), [], "and this one does");
}

/// Devices on the way rewrite what is quoted: the port itself, or a firewall.
#[test]
fn fields_behind_the_sequence_number_say_nothing() {
    let (ends, mut guest) = flooded(splitting());
    let mut quoted = guest.left[0].bytes.clone();
    quoted[ETHERNET_BYTES + IPV4_BYTES + 8..].fill(0xee);
    guest.left.clear();
    let _ = guest.receive_frame(quoting(&quoted, SMALL_MTU_BYTES, 100));
    assert_eq!(left(&ends, &guest)[0], (0, SMALL_BYTES));
}

/// A router older than RFC 1191 does not say what its link carries.
#[test]
fn no_mtu_is_the_least() {
    let (ends, mut guest) = flooded(splitting());
    let message = about(&guest.left[0], 0);
    guest.left.clear();
    let _ = guest.receive_frame(message);
    assert_eq!(left(&ends, &guest)[0], (0, 576 - HEADERS_BYTES));
}

/// The quoted data have been acknowledged to it, so it would ignore the message.
#[test]
fn a_guest_under_split_learns_what_it_still_awaits() {
    let (ends, mut guest) = flooded(splitting());
    let message = about(&guest.left[0], SMALL_MTU_BYTES);
    let _ = guest.receive_frame(message.clone());
    let shown = guest.shown.iter().find(|frame| Segment::read(&frame.bytes).is_none());
    let shown = &shown.expect("the message").bytes;
    let seq_at = shown.len() - 4;
    assert_eq!(read_u32(shown, seq_at), ends.seq(SENT));
    assert!(icmp::verify(shown, ETHERNET_BYTES));
    let changed = (0..seq_at).filter(|&at| shown[at] != message.bytes[at]);
    let icmp_at = ETHERNET_BYTES + IPV4_BYTES;
    assert!(changed.into_iter().all(|at| (icmp_at + 2..icmp_at + 4).contains(&at)));
}

#[test]
fn super_segments_are_cut_as_well() {
    const MORE: usize = 20 * MSS_BYTES;
    let (mut ends, mut guest) = flooded(splitting());
    ends.drain(&mut guest, WINDOW_BYTES);
    let _ = guest.send_super(&ends.data(SENT, MORE), MSS_BYTES);
    let message = about(guest.left.last().expect("data"), SMALL_MTU_BYTES);
    guest.left.clear();
    let _ = guest.receive_frame(message);
    end(&mut ends, &mut guest);
    assert_eq!((ends.in_sequence, guest.port.held_bytes()), (SENT + MORE as u32, 0));
    // The guest has read the message as well: what it sends needs no cut.
    let next = SENT + MORE as u32;
    let _ = guest.send_super(&ends.data(next, 5 * SMALL_BYTES), SMALL_BYTES);
    assert_eq!(left(&ends, &guest), [(next, 5 * SMALL_BYTES)]);
}

/// A guest that has not read it continues as before.
#[test]
fn the_path_stays_small_until_the_message_is_ten_minutes_old() {
    let (mut ends, mut guest) = flooded(splitting());
    let message = about(&guest.left[0], SMALL_MTU_BYTES);
    guest.left.clear();
    let _ = guest.receive_frame(message);
    end(&mut ends, &mut guest);
    for (minutes, first_bytes) in [(9, SMALL_BYTES), (2, MSS_BYTES)] {
        guest.wait_ms(minutes * 60_000);
        guest.left.clear();
        let offset = ends.in_sequence;
        let _ = guest.send(&ends.data(offset, MSS_BYTES));
        assert_eq!(left(&ends, &guest)[0], (offset, first_bytes));
        ends.drain(&mut guest, WINDOW_BYTES);
        assert_eq!((ends.in_sequence, guest.port.held_bytes()), (offset + MSS, 0));
    }
}

//! A guest that ignores the window it is shown.

use vcc_domain::{BufferSpec, Verdict};
use vcc_engine::BufferPolicy;
use vcc_frames::wire::*;

use crate::BESIDE_A_FRAME_BYTES;
use crate::common::segment::Segment;
use crate::ends::{Ends, Guest, INITIAL_WINDOW_BYTES, MSS_BYTES};

const MTU_FRAME_BYTES: u32 = 14 + 40 + MSS_BYTES as u32;
const SUPER_BYTES: usize = 60_000;
const MB: u32 = 1 << 20;

fn small_buffer() -> BufferSpec {
    BufferSpec { size_bytes: 200_000, policy: BufferPolicy::Fair }
}

/// Sends whole segments from `offset` while the port takes any; returns the offset reached.
fn flood(guest: &mut Guest, ends: &Ends, mut offset: u32) -> u32 {
    while guest.port.wants_frames() {
        let _ = guest.send(&ends.data(offset, MSS_BYTES));
        offset += MSS_BYTES as u32;
        assert!(offset < 100 * MB, "the buffer is full at some time");
    }
    offset
}

#[test]
fn a_flood_ends_at_the_buffers_size_and_no_byte_is_lost() {
    for super_segments in [false, true] {
        let mut guest = Guest::with_buffer(small_buffer());
        let mut ends = Ends::new(0);
        ends.open(&mut guest, 60_000);
        let unit_bytes = if super_segments { SUPER_BYTES } else { MSS_BYTES };
        let mut sent = 0;
        let mut rounds = 0;
        while sent < 3 * MB {
            while guest.port.wants_frames() {
                let data = ends.data(sent, unit_bytes);
                let _ = match super_segments {
                    true => guest.send_super(&data, MSS_BYTES),
                    false => guest.send(&data),
                };
                sent += unit_bytes as u32;
            }
            let held_bytes = guest.port.held_bytes();
            assert!(held_bytes <= 200_000 + unit_bytes as u32 + 54, "{held_bytes}");
            // Nothing is dropped while the guest respects wants_frames(): all that it sent is held
            // or has left.
            ends.take(&mut guest);
            guest.wait_ms(1);
            let _ = guest.receive(&ends.peer_ack(ends.in_sequence, 60_000));
            rounds += 1;
        }
        assert!(rounds > 20, "{rounds}");
        ends.drain(&mut guest, 60_000);
        assert_eq!((ends.in_sequence, guest.port.held_bytes()), (sent, 0), "{super_segments}");
        assert!(guest.port.wants_frames());
    }
}

#[test]
fn a_port_that_is_still_full_after_a_release_is_not_read() {
    let mut guest = Guest::with_buffer(small_buffer());
    let mut ends = Ends::new(0);
    ends.open(&mut guest, 60_000);
    let mut sent = 0;
    while guest.port.wants_frames() {
        let _ = guest.send_super(&ends.data(sent, SUPER_BYTES), MSS_BYTES);
        sent += SUPER_BYTES as u32;
    }
    ends.take(&mut guest);
    guest.wait_ms(1);
    // One segment leaves; the last super-segment has exceeded the size by more.
    let before_bytes = guest.port.held_bytes();
    let _ = guest.receive(&ends.peer_ack(1000, 60_000));
    assert!(ends.take(&mut guest));
    assert!((200_000..before_bytes).contains(&guest.port.held_bytes()));
    assert!(!guest.port.wants_frames());
}

#[test]
fn while_one_peer_takes_nothing_the_guests_other_connections_go_on() {
    let mut guest = Guest::with_buffer(small_buffer());
    let (mut stuck, mut other) = (Ends::new(0), Ends::new(1));
    stuck.open(&mut guest, 60_000);
    other.open(&mut guest, 60_000);
    let sent = flood(&mut guest, &stuck, 0);
    stuck.take(&mut guest);
    let _ = guest.receive(&stuck.peer_ack(stuck.in_sequence, 0));
    assert!(!guest.port.wants_frames());
    // As at a full ring: the guest waits, and then is read again.
    guest.wait_ms(199);
    assert!(!guest.port.wants_frames());
    let deadline_ns = guest.port.next_deadline_ns().expect("the end of the wait");
    assert!(deadline_ns <= guest.now_ns + 1_000_000);
    guest.wait_ms(1);
    assert!(guest.port.wants_frames());
    for offset in (sent..sent + 50_000).step_by(MSS_BYTES) {
        let _ = guest.send(&stuck.data(offset, MSS_BYTES));
    }
    assert!(guest.port.held_bytes() <= 200_000 + MTU_FRAME_BYTES + BESIDE_A_FRAME_BYTES);
    // The other connection has its window, ACK by ACK.
    let mut offset = 0;
    for _ in 0..100 {
        for _ in 0..10 {
            assert!(guest.port.wants_frames());
            let verdict = guest.send(&other.data(offset, MSS_BYTES));
            assert_eq!(verdict, Verdict::Pass, "{offset}");
            offset += MSS_BYTES as u32;
        }
        other.take(&mut guest);
        guest.wait_ms(1);
        let _ = guest.receive(&other.peer_ack(other.in_sequence, 60_000));
    }
    assert_eq!(other.in_sequence, offset);
    assert!(!stuck.take(&mut guest), "beyond a shut window");
}

/// The guest retransmits by its timer what the port dropped while it was full.
#[test]
fn what_a_full_port_dropped_arrives_when_it_is_sent_again() {
    for window_bytes in [1024, 3000, 60_000] {
        let mut guest = Guest::with_buffer(small_buffer());
        let mut ends = Ends::new(0);
        ends.open(&mut guest, 0);
        let held = flood(&mut guest, &ends, 0);
        guest.wait_ms(1000);
        // All of this is dropped, for nothing leaves.
        for offset in (held..held + 20_000).step_by(MSS_BYTES) {
            let _ = guest.send(&ends.data(offset, MSS_BYTES));
        }
        // As room appears, what follows is held; it leaves a hole.
        let _ = guest.receive(&ends.peer_ack(0, window_bytes));
        ends.take(&mut guest);
        let _ = guest.receive(&ends.peer_ack(ends.in_sequence, window_bytes));
        let mut sent = held + 20_000;
        while sent < held + 40_000 {
            let _ = guest.send(&ends.data(sent, MSS_BYTES));
            sent += MSS_BYTES as u32;
        }
        ends.drain(&mut guest, window_bytes);
        // The guest's retransmission timer: from its snd_una, as much as a window.
        for _ in 0..200 {
            guest.wait_ms(1000);
            for offset in (ends.in_sequence..sent).step_by(MSS_BYTES).take(10) {
                let bytes = MSS_BYTES.min((sent - offset) as usize);
                let _ = guest.send(&ends.data(offset, bytes));
            }
            ends.drain(&mut guest, window_bytes);
            // An answer to a probe shows the window again.
            let _ = guest.receive(&ends.peer_ack(ends.in_sequence, window_bytes));
            ends.drain(&mut guest, window_bytes);
        }
        assert_eq!((ends.in_sequence, guest.port.held_bytes()), (sent, 0), "{window_bytes}");
    }
}

/// The bytes of a super-segment leave as whole segments, with the flags that segmentation gives.
#[test]
fn a_super_segment_leaves_in_parts() {
    let mut guest = Guest::new();
    let mut ends = Ends::new(0);
    ends.open(&mut guest, 60_000);
    let mut data = ends.data(0, 30_500);
    data.flags |= PSH | FIN;
    assert_eq!(guest.send_super(&data, MSS_BYTES), Verdict::Held);
    let mut ends_at = Vec::new();
    while !guest.left.is_empty() {
        let count = guest.left.len();
        for (number, frame) in guest.left.iter().enumerate() {
            let segment = Segment::read(&frame.bytes).expect("TCP");
            let last = segment.payload_end() == ends.seq(30_500);
            assert_eq!(segment.has(FIN), last);
            assert!(last || segment.payload.len() % MSS_BYTES == 0);
            assert_eq!(frame.gso_size > 0, segment.payload.len() > MSS_BYTES);
            assert!(number + 1 < count || segment.has(PSH) || !last);
            ends_at.push(segment.payload_end().wrapping_sub(ends.seq(0)));
        }
        ends.take(&mut guest);
        guest.wait_ms(1);
        let ack = ends.peer_ack(ends.in_sequence + u32::from(ends.finished), 60_000);
        let _ = guest.receive(&ack);
    }
    assert!(ends_at.contains(&INITIAL_WINDOW_BYTES), "{ends_at:?}");
    assert_eq!((ends.in_sequence, ends.finished), (30_500, true));
    assert_eq!(guest.port.held_bytes(), 0);
}

//! A guest that ignores the window it is shown.

use vcc_domain::{BufferSpec, Verdict};
use vcc_engine::{BufferPolicy, sys};
use vcc_frames::Packet;
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

fn refused(guest: &Guest) -> u64 {
    guest.port.counters().get(sys::COUNT_NO_BUFFER)
}

/// Sends whole segments from `offset` until the port has no room for one; returns its offset.
fn flood(guest: &mut Guest, ends: &Ends, mut offset: u32) -> u32 {
    let before = refused(guest);
    loop {
        let _ = guest.send(&ends.data(offset, MSS_BYTES));
        if refused(guest) > before {
            return offset;
        }
        offset += MSS_BYTES as u32;
        assert!(offset < 100 * MB, "the buffer is full at some time");
    }
}

/// The bytes that the guest may send beyond `sent`.
fn room_bytes(guest: &Guest, ends: &Ends, sent: u32) -> u32 {
    let edge = ends.flow(guest).right_edge.wrapping_sub(ends.seq(0));
    edge.saturating_sub(sent)
}

#[test]
fn a_guest_within_its_window_fills_its_share_and_loses_nothing() {
    for super_segments in [false, true] {
        let mut guest = Guest::with_buffer(small_buffer());
        let mut ends = Ends::new(0);
        ends.open(&mut guest, 60_000);
        let unit_bytes = if super_segments { SUPER_BYTES } else { MSS_BYTES };
        let (mut sent, mut rounds, mut most_bytes) = (0, 0, 0);
        while sent < 3 * MB {
            loop {
                let bytes = unit_bytes.min(room_bytes(&guest, &ends, sent) as usize);
                if bytes < MSS_BYTES {
                    break;
                }
                let data = ends.data(sent, bytes);
                let _ = match super_segments {
                    true => guest.send_super(&data, MSS_BYTES),
                    false => guest.send(&data),
                };
                sent += bytes as u32;
            }
            let held_bytes = guest.port.held_bytes();
            most_bytes = held_bytes.max(most_bytes);
            // Half of the buffer is for flows to come.
            assert!(held_bytes <= 100_000, "{held_bytes}");
            assert!(guest.port.granted_bytes() + held_bytes <= 100_000 + BESIDE_A_FRAME_BYTES);
            ends.take(&mut guest);
            guest.wait_ms(1);
            let _ = guest.receive(&ends.peer_ack(ends.in_sequence, 60_000));
            rounds += 1;
        }
        assert!(rounds > 20 && most_bytes > 80_000, "{rounds}, {most_bytes}");
        ends.drain(&mut guest, 60_000);
        assert_eq!((ends.in_sequence, guest.port.held_bytes()), (sent, 0), "{super_segments}");
        assert_eq!(refused(&guest), 0);
    }
}

#[test]
fn of_a_super_segment_beyond_the_share_what_fits_is_held() {
    let mut guest = Guest::with_buffer(small_buffer());
    let mut ends = Ends::new(0);
    ends.open(&mut guest, 60_000);
    for number in 0..4 {
        let _ = guest.send_super(&ends.data(number * SUPER_BYTES as u32, SUPER_BYTES), MSS_BYTES);
    }
    // The rest of one, and those behind that gap, are the guest's to send again: its share is full.
    assert!(refused(&guest) >= 1);
    let held_bytes = guest.port.held_bytes();
    assert!((100_000 - MTU_FRAME_BYTES..=100_000).contains(&held_bytes), "{held_bytes}");
    ends.drain(&mut guest, 60_000);
    let whole_segments = ends.in_sequence % MSS_BYTES as u32 == 0;
    assert!(whole_segments && ends.in_sequence > 100_000, "{}", ends.in_sequence);
}

#[test]
fn while_one_peer_takes_nothing_the_guests_other_connections_go_on() {
    let mut guest = Guest::with_buffer(small_buffer());
    let (mut stuck, mut other) = (Ends::new(0), Ends::new(1));
    stuck.open(&mut guest, 60_000);
    other.open(&mut guest, 60_000);
    let granted_bytes = room_bytes(&guest, &other, 0);
    let sent = flood(&mut guest, &stuck, 0);
    stuck.take(&mut guest);
    let _ = guest.receive(&stuck.peer_ack(stuck.in_sequence, 0));
    for offset in (sent..sent + 50_000).step_by(MSS_BYTES) {
        let _ = guest.send(&stuck.data(offset, MSS_BYTES));
    }
    assert!(guest.port.held_bytes() <= 100_000);
    // The other connection has what it was granted, and its window, ACK by ACK.
    let before = refused(&guest);
    let mut offset = 0;
    while offset + MSS_BYTES as u32 <= granted_bytes {
        let _ = guest.send(&other.data(offset, MSS_BYTES));
        offset += MSS_BYTES as u32;
    }
    other.drain(&mut guest, 60_000);
    for _ in 0..100 {
        for _ in 0..10 {
            let verdict = guest.send(&other.data(offset, MSS_BYTES));
            assert_eq!(verdict, Verdict::Pass, "{offset}");
            offset += MSS_BYTES as u32;
        }
        other.take(&mut guest);
        guest.wait_ms(1);
        let _ = guest.receive(&other.peer_ack(other.in_sequence, 60_000));
    }
    assert_eq!((other.in_sequence, refused(&guest)), (offset, before));
    assert!(!stuck.take(&mut guest), "beyond a shut window");
}

/// A grant that a connection does not use is another one's after a while.
#[test]
fn an_idle_connection_gives_back_what_it_was_granted() {
    let mut guest = Guest::with_buffer(small_buffer());
    let all = [0, 1, 2].map(Ends::new);
    all[0].open(&mut guest, 60_000);
    let first_bytes = guest.port.granted_bytes();
    assert!(first_bytes > 90_000, "{first_bytes}");
    all[1].open(&mut guest, 60_000);
    let second_bytes = guest.port.granted_bytes() - first_bytes;
    assert!(second_bytes < 51_000, "{second_bytes}");
    guest.wait_ms(u64::from(sys::GRANT_IDLE_MS) - 1);
    assert_eq!(guest.port.granted_bytes(), first_bytes + second_bytes);
    guest.wait_ms(1);
    assert_eq!(guest.port.granted_bytes(), 0);
    all[2].open(&mut guest, 60_000);
    assert_eq!(guest.port.granted_bytes(), first_bytes);
    // The one that gave its grant back may have what is left, and is shown it again.
    let offset = flood(&mut guest, &all[0], 0);
    assert!(offset > 40_000, "{offset}");
    assert!(guest.port.held_bytes() + guest.port.granted_bytes() <= 200_000);
    for ends in &all {
        let reset = Packet { flags: RST | ACK, ..ends.peer_ack(0, 60_000) };
        let _ = guest.receive(&reset);
    }
    assert_eq!((guest.port.held_bytes(), guest.port.granted_bytes()), (0, 0));
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

//! What a guest does with the rest of its window that is less than a segment, and where its next
//! windows end.

use crate::common::*;
use vcc_engine::{Params, sys};

const SEG_BYTES: u32 = 1412;
const UNIT_BYTES: u32 = 32;
const WINDOW_SEGS: u32 = 10;

/// A listener without timestamps, whose segments are no multiple of the unit, and a window of ten of
/// them, all in flight. Returns the rest behind them, too.
fn filled() -> (Conn, u32) {
    let answer = linux_syn().mss(SEG_BYTES as u16).without(sys::OPT_TIMESTAMPS);
    let mut conn = Conn::accepted(Params::default(), 5, linux_syn(), answer);
    assert_eq!((conn.mss(), 1 << conn.flow.wscale_shown), (SEG_BYTES, UNIT_BYTES));
    // Congestion avoidance: what is acknowledged makes room, and no more.
    conn.flow.0.cc.ssthresh_segs = WINDOW_SEGS;
    conn.peer_ack(0);
    conn.send_segs(0, WINDOW_SEGS);
    let rest_bytes = room_bytes(&conn);
    assert!((1..UNIT_BYTES).contains(&rest_bytes), "{rest_bytes}");
    (conn, rest_bytes)
}

/// What the guest may send behind its flight.
fn room_bytes(conn: &Conn) -> u32 {
    conn.flow.right_edge.wrapping_sub(conn.flow.snd_nxt)
}

/// A super-segment.
fn send_burst(conn: &mut Conn, offset: u32, payload_bytes: u32) {
    conn.guest_sends(conn.data(offset, payload_bytes).cut(SEG_BYTES));
}

fn fills(conn: &Conn) -> u32 {
    conn.flow.fills.into()
}

/// Does the window end at the border of a segment, or less than a unit behind it? So many segments
/// fit.
fn is_behind(conn: &Conn, segs: u32) -> bool {
    room_bytes(conn).wrapping_sub(segs * SEG_BYTES) < UNIT_BYTES
}

/// Does it end at the border, or less than a unit before it?
fn is_before(conn: &Conn, segs: u32) -> bool {
    (segs * SEG_BYTES).wrapping_sub(room_bytes(conn)) < UNIT_BYTES
}

#[test]
fn to_a_guest_that_leaves_the_rest_windows_are_rounded_up() {
    let (mut conn, _) = filled();
    conn.peer_ack_segs(2);
    assert_eq!(fills(&conn), sys::FILLS_SEGMENTS);
    assert!(is_behind(&conn, 2), "{}", room_bytes(&conn));
}

/// Minshall's variant of Nagle's algorithm: one part of a segment in flight.
#[test]
fn behind_a_runt_the_window_ends_before_a_border() {
    let (mut conn, rest_bytes) = filled();
    conn.send(WINDOW_SEGS * SEG_BYTES, rest_bytes);
    assert_eq!(fills(&conn), sys::FILLS_ONCE);
    // While the runt is in flight, the guest cannot send another.
    conn.peer_ack_segs(2);
    assert!(is_behind(&conn, 2), "{}", room_bytes(&conn));
    send_burst(&mut conn, WINDOW_SEGS * SEG_BYTES + rest_bytes, 2 * SEG_BYTES);
    conn.peer_ack(WINDOW_SEGS * SEG_BYTES + rest_bytes);
    let room_segs = conn.cwnd() - 2;
    assert_ne!(room_bytes(&conn) % SEG_BYTES, 0, "not at one");
    assert!(is_before(&conn, room_segs), "{}", room_bytes(&conn));
}

/// TCP_NODELAY.
#[test]
fn a_guest_that_sends_every_runt_never_has_room_for_one() {
    let (mut conn, rest_bytes) = filled();
    conn.send(WINDOW_SEGS * SEG_BYTES, rest_bytes);
    conn.peer_ack_segs(2);
    let mut next = WINDOW_SEGS * SEG_BYTES + rest_bytes;
    send_burst(&mut conn, next, 2 * SEG_BYTES - UNIT_BYTES / 2);
    next += 2 * SEG_BYTES - UNIT_BYTES / 2;
    // What is left is a runt, and parts of segments are in flight.
    let rest_bytes = room_bytes(&conn);
    assert!((1..UNIT_BYTES).contains(&rest_bytes), "{rest_bytes}");
    conn.send(next, rest_bytes);
    next += rest_bytes;
    assert_eq!(fills(&conn), sys::FILLS_ALWAYS);
    for acked_segs in [4, 6, 8] {
        conn.peer_ack_segs(acked_segs);
        let room = room_bytes(&conn);
        // The runts that are in flight take a little of it.
        let two = 2 * SEG_BYTES - 3 * UNIT_BYTES..=2 * SEG_BYTES;
        assert!(two.contains(&room), "{room} after {acked_segs}");
        send_burst(&mut conn, next, room);
        next += room;
    }
}

/// Linux never sends less than a segment by itself, so one alone always has a rest behind it.
#[test]
fn one_segment_waits_for_the_next() {
    let (mut conn, rest_bytes) = filled();
    let next = WINDOW_SEGS * SEG_BYTES + rest_bytes;
    conn.send(WINDOW_SEGS * SEG_BYTES, rest_bytes);
    conn.peer_ack(next);
    let room = room_bytes(&conn);
    send_burst(&mut conn, next, room);
    conn.flow.0.fills = sys::FILLS_ALWAYS as u8;
    conn.peer_ack(next + SEG_BYTES);
    assert!(is_behind(&conn, 0), "{}", room_bytes(&conn));
    conn.peer_ack(next + 2 * SEG_BYTES);
    assert!(is_before(&conn, 2), "{}", room_bytes(&conn));
}

/// With three in flight the peer may delay the ACK of the last.
#[test]
fn one_segment_waits_for_none_if_few_are_in_flight() {
    let (mut conn, rest_bytes) = filled();
    conn.send(WINDOW_SEGS * SEG_BYTES, rest_bytes);
    conn.flow.0.cc.cwnd_segs = 3;
    conn.peer_ack_segs(WINDOW_SEGS - 1);
    assert!(room_bytes(&conn) >= SEG_BYTES, "{}", room_bytes(&conn));
}

#[test]
fn a_guest_that_leaves_a_part_is_shown_whole_segments_again() {
    let (mut conn, rest_bytes) = filled();
    let next = WINDOW_SEGS * SEG_BYTES + rest_bytes;
    conn.send(WINDOW_SEGS * SEG_BYTES, rest_bytes);
    conn.peer_ack(next);
    assert!(is_before(&conn, WINDOW_SEGS + 1), "{}", room_bytes(&conn));
    for number in 0..WINDOW_SEGS {
        conn.send(next + number * SEG_BYTES, SEG_BYTES);
    }
    conn.peer_ack(next + 2 * SEG_BYTES);
    assert_eq!(fills(&conn), sys::FILLS_SEGMENTS);
    assert!(is_behind(&conn, 3), "{}", room_bytes(&conn));
}

/// Its segments are a multiple of the unit, so it has no rest, and the end of a write is no runt.
#[test]
fn where_windows_are_exact_a_short_segment_tells_nothing() {
    let mut conn = Conn::established(Params::default(), 5);
    conn.peer_ack(0);
    conn.send_segs(0, WINDOW_SEGS - 1);
    let room = room_bytes(&conn);
    conn.send((WINDOW_SEGS - 1) * conn.mss(), room - 8);
    conn.send(WINDOW_SEGS * conn.mss() - 8, 8);
    assert_eq!(room_bytes(&conn), 0);
    assert_eq!(fills(&conn), sys::FILLS_SEGMENTS);
}

/// smoltcp without Nagle's algorithm; Linux has no such runts.
#[test]
fn a_guest_that_sends_a_runt_alone_has_windows_that_are_rounded_up() {
    let (mut conn, rest_bytes) = filled();
    conn.flow.0.fills = sys::FILLS_ALWAYS as u8;
    conn.flow.0.segs_since_ack = 0;
    conn.send(WINDOW_SEGS * SEG_BYTES, rest_bytes);
    assert_eq!(fills(&conn), sys::FILLS_ALONE);
    conn.peer_ack_segs(2);
    assert!(is_behind(&conn, 2), "{}", room_bytes(&conn));
}

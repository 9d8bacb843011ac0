//! What a guest has not answered yet.

use vcc_engine::{DelayedBy, FlowState};

use crate::common::*;

const PAUSE_US: u64 = 2_000_000;

fn transparent() -> Conn {
    Conn::established(underlay("transparent"), 5)
}

/// The guest owes an ACK of two full segments.
fn owes_ack() -> Conn {
    let mut conn = transparent();
    let mss_bytes = conn.mss();
    for number in 0..2 {
        let segment = conn.ack(0).seq(conn.peer_seq(number * mss_bytes)).len(mss_bytes);
        conn.guest_gets(segment);
    }
    conn
}

/// The guest owes data: an ACK admits what it has ready.
fn owes_data() -> Conn {
    let mut conn = transparent();
    conn.send_segs(0, 10);
    conn.wait_us(200).peer_ack_segs(2);
    conn
}

fn now(conn: &Conn) -> FlowState {
    conn.flow.with_open_wait(&conn.params, conn.now_us)
}

fn figures(state: &FlowState) -> (Option<u32>, Option<u32>) {
    (state.guest_delay_us(), state.guest_worst_us())
}

#[test]
fn a_guest_that_is_silent_now_is_the_reason() {
    for mut conn in [owes_ack(), owes_data()] {
        (conn.flow.0.guest_us64, conn.flow.0.guest_worst_us) = (100 * 64, 300);
        assert_eq!(figures(&now(&conn)), (Some(100), Some(300)));
        assert_ne!(now(&conn).delayed_by(), Some(DelayedBy::Guest));
        conn.wait_us(PAUSE_US);
        let pause_us = Some(PAUSE_US as u32);
        assert_eq!(figures(&now(&conn)), (pause_us, pause_us));
        assert_eq!(now(&conn).delayed_by(), Some(DelayedBy::Guest));
    }
}

#[test]
fn an_open_wait_weighs_what_its_answer_would() {
    let mut conn = owes_data();
    (conn.flow.0.guest_us64, conn.flow.0.guest_worst_us) = (100 * 64, 300);
    conn.wait_us(31_000);
    let open = now(&conn);
    conn.send(10 * conn.mss(), conn.mss());
    assert_eq!(figures(&open), figures(&conn.flow));
    assert_eq!(figures(&open), (Some(7408), Some(31_000)));
}

#[test]
fn a_wait_that_is_not_long_yet_improves_no_figure() {
    for mut conn in [owes_ack(), owes_data()] {
        conn.wait_us(900);
        assert_eq!(figures(&now(&conn)), (None, None));
        conn.flow.0.guest_us64 = 31_000 * 64;
        conn.wait_us(20_000);
        assert_eq!(figures(&now(&conn)), (Some(31_000), None));
    }
}

#[test]
fn an_ack_may_be_delayed_for_half_a_second() {
    let mut conn = owes_ack();
    assert_eq!(figures(&now(conn.wait_us(500_000))), (None, None));
    assert_eq!(figures(&now(conn.wait_us(1))), (Some(500_001), Some(500_001)));
    // One that a single segment asks for may be left out for ever.
    let mut conn = transparent();
    conn.guest_gets(conn.ack(0).len(100));
    assert_eq!(figures(&now(conn.wait_us(PAUSE_US))), (None, None));
}

#[test]
fn where_the_wait_may_not_be_the_guests_there_is_no_figure() {
    let change: [fn(&mut Conn); 7] = [
        |conn| _ = conn.guest_gets(conn.ack(0).seq(conn.flow.rcv_nxt).rst()),
        |conn| {
            _ = conn.guest_gets(conn.ack(0).seq(conn.flow.rcv_nxt).ack(conn.flow.snd_una).win(0))
        },
        |conn| conn.params.0.delays = 0,
        // Another CPU's clock is behind.
        |conn| conn.now_us -= PAUSE_US + 500,
        |conn| _ = conn.wait_us(30_000_000),
        // The clock of microseconds has wrapped, and that of milliseconds has not.
        |conn| _ = conn.wait_us(1 << 31),
        |conn| _ = conn.wait_us(1 << 32),
    ];
    for (number, change) in change.into_iter().enumerate() {
        for mut conn in [owes_ack(), owes_data()] {
            conn.wait_us(PAUSE_US);
            assert_ne!(figures(&now(&conn)), (None, None));
            change(&mut conn);
            assert_eq!(figures(&now(&conn)), (None, None), "{number}");
        }
    }
}

//! The two parts of a round trip: the fabric's delay and the guest's.

use crate::common::*;
use vcc_engine::{Action, Params};

const STALL_US: u64 = 31_000;

fn transparent() -> Conn {
    Conn::established(underlay("transparent"), 5)
}

/// The peer's data from `offset` on; the guest's window goes up with what it acknowledges.
fn peer_sends(conn: &mut Conn, offset: u32, payload_bytes: u32) -> Action {
    let segment = conn.ack(0).seq(conn.peer_seq(offset)).ack(conn.flow.snd_nxt);
    conn.guest_gets(segment.len(payload_bytes))
}

/// Two full segments of the peer, which the guest acknowledges after `us`.
fn pair(conn: &mut Conn, number: u32, us: u64) -> Action {
    let mss_bytes = conn.mss();
    let from = 2 * number * mss_bytes;
    peer_sends(conn, from, mss_bytes);
    peer_sends(conn, from + mss_bytes, mss_bytes);
    conn.wait_us(us).guest_acks(from + 2 * mss_bytes)
}

#[test]
fn a_second_full_segment_is_answered_at_once() {
    for isn in ISNS {
        // Whatever the flow's treatment.
        for params in [Params::default(), underlay("transparent")] {
            let mut conn = Conn::established(params, isn);
            assert_eq!(pair(&mut conn, 0, STALL_US).guest_us, STALL_US as u32);
            assert_eq!(conn.flow.guest_us64, STALL_US as u32 * 64);
            for number in 1..100 {
                assert_eq!(pair(&mut conn, number, 100).guest_us, 100);
            }
            // By time and not by number: 10 ms of quick answers next to a stall of 31 ms.
            let smoothed_us = conn.flow.guest_us64 / 64;
            assert!((28_000..29_500).contains(&smoothed_us), "{smoothed_us}");
            assert_eq!(conn.flow.guest_worst_us, STALL_US as u32);
            assert_eq!((conn.flow.fabric_us64, conn.flow.fabric_worst_us), (0, 0));
        }
    }
}

#[test]
fn quick_answers_outweigh_a_stall_in_time() {
    let mut conn = transparent();
    pair(&mut conn, 0, STALL_US);
    for number in 1..20_000 {
        pair(&mut conn, number, 150);
    }
    assert_eq!(conn.flow.guest_us64 / 64, 150);
    assert_eq!(conn.flow.guest_worst_us, STALL_US as u32);
    pair(&mut conn, 20_000, 20_000_000);
    assert_eq!(conn.flow.guest_us64 / 64, 20_000_000);
}

#[test]
fn a_delayed_ack_is_no_stall() {
    let mut conn = transparent();
    peer_sends(&mut conn, 0, 100);
    assert_eq!(conn.wait_us(40_000).guest_acks(100).guest_us, 0);
    // It did not come late.
    peer_sends(&mut conn, 100, 100);
    assert_eq!(conn.wait_us(300).guest_acks(200).guest_us, 300);
}

#[test]
fn a_server_responds_and_a_client_asks_again_when_it_likes() {
    let mut server =
        Conn::accepted(underlay("transparent"), 5, linux_syn(), linux_syn().room(ROOM_BYTES));
    server.guest_acks(0);
    peer_sends(&mut server, 0, 100);
    let response = server.data(0, 500).ack(server.peer_seq(100));
    assert_eq!(server.wait_us(STALL_US).guest_sends(response).guest_us, STALL_US as u32);
    // The client's next question acknowledges the response.
    server.wait_us(STALL_US);
    let question = server.ack(500).seq(server.peer_seq(100)).len(100);
    assert_eq!(server.guest_gets(question).fabric_us, 0);
    let mut client = transparent();
    client.send(0, 100);
    client.wait_us(STALL_US);
    let response = client.ack(100).len(500);
    assert_eq!(client.guest_gets(response).fabric_us, STALL_US as u32);
    let question = client.data(100, 100).ack(client.peer_seq(500));
    assert_eq!(client.wait_us(STALL_US).guest_sends(question).guest_us, 0);
}

#[test]
fn what_the_application_does_not_read_is_acknowledged_late() {
    // Linux: __tcp_ack_snd_check() waits for tcp_recvmsg() unless the window's edge advances.
    let mut conn = transparent();
    pair(&mut conn, 0, 100);
    let mss_bytes = conn.mss();
    for segs in [2, 3] {
        peer_sends(&mut conn, segs * mss_bytes, mss_bytes);
    }
    let edge = conn.flow.rcv_edge;
    let ack = conn.peer_seq(4 * mss_bytes);
    let window = (edge.wrapping_sub(ack) >> conn.flow.wscale_guest) as u16;
    let late = seg().seq(conn.flow.snd_nxt).ack(ack).win(window);
    assert_eq!(conn.wait_us(STALL_US).guest_sends(late).guest_us, 0);
}

#[test]
fn a_hole_is_the_peers_to_fill() {
    let mut conn = transparent();
    let mss_bytes = conn.mss();
    pair(&mut conn, 0, 100);
    // Segments 3 and 4 overtake segment 2.
    peer_sends(&mut conn, 3 * mss_bytes, mss_bytes);
    peer_sends(&mut conn, 4 * mss_bytes, mss_bytes);
    assert_eq!(conn.wait_us(50).guest_acks(2 * mss_bytes).guest_us, 0);
    conn.wait_us(STALL_US);
    peer_sends(&mut conn, 2 * mss_bytes, mss_bytes);
    assert_eq!(conn.wait_us(70).guest_acks(5 * mss_bytes).guest_us, 70);
    assert_eq!(conn.flow.guest_worst_us, 100);
    // Lost behind the port: the guest reports a hole that the port does not see.
    peer_sends(&mut conn, 5 * mss_bytes, mss_bytes);
    peer_sends(&mut conn, 6 * mss_bytes, mss_bytes);
    conn.wait_us(50).guest_acks(5 * mss_bytes);
    assert_eq!(conn.wait_us(STALL_US).guest_acks(7 * mss_bytes).guest_us, 0);
}

#[test]
fn what_comes_out_of_order_ends_a_delayed_ack() {
    // The ACK of a single segment waits until one behind a hole comes, and then for the guest to run.
    for answer_us in [60, STALL_US] {
        let mut conn = transparent();
        let mss_bytes = conn.mss();
        peer_sends(&mut conn, 0, mss_bytes);
        conn.wait_us(4_000);
        peer_sends(&mut conn, 2 * mss_bytes, mss_bytes);
        assert_eq!(conn.wait_us(answer_us).guest_acks(mss_bytes).guest_us, answer_us as u32);
    }
}

#[test]
fn an_ack_is_answered_by_data_that_is_ready() {
    let mut conn = transparent();
    conn.send_segs(0, 10);
    assert_eq!(conn.wait_us(200).peer_ack_segs(2).fabric_us, 200);
    conn.wait_us(STALL_US);
    let answer = conn.send(10 * conn.mss(), conn.mss());
    assert_eq!(answer.guest_us, STALL_US as u32);
    // Another ACK that arrives meanwhile does not begin the wait anew.
    conn.peer_ack_segs(4);
    conn.wait_us(20_000).peer_ack_segs(6);
    conn.wait_us(10_000);
    assert_eq!(conn.send(11 * conn.mss(), conn.mss()).guest_us, 30_000);
}

#[test]
fn a_guest_without_more_to_send_is_asked_nothing() {
    let last: [fn(&Conn, Seg) -> Seg; 3] = [
        |_, segment| segment.len(100),
        |conn, segment| segment.len(conn.mss() + 100).cut(conn.mss()),
        |_, segment| segment.fin(),
    ];
    for change in last {
        let mut conn = transparent();
        conn.send_segs(0, 3);
        let segment = change(&conn, conn.data(3 * conn.mss(), conn.mss()));
        conn.guest_sends(segment);
        conn.wait_us(200).peer_ack_segs(2);
        conn.wait_us(STALL_US);
        assert_eq!(conn.send(conn.flow.snd_nxt - conn.seq(0), 1000).guest_us, 0);
    }
    // PSH only says that the guest has filled its send buffer.
    let mut conn = transparent();
    conn.send_segs(0, 3);
    conn.guest_sends(conn.data(3 * conn.mss(), conn.mss()).psh());
    conn.wait_us(200).peer_ack_segs(2);
    conn.wait_us(STALL_US);
    assert_eq!(conn.send(4 * conn.mss(), 1000).guest_us, STALL_US as u32);
}

#[test]
fn an_ack_that_admits_nothing_asks_nothing() {
    let asks: [fn(&Conn) -> Seg; 4] = [
        // The window is full, in a reduction, or the guest's own ECN reduces.
        |conn| conn.ack(2 * conn.mss()).win(((8 * conn.mss()) >> PEER_WSCALE) as u16),
        |conn| conn.ack(0),
        |conn| conn.ack(conn.mss()).sack(),
        |conn| conn.ack(conn.mss()).ece(),
    ];
    for (number, ack) in asks.into_iter().enumerate() {
        let mut conn = transparent();
        conn.send_segs(0, 10);
        let ack = ack(&conn);
        conn.wait_us(200).guest_gets(ack);
        conn.wait_us(STALL_US);
        assert_eq!(conn.send(10 * conn.mss(), conn.mss()).guest_us, 0, "{number}");
    }
}

#[test]
fn a_retransmission_may_be_a_timers() {
    // A partial ACK admits one (RFC 6582, 3.2), and a guest whose window is full waits for its RTO.
    let mut conn = transparent();
    conn.send_segs(0, 10);
    conn.wait_us(200);
    conn.guest_gets(conn.ack(2 * conn.mss()).sack());
    conn.wait_us(STALL_US);
    assert_eq!(conn.send(2 * conn.mss(), conn.mss()).guest_us, 0);
    assert_eq!(conn.send(10 * conn.mss(), conn.mss()).guest_us, 0);
    // Of what was acknowledged to it, it shows that the guest has not looked.
    let mut conn = transparent();
    conn.send_segs(0, 10);
    conn.wait_us(200);
    conn.guest_gets(conn.ack(2 * conn.mss()));
    conn.wait_us(STALL_US);
    assert_eq!(conn.send(0, conn.mss()).guest_us, STALL_US as u32);
}

#[test]
fn a_delayed_ack_that_the_guests_next_data_ends_is_no_sample() {
    // The peer delays the ACK of the odd segment. The guest is not running, then sends the next ones,
    // of which the first has both acknowledged.
    let mut conn = transparent();
    conn.send_segs(0, 2);
    assert_eq!(conn.wait_us(200).peer_ack_segs(2).fabric_us, 200);
    conn.send_segs(2, 3);
    conn.wait_us(18_000).send_segs(3, 5);
    assert_eq!(conn.wait_us(200).peer_ack_segs(4).fabric_us, 0);
    assert_eq!(conn.flow.fabric_worst_us, 200);
    // On a long path the guest keeps sending meanwhile, and the ACK of what was sent with the timed
    // segment is one.
    let mut conn = transparent();
    conn.send_segs(0, 2);
    conn.wait_us(40_000).send_segs(2, 4);
    assert_eq!(conn.wait_us(40_000).peer_ack_segs(2).fabric_us, 80_000);
    conn.send_segs(4, 6);
    assert_eq!(conn.wait_us(40_000).peer_ack_segs(4).fabric_us, 0);
    assert_eq!(conn.wait_us(40_000).peer_ack_segs(6).fabric_us, 80_000);
}

#[test]
fn what_was_measured_ends_with_the_measurement() {
    let mut conn = transparent();
    conn.send_segs(0, 2);
    assert_eq!(conn.wait_us(200).peer_ack_segs(2).fabric_us, 200);
    assert_eq!(pair(&mut conn, 0, STALL_US).guest_us, STALL_US as u32);
    conn.params.0.delays = 0;
    assert_eq!(pair(&mut conn, 1, STALL_US).guest_us, 0);
    conn.send_segs(2, 2);
    assert_eq!(conn.wait_us(200).peer_ack_segs(4).fabric_us, 0);
    assert_eq!((conn.flow.delayed_by(), conn.flow.waits), (None, 0));
    assert_eq!((conn.flow.guest_worst_us(), conn.flow.fabric_worst_us()), (None, None));
    conn.params.0.delays = 1;
    assert_eq!(pair(&mut conn, 2, STALL_US).guest_us, STALL_US as u32);
}

#[test]
fn the_peers_delayed_ack_is_not_the_fabrics() {
    let mut conn = transparent();
    conn.send_segs(0, 2);
    assert_eq!(conn.wait_us(200).peer_ack_segs(2).fabric_us, 200);
    conn.send_segs(2, 3);
    assert_eq!(conn.wait_us(40_000).peer_ack_segs(3).fabric_us, 0);
    // The RTO covers it all the same (RFC 6298).
    assert!(conn.flow.srtt_us8 / 8 > 5000);
    assert_eq!((conn.flow.fabric_us64 / 64, conn.flow.fabric_worst_us), (200, 200));
    // A long path whose first ACK is of one segment.
    let mut conn = transparent();
    conn.send_segs(0, 2);
    assert_eq!(conn.wait_us(80_000).peer_ack_segs(2).fabric_us, 80_000);
    conn.send_segs(2, 3);
    assert_eq!(conn.wait_us(81_000).peer_ack_segs(3).fabric_us, 81_000);
}

#[test]
fn a_peer_that_acknowledges_each_segment_delays_none() {
    let mut conn = transparent();
    conn.send_segs(0, 4);
    assert_eq!(conn.wait_us(20_000).peer_ack_segs(1).fabric_us, 20_000);
    // The last one may be delayed, and so may one whose next has been lost.
    let mut conn = transparent();
    conn.send_segs(0, 1);
    assert_eq!(conn.wait_us(40_000).peer_ack_segs(1).fabric_us, 0);
    conn.send_segs(1, 4);
    let ack = conn.ack(2 * conn.mss()).sack();
    assert_eq!(conn.wait_us(40_000).guest_gets(ack).fabric_us, 0);
    // Its SACK blocks may be lost, too.
    let mut conn = transparent();
    for segs in 0..8 {
        conn.send_segs(2 * segs, 2 * segs + 2);
        conn.wait_us(200).peer_ack_segs(2 * segs + 2);
    }
    conn.send_segs(16, 20);
    assert_eq!(conn.wait_us(40_000).peer_ack_segs(17).fabric_us, 0);
    // What was sent later may still be on its way.
    let mut conn = transparent();
    conn.send_segs(0, 1);
    conn.wait_us(18_000).send_segs(1, 4);
    assert_eq!(conn.wait_us(22_000).peer_ack_segs(1).fabric_us, 0);
}

#[test]
fn a_retransmission_of_what_was_acknowledged_is_needless() {
    let mut conn = transparent();
    conn.send_segs(0, 4);
    conn.wait_us(200).peer_ack_segs(2);
    conn.wait_us(STALL_US).send_segs(0, 1);
    assert_eq!(conn.flow.needless, 1);
    // One that the peer may lack is not.
    conn.send_segs(2, 3);
    assert_eq!(conn.flow.needless, 1);
    // Nor is a keep-alive, with a byte or without.
    conn.peer_ack_segs(4);
    for payload_bytes in [0, 1] {
        conn.guest_sends(conn.data(4 * conn.mss() - 1, payload_bytes));
    }
    assert_eq!(conn.flow.needless, 1);
    // Nor a probe of a closed window, as netstack sends it with data outstanding.
    conn.send_segs(4, 6);
    conn.guest_gets(conn.ack(5 * conn.mss()).win(0));
    for _ in 0..3 {
        conn.wait_us(STALL_US);
        conn.guest_sends(conn.data(5 * conn.mss() - 1, 1));
    }
    assert_eq!(conn.flow.needless, 1);
}

#[test]
fn figures_at_their_maxima_stay_there() {
    const LONGEST_US: u64 = 30_000_000;
    let mut conn = transparent();
    conn.flow.0.waits = u16::MAX;
    conn.send_segs(0, 2);
    assert_eq!(conn.wait_us(LONGEST_US).peer_ack_segs(2).fabric_us, LONGEST_US as u32);
    for number in 0..2 {
        assert_eq!(pair(&mut conn, number, LONGEST_US).guest_us, LONGEST_US as u32);
    }
    assert_eq!(conn.flow.waits, u16::MAX);
    let worst_us = Some(LONGEST_US as u32);
    assert_eq!((conn.flow.guest_delay_us(), conn.flow.guest_worst_us()), (worst_us, worst_us));
    assert_eq!((conn.flow.fabric_delay_us(), conn.flow.fabric_worst_us()), (worst_us, worst_us));
}

#[test]
fn figures_are_missing_rather_than_wrong() {
    // A clock that stands still, one that runs backwards by the skew of CPUs, one byte an hour.
    for us in [0, 3_600_000_000] {
        let mut conn = transparent();
        assert_eq!(pair(&mut conn, 0, us).guest_us, 0, "{us}");
        conn.send_segs(0, 2);
        assert_eq!(conn.wait_us(us).peer_ack_segs(2).fabric_us, 0, "{us}");
        assert_eq!((conn.flow.guest_us64, conn.flow.fabric_us64), (0, 0));
        assert_eq!((conn.flow.guest_worst_us, conn.flow.fabric_worst_us), (0, 0));
    }
    let mut conn = transparent();
    let mss_bytes = conn.mss();
    peer_sends(&mut conn, 0, mss_bytes);
    peer_sends(&mut conn, mss_bytes, mss_bytes);
    conn.now_us -= 500;
    assert_eq!(conn.guest_acks(2 * mss_bytes).guest_us, 0);
}

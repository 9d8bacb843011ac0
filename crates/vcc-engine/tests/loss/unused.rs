//! Idle periods and unused windows (RFC 5681, 4.1; RFC 7661).

use super::*;

#[test]
fn a_clock_slightly_behind_is_no_idle_period() {
    let mut conn = in_flight(5, 20);
    conn.peer_ack_segs(21);
    let cwnd_segs = conn.cwnd();
    assert!(cwnd_segs > 10);
    conn.now_us -= 3;
    conn.send_segs(21, 22);
    assert_eq!(conn.cwnd(), cwnd_segs);
}

#[test]
fn an_idle_guest_restarts_from_the_initial_window() {
    // RFC 5681, 4.1.
    for isn in ISNS {
        let mut conn = in_flight(isn, 20);
        conn.wait_us(10_000).peer_ack_segs(21);
        let cwnd_segs = conn.cwnd();
        assert!(cwnd_segs > 10);
        conn.wait_us(100_000).send_segs(21, 22);
        assert_eq!(conn.cwnd(), cwnd_segs, "not idle for an RTO");
        conn.wait_us(10_000).peer_ack_segs(22);
        conn.wait_us(400_000).guest_acks(0);
        assert_eq!(conn.cwnd(), cwnd_segs, "an ACK of the guest sends no data");
        let ssthresh_segs = conn.flow.cc.ssthresh_segs;
        conn.send_segs(22, 23);
        assert_eq!((conn.cwnd(), conn.flow.cc.ssthresh_segs), (10, ssthresh_segs));
    }
}

#[test]
fn an_idle_guest_never_gains() {
    let mut conn = in_flight(5, 4);
    conn.guest_gets(conn.ack(2 * conn.mss()).ece());
    conn.send_segs(5, 6);
    conn.wait_us(10_000).peer_ack_segs(6);
    let cwnd_segs = conn.cwnd();
    assert!(cwnd_segs < 10);
    conn.wait_us(5_000_000).send_segs(6, 7);
    assert_eq!(conn.cwnd(), cwnd_segs);
}

/// 40 segments, all acknowledged and the reduction that `signal` began not ended by any.
fn reduced_and_acknowledged(prr: bool, signal: impl Fn(&mut Conn)) -> Conn {
    let mut conn = in_flight(5, 40);
    conn.params.0.prr = prr.into();
    conn.flow.0.cc.cwnd_segs = 40;
    signal(&mut conn);
    assert!(conn.flow.cc.ssthresh_segs == 20);
    conn.wait_us(10_000).peer_ack_segs(41);
    conn.wait_us(400_000);
    conn
}

/// By a mark, by duplicate ACKs, and by a timeout.
const SIGNALS: [fn(&mut Conn); 3] = [
    |conn| {
        conn.guest_gets(conn.ack(2 * conn.mss()).ece());
    },
    |conn| {
        for _ in 0..3 {
            conn.peer_ack_segs(1);
        }
        conn.send_segs(1, 2);
    },
    |conn| {
        conn.wait_us(400_000).send_segs(1, 2);
        // All but the first segment had arrived.
        conn.peer_ack_segs(40);
    },
];

#[test]
fn a_reduction_that_has_not_ended_does_not_outlive_an_idle_period() {
    for prr in [false, true] {
        for signal in SIGNALS {
            let mut conn = reduced_and_acknowledged(prr, signal);
            let reductions = conn.flow.reductions;
            conn.send_segs(41, 43);
            assert!(conn.cwnd() <= 10, "{} after {}", conn.cwnd(), state(&conn));
            // Its end does not raise the window, and stale ECE does not count (law 6).
            let stale = conn.ack(41 * conn.mss()).len(100).ece();
            conn.guest_gets(stale);
            let clear = conn.ack(43 * conn.mss()).seq(conn.peer_seq(100));
            conn.wait_us(10_000).guest_gets(clear);
            assert_eq!(state(&conn), sys::CA_OPEN);
            assert!(conn.cwnd() <= 12, "{}", conn.cwnd());
            assert_eq!(conn.flow.reductions, reductions);
            assert_eq!(conn.flow.cc.ssthresh_segs, 20);
        }
    }
}

#[test]
fn a_window_that_a_late_ack_validates_is_not_unused() {
    // A round trip of more than a second.
    let mut conn = in_flight(5, 40);
    conn.flow.0.cc.cwnd_segs = 40;
    conn.params.0.prr = 0;
    conn.guest_gets(conn.ack(2 * conn.mss()).ece());
    conn.peer_ack_segs(41);
    conn.send_segs(41, 45);
    conn.wait_us(1_500_000).peer_ack_segs(43);
    assert_eq!((state(&conn), conn.cwnd()), (sys::CA_OPEN, 20));
    conn.send_segs(45, 46);
    assert_eq!(conn.cwnd(), 20);
}

#[test]
fn a_loss_after_an_idle_period_is_not_answered_by_a_mark_before_it() {
    for prr in [false, true] {
        let mut conn = reduced_and_acknowledged(prr, SIGNALS[0]);
        conn.send_segs(41, 46);
        let reductions = conn.flow.reductions;
        for _ in 0..4 {
            // The first shows another window, and is no duplicate.
            conn.guest_gets(conn.ack(41 * conn.mss()).win(PEER_WINDOW - 1));
        }
        assert_eq!((state(&conn), conn.flow.reductions), (sys::CA_RECOVERY, reductions + 1));
        assert!(conn.flow.cc.ssthresh_segs <= 5);
    }
}

#[test]
fn an_app_limited_guest_does_not_grow() {
    // RFC 7661. Slow start may grow to twice the flight (Linux: tcp_is_cwnd_limited).
    for isn in ISNS {
        let mut conn = Conn::established(Params::default(), isn);
        for number in 0..1000 {
            conn.send_segs(2 * number, 2 * number + 2);
            conn.wait_us(10_000).peer_ack_segs(2 * number + 2);
        }
        assert_eq!(conn.cwnd(), 10, "2 of 10 segments used");
    }
}

#[test]
fn an_app_limited_guest_does_not_grow_in_congestion_avoidance() {
    let mut conn = in_flight(5, 10);
    conn.guest_gets(conn.ack(2 * conn.mss()).ece());
    conn.send_segs(11, 12);
    conn.wait_us(10_000).peer_ack_segs(12);
    let cwnd_segs = conn.cwnd();
    for number in 6..500 {
        conn.send_segs(2 * number, 2 * number + 2);
        conn.wait_us(10_000).peer_ack_segs(2 * number + 2);
    }
    assert_eq!(conn.cwnd(), cwnd_segs);
}

/// RFC 7661; Linux: tcp_cwnd_application_limited, after each RTO without full use.
#[test]
fn an_unused_window_shrinks() {
    for isn in ISNS {
        let mut conn = in_flight(isn, 10);
        conn.wait_us(10_000).peer_ack_segs(11);
        conn.flow.0.cc.cwnd_segs = 1280;
        conn.flow.0.cc.ssthresh_segs = 700;
        let mut sent = 11;
        let mut uses = |conn: &mut Conn, segs: u32, rounds: u32| {
            for _ in 0..rounds {
                conn.wait_us(10_000).send_segs(sent, sent + segs);
                sent += segs;
                conn.wait_us(10_000).peer_ack_segs(sent);
            }
        };
        uses(&mut conn, 20, 1);
        assert_eq!(conn.cwnd(), 1280, "less than an RTO");
        uses(&mut conn, 20, 12);
        assert_eq!((conn.cwnd(), conn.flow.cc.ssthresh_segs), (650, 960));
        uses(&mut conn, 20, 600);
        // Below ssthresh, slow start may grow to twice the flight.
        assert!((20..60).contains(&conn.cwnd()), "{}", conn.cwnd());
        // The initial window is not validated.
        uses(&mut conn, 2, 600);
        assert_eq!(conn.cwnd(), 10);
        assert_eq!(conn.flow.reductions, 0);
    }
}

#[test]
fn a_used_window_stays() {
    let mut conn = in_flight(5, 10);
    conn.wait_us(10_000).peer_ack_segs(11);
    conn.flow.0.cc.ssthresh_segs = 30;
    conn.flow.0.cc.cwnd_segs = 30;
    let mut sent = 11;
    let mut before = 30;
    for _ in 0..200 {
        let window_segs = conn.cwnd();
        assert!(window_segs >= before);
        before = window_segs;
        conn.wait_us(10_000).send_segs(sent, sent + window_segs);
        sent += window_segs;
        conn.wait_us(10_000).peer_ack_segs(sent);
    }
    assert!(conn.cwnd() > 200);
}

#[test]
fn a_guest_that_uses_its_window_grows() {
    for isn in ISNS {
        let mut conn = Conn::established(Params::default(), isn);
        conn.send_segs(0, 10);
        conn.wait_us(10_000).peer_ack_segs(10);
        assert_eq!(conn.cwnd(), 20, "slow start doubles");
        conn.send_segs(10, 30);
        conn.guest_gets(conn.ack(11 * conn.mss()).ece());
        conn.send_segs(30, 31);
        conn.wait_us(10_000).peer_ack_segs(31);
        let start_segs = conn.cwnd();
        let mut sent = 31;
        for round in 1..20 {
            let window_segs = conn.cwnd();
            conn.send_segs(sent, sent + window_segs);
            for number in sent..sent + window_segs {
                conn.peer_ack_segs(number + 1);
            }
            sent += window_segs;
            conn.wait_us(10_000);
            let grown_segs = conn.cwnd() - start_segs;
            assert!(
                grown_segs.abs_diff(round) <= 1,
                "one per round trip: {grown_segs} after {round}"
            );
        }
    }
}

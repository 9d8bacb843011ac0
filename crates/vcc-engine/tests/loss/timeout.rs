//! Retransmission timeouts (RFC 5681, 3.1; RFC 6298).

use super::*;

#[test]
fn a_retransmission_after_the_timeout_is_a_timeout() {
    for isn in ISNS {
        let mut conn = in_flight(isn, 10);
        let cwnd_segs = conn.cwnd();
        conn.wait_us(250_000).send_segs(1, 2);
        assert_eq!((state(&conn), conn.flow.reductions), (sys::CA_LOSS, 1));
        assert_eq!((conn.cwnd(), conn.flow.cc.ssthresh_segs), (1, cwnd_segs / 2));
    }
}

#[test]
fn the_deadline_infers_a_timeout() {
    for isn in ISNS {
        let mut conn = in_flight(isn, 10);
        let wait = conn.deadline();
        assert_eq!(state(&conn), sys::CA_OPEN);
        assert!((200..=300).contains(&wait.deadline_ms), "{} ms", wait.deadline_ms);
        conn.wait_us(u64::from(wait.deadline_ms) * 1000).deadline();
        assert_eq!((state(&conn), conn.cwnd()), (sys::CA_LOSS, 1));
        // The guest's own timer expires a little later, for the same loss.
        conn.wait_us(10_000).send_segs(1, 2);
        assert_eq!(conn.flow.reductions, 1);
    }
}

#[test]
fn no_timeout_without_flight() {
    let mut conn = in_flight(5, 3);
    conn.peer_ack_segs(4);
    let wait = conn.wait_us(60_000_000).deadline();
    assert_eq!((state(&conn), conn.flow.reductions), (sys::CA_OPEN, 0));
    assert!(wait.deadline_ms > 1_000_000);
}

#[test]
fn a_clock_slightly_behind_is_no_timeout() {
    // Segments and deadlines come from several CPUs, and the time may be read before the lock is
    // taken.
    let mut conn = in_flight(5, 3);
    conn.wait_us(5000).peer_ack_segs(2);
    conn.now_us -= 3;
    let wait = conn.deadline();
    assert_eq!((state(&conn), conn.flow.reductions), (sys::CA_OPEN, 0));
    assert_eq!(wait.forget, 0);
    conn.send_segs(2, 3);
    assert_ne!(state(&conn), sys::CA_LOSS);
}

#[test]
fn after_a_timeout_slow_start_up_to_ssthresh() {
    for isn in ISNS {
        let mut conn = in_flight(isn, 10);
        conn.wait_us(250_000).send_segs(1, 2);
        let ssthresh_segs = conn.flow.cc.ssthresh_segs;
        conn.wait_us(10_000).peer_ack_segs(2);
        assert_eq!(conn.cwnd(), 2);
        conn.send_segs(2, 4);
        conn.wait_us(10_000).peer_ack_segs(4);
        assert_eq!(conn.cwnd(), 4);
        conn.send_segs(4, 8);
        conn.wait_us(10_000).peer_ack_segs(8);
        assert_eq!(conn.cwnd(), ssthresh_segs);
        assert_eq!(state(&conn), sys::CA_LOSS);
        conn.send_segs(8, 12);
        conn.wait_us(10_000).peer_ack_segs(12);
        assert_eq!(state(&conn), sys::CA_OPEN);
        assert_eq!(conn.flow.reductions, 1);
    }
}

/// A cumulative ACK after a timeout credits only bytes sent since the timeout, because earlier ones
/// may have been delivered before (RFC 3465, 2.3: one ACK would release a whole window at once).
#[test]
fn after_a_timeout_one_cumulative_ack_does_not_restore_the_window() {
    for by_deadline in [true, false] {
        for isn in ISNS {
            let mut conn = in_flight(isn, 10);
            conn.wait_us(250_000);
            if by_deadline {
                conn.deadline();
            }
            conn.send_segs(1, 2);
            assert_eq!(conn.cwnd(), 1);
            conn.wait_us(10_000).peer_ack_segs(11);
            assert_eq!(conn.cwnd(), 2, "all but the first were delivered before");
            conn.send_segs(11, 13);
            conn.wait_us(10_000).peer_ack_segs(13);
            assert_eq!((state(&conn), conn.cwnd()), (sys::CA_OPEN, 4));
        }
    }
}

#[test]
fn a_second_timeout_keeps_ssthresh() {
    // RFC 5681, 3.1: ssthresh is held constant when a retransmission is lost too.
    let mut conn = in_flight(5, 10);
    conn.wait_us(250_000).send_segs(1, 2);
    let ssthresh_segs = conn.flow.cc.ssthresh_segs;
    conn.wait_us(1_000_000).send_segs(1, 2);
    conn.wait_us(3_000_000).deadline();
    assert_eq!(conn.flow.cc.ssthresh_segs, ssthresh_segs);
    assert_eq!((conn.cwnd(), conn.flow.reductions), (1, 1));
}

#[test]
fn a_timeout_inside_a_reduction_keeps_ssthresh() {
    // One window, one reduction of ssthresh (Linux: tcp_enter_loss, after(high_seq, snd_una)).
    let mut conn = in_flight(5, 10);
    for _ in 0..3 {
        conn.peer_ack_segs(1);
    }
    let ssthresh_segs = conn.flow.cc.ssthresh_segs;
    conn.wait_us(250_000).send_segs(1, 2);
    assert_eq!(state(&conn), sys::CA_LOSS);
    assert_eq!(conn.flow.cc.ssthresh_segs, ssthresh_segs);
    assert_eq!(conn.cwnd(), 1);
}

#[test]
fn a_timeout_after_a_reduction_cuts_ssthresh() {
    // The reduced window was acknowledged in full, so this is another loss.
    let mut conn = in_flight(5, 10);
    conn.guest_gets(conn.ack(2 * conn.mss()).ece());
    conn.peer_ack_segs(11);
    conn.send_segs(11, 16);
    conn.wait_us(10_000).peer_ack_segs(11);
    assert_eq!(conn.flow.cc.ssthresh_segs, 5);
    let cwnd_segs = conn.cwnd();
    conn.wait_us(400_000).send_segs(11, 12);
    assert_eq!(state(&conn), sys::CA_LOSS);
    assert_eq!(conn.flow.cc.ssthresh_segs, (cwnd_segs / 2).max(2));
}

/// An idle flow's deadline is its idle timeout, but a flow with data in flight has an earlier one.
#[test]
fn timeouts_are_inferred_after_an_idle_period() {
    let mut conn = in_flight(5, 3);
    conn.wait_us(10_000).peer_ack_segs(4);
    let idle = conn.wait_us(60_000_000).deadline();
    assert!(idle.deadline_ms > 3_600_000, "{} ms", idle.deadline_ms);
    conn.wait_us(3_600_000_000).send_segs(4, 6);
    let wait = conn.deadline();
    assert!((200..=300).contains(&wait.deadline_ms), "{} ms", wait.deadline_ms);
    conn.wait_us(u64::from(wait.deadline_ms) * 1000).deadline();
    assert_eq!(state(&conn), sys::CA_LOSS);
}

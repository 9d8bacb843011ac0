//! Losses, latched ECE, timeouts, and ECT on all segments.

use super::*;

#[test]
fn a_loss_halves_whatever_alpha_is() {
    // RFC 8257, 3.4; Linux: dctcp_react_to_loss.
    for name in ["dctcp", "dctcp-priority"] {
        for (cwnd, half) in [(10, 5), (11, 5), (3, 1), (40, 20)] {
            let mut params = underlay(name);
            params.0.initial_window_segs = cwnd;
            let mut conn = conn(params, 5, Reporting::Reports).without_sack();
            conn.flow.0.cc.own[sys::DCTCP_ALPHA as usize] = 10;
            conn.send_segs(0, cwnd);
            for _ in 0..4 {
                conn.guest_gets(conn.ack(0));
            }
            assert_eq!(conn.flow.reductions, u32::from(cwnd > 0), "{name}");
            assert_eq!(conn.flow.cc.ssthresh_segs, half, "{name}, {cwnd} segments");
        }
    }
}

#[test]
fn a_classic_echo_halves_whatever_alpha_is() {
    // A latched ECE does not say how much was marked.
    for (cwnd, half) in [(10, 5), (11, 5), (40, 20)] {
        let mut params = without_prr("dctcp");
        params.0.initial_window_segs = cwnd;
        let mut conn = conn(params, 5, Reporting::ClassicEcho);
        conn.flow.0.cc.own[sys::DCTCP_ALPHA as usize] = 10;
        conn.send_segs(0, cwnd);
        conn.guest_gets(conn.ack(conn.mss()).ece());
        assert_eq!((conn.cwnd(), conn.flow.cc.ssthresh_segs), (half, half));
        conn.send_segs(cwnd, cwnd + 1);
        for segs in 2..=cwnd {
            conn.guest_gets(conn.ack(segs * conn.mss()).ece());
        }
        assert_eq!(conn.flow.reductions, 1, "once per window");
    }
}

#[test]
fn a_timeout_is_renos() {
    let mut conn = conn(underlay("dctcp"), 5, Reporting::Reports);
    conn.send_segs(0, 10);
    conn.wait_us(1_500_000).deadline();
    assert_eq!((conn.cwnd(), conn.flow.cc.ssthresh_segs), (1, 5));
}

#[test]
fn everything_but_syns_is_ect() {
    // Threshold-marking switches drop Not-ECT packets (RFC 8257, 5.1; RFC 8311, 4.3).
    let mut conn = Conn::new(underlay("dctcp"), 5);
    assert!(is_not_ect(&conn.guest_syn(linux_syn().room(ROOM_BYTES))));
    conn.peer_synack(linux_syn().ece().accept());
    assert!(is_ect0(&conn.guest_acks(0)), "a pure ACK");
    assert!(is_ect0(&conn.send(0, 1000)));
    assert!(is_ect0(&conn.send(0, 1000)), "a retransmission");
    assert!(is_ect0(&conn.guest_sends(conn.data(1000, 0).fin())));
    let mut conn = Conn::new(underlay("dctcp"), 5);
    conn.peer_syn(linux_syn().asking_ecn());
    assert!(is_not_ect(&conn.guest_synack(linux_syn())));
    // A peer without ECN receives no ECT.
    let mut conn = Conn::new(underlay("dctcp"), 5);
    conn.guest_syn(linux_syn());
    conn.peer_synack(linux_syn());
    assert!(is_not_ect(&conn.send(0, 1000)));
}

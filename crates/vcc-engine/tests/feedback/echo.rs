//! ECE in addition to reports.

use super::*;

#[test]
fn until_the_first_report_ece_counts() {
    for name in ["reno-ecn", "dctcp"] {
        let (mut conn, mss_bytes) = flying(name, 5);
        conn.guest_gets(conn.ack(mss_bytes).ece());
        assert_eq!((conn.flow.reductions, conn.flow.cc.ssthresh_segs), (1, 5), "{name}");
    }
}

#[test]
fn a_peer_under_vcc_is_no_native_dctcp_peer() {
    // Its SYN-ACK was ECT, but its vcc latches ECE, which halves the window.
    let mut conn = Conn::new(underlay("dctcp"), 5);
    conn.guest_syn(linux_syn().room(ROOM_BYTES));
    conn.peer_synack(linux_syn().ece().accept().ect0());
    conn.flow.0.cc.own[sys::DCTCP_ALPHA as usize] = 64;
    conn.send_segs(0, 10);
    conn.guest_gets(conn.ack(conn.mss()).ece());
    assert_eq!(conn.flow.cc.ssthresh_segs, 5);
}

#[test]
fn a_mark_is_answered_whatever_the_reports_say() {
    for name in ["dctcp", "reno-ecn"] {
        for by_fack in [false, true] {
            let mut conn = Conn::to_vcc(underlay(name), 5);
            let mss = conn.mss();
            let mut windows = 0;
            for segs in 0..40 {
                // Every report denies marks, but the far end's receiver echoes them.
                conn.send_segs(segs, segs + 1);
                let acked = (segs + 1) * mss;
                if by_fack {
                    conn.now_us += 100;
                    conn.guest_gets(conn.ack(acked).ece());
                    conn.guest_gets(conn.ack(acked - 1).fack(1 + acked, 0));
                } else {
                    conn.now_us += 100;
                    conn.guest_gets(conn.ack(acked).ece().pack(1 + acked, 0));
                }
                windows = conn.flow.reductions;
            }
            assert!(windows >= 10, "{name}: {windows} reductions");
            assert!(conn.cwnd() <= 2, "{name}: {} segments", conn.cwnd());
        }
    }
}

#[test]
fn a_reported_mark_is_not_answered_again_by_its_echo() {
    for by_fack in [false, true] {
        let mut conn = Conn::to_vcc(underlay("dctcp"), 5);
        let mss = conn.mss();
        // Until the first report, only ECE is used.
        conn.guest_gets(conn.ack(0).pack(1, 0));
        // A small alpha: a mark costs next to nothing.
        conn.flow.0.cc.own[sys::DCTCP_ALPHA as usize] = 1;
        let (mut sent, mut acked) = (0, 0);
        let mut send = |conn: &mut Conn, segs| {
            conn.send_segs(sent, sent + segs);
            sent += segs;
        };
        send(&mut conn, 8);
        // One mark; its ECE lasts until CWR arrives a round trip later.
        for _ in 0..8 {
            acked += mss;
            let ack = conn.ack(acked).ece();
            if by_fack {
                conn.guest_gets(ack);
                conn.guest_gets(conn.ack(acked - 1).fack(1 + acked - mss, mss));
            } else {
                conn.guest_gets(ack.pack(1 + acked - mss, mss));
            }
            send(&mut conn, 1);
        }
        for _ in 0..8 {
            acked += mss;
            conn.guest_gets(conn.ack(acked).pack(1 + acked - mss, mss));
        }
        assert_eq!(conn.flow.reductions, 1);
        assert!(conn.flow.cc.ssthresh_segs >= 9, "{} segments", conn.flow.cc.ssthresh_segs);
    }
}

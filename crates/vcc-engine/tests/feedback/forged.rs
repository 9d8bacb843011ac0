//! Impossible and forged reports.

use super::*;

#[test]
fn network_duplicates_are_no_forgery() {
    // The receiver half counts duplicates too.
    let (mut conn, mss_bytes) = flying("dctcp", 5);
    let mut far = Far::new();
    let action = conn.guest_gets(far.gets(12 * mss_bytes, 0).pack(conn.ack(10 * mss_bytes)));
    assert_eq!((action.forged, state(&conn)), (0, sys::FLOW_FEEDBACK_HEARD));
    assert_eq!(conn.flow.unreported_bytes, 0);
    let alpha = |conn: &Conn| conn.flow.cc.own[sys::DCTCP_ALPHA as usize];
    assert_eq!(alpha(&conn), 1024 - 64);
    // Duplicated bytes must not dilute the marks among them.
    conn.send_segs(10, 20);
    conn.guest_gets(far.gets(20 * mss_bytes, 4 * mss_bytes).pack(conn.ack(14 * mss_bytes)));
    assert_eq!(state(&conn), sys::FLOW_FEEDBACK_HEARD);
    assert_eq!(alpha(&conn), 960 - 60 + 64 * 4 / 10);
}

#[test]
fn counters_beyond_the_bytes_sent_are_ignored() {
    for claim in [(100 << 10, 0), (0, 100 << 10), (4 << 20, 4 << 20), (50 << 10, 50 << 10)] {
        for fack in [false, true] {
            let (mut conn, mss_bytes) = flying("dctcp", 5);
            let mut far = Far::new();
            far.gets(claim.0, claim.1);
            let segment =
                if fack { far.fack(&conn, mss_bytes) } else { far.pack(conn.ack(mss_bytes)) };
            let action = conn.guest_gets(segment);
            assert_eq!((action.forged, conn.flow.forged), (1, 1), "{claim:?}");
            assert!(conn.flow.has(sys::FLOW_FEEDBACK_LOST));
            assert_eq!(is_consumed(&action), fack);
        }
    }
}

#[test]
fn decreasing_counters_are_ignored() {
    for back in [(1, 0), (0, 1), (5000, 5000), (1 << 22, 0)] {
        let (mut conn, mss_bytes) = flying("dctcp", 5);
        let mut far = Far::new();
        conn.guest_gets(far.gets(2 * mss_bytes, mss_bytes).pack(conn.ack(3 * mss_bytes)));
        assert_eq!(state(&conn), sys::FLOW_FEEDBACK_HEARD);
        far.ect0_bytes = far.ect0_bytes.wrapping_sub(back.0) & COUNTER_MASK;
        far.ce_bytes = far.ce_bytes.wrapping_sub(back.1) & COUNTER_MASK;
        let action = conn.guest_gets(far.pack(conn.ack(4 * mss_bytes)));
        assert_eq!((action.forged, conn.flow.forged), (1, 1), "{back:?}");
        assert!(conn.flow.has(sys::FLOW_FEEDBACK_LOST));
    }
}

#[test]
fn after_an_impossible_report_ece_counts() {
    for name in ["reno-ecn", "dctcp"] {
        let (mut conn, mss_bytes) = flying(name, 5);
        let mut far = Far::new();
        // ECE on the same segment is believed.
        conn.guest_gets(far.gets(1 << 20, 0).pack(conn.ack(mss_bytes).ece()));
        assert_eq!((conn.flow.reductions, conn.flow.cc.ssthresh_segs), (1, 5), "{name}");
        // Reports are still stripped and consumed, but ignored.
        let heard = conn.flow.heard;
        let marked = conn.guest_gets(far.gets(0, mss_bytes).pack(conn.ack(2 * mss_bytes)));
        assert_eq!((marked.strip, marked.forged), (1, 0));
        assert!(is_consumed(&conn.guest_gets(far.fack(&conn, 2 * mss_bytes))));
        assert_eq!(conn.flow.heard, heard);
        assert_eq!(conn.flow.marks, 1);
        assert!(is_ect0(&conn.send(10 * mss_bytes, mss_bytes)), "ECT continues, for its ECE");
    }
}

#[test]
fn a_fack_with_an_unacceptable_ack_changes_nothing() {
    // RFC 5961, 5: a distant acknowledgement is not from the far end.
    let mut rng = Rng::new(3);
    let (mut conn, mss_bytes) = flying("dctcp", 5);
    let mut far = Far::new();
    conn.guest_gets(far.gets(mss_bytes, 0).pack(conn.ack(mss_bytes)));
    let before = conn.flow;
    for _ in 0..1000 {
        let off = rng.range(1 << 22, (1 << 32) - (1 << 22)) as u32;
        let counters = (rng.next() as u32 & COUNTER_MASK, rng.next() as u32 & COUNTER_MASK);
        let action = conn.guest_gets(conn.ack(off).fack(counters.0, counters.1));
        assert!(is_consumed(&action));
    }
    conn.flow.0.last_seen_ms = before.last_seen_ms;
    assert_eq!(conn.flow.0, before.0);
}

#[test]
fn malformed_options_are_stripped_and_counted() {
    let (mut conn, mss_bytes) = flying("dctcp", 5);
    let action = conn.guest_gets(conn.ack(mss_bytes).ours_bad());
    assert_eq!((action.strip, action.forged, conn.flow.forged), (1, 1, 1));
    assert_eq!(conn.flow.snd_una, conn.seq(mss_bytes), "the ACK itself counts");
    let mut conn = Conn::established(Params::default(), 5);
    conn.send_segs(0, 4);
    for segment in [conn.ack(0).ours_bad(), conn.ack(0).pack(9, 9), conn.ack(0).accept()] {
        let action = conn.guest_gets(segment);
        assert_eq!((action.strip, action.forged), (1, 1));
    }
    assert_eq!((conn.flow.forged, conn.flow.marks), (3, 0));
}

/// A far end whose reports are ignored must not gain over classic ECN. Equal traffic passes a flow
/// and a `reno-ecn` twin without feedback.
#[test]
fn ignored_reports_never_gain_over_classic_ecn() {
    for name in ["reno-ecn", "dctcp", "dctcp-priority"] {
        for seed in 0..400 {
            let mut rng = Rng::new(seed);
            let change = |p: &mut sys::vcc_params| {
                // With PRR, cwnd would follow the flight, which both share.
                p.prr = 0;
                p.beta_1024 = [1024, 512, 0][seed as usize % 3];
            };
            let mut with = underlay(name);
            change(&mut with.0);
            let forger = rng.chance(700);
            let isn = rng.pick(&ISNS);
            let mut conn =
                if forger { Conn::to_vcc(with, isn) } else { Conn::established(with, isn) };
            let mut twin = Conn::established(params(change), isn);
            let mss_bytes = conn.mss();
            let mark_permille = rng.pick(&[5, 20, 100, 500]);
            let (mut sent, mut acked) = (0, 0);
            for step in 0..600 {
                // Both send up to the larger window, so both use theirs.
                let cwnd_segs = conn.cwnd().max(twin.cwnd());
                while sent - acked < cwnd_segs {
                    for conn in [&mut conn, &mut twin] {
                        conn.send(sent * mss_bytes, mss_bytes);
                    }
                    sent += 1;
                }
                acked += rng.range(1, u64::from(sent - acked).min(3) + 1) as u32;
                let mut ack = conn.ack(acked * mss_bytes);
                if rng.chance(mark_permille) {
                    ack = ack.ece();
                }
                twin.guest_gets(ack);
                if forger && (step == 0 || rng.chance(300)) {
                    ack = ack.pack(rng.next() as u32 & COUNTER_MASK, 0);
                    ack.0.feedback.ect0_bytes |= u32::from(step == 0) << 20;
                    ack.0.feedback.ect0_bytes &= u32::MAX >> (u32::from(step == 0) * 9);
                }
                conn.guest_gets(ack);
                assert!(
                    conn.cwnd() <= twin.cwnd(),
                    "{name}, seed {seed}, step {step}: {} beside {}",
                    conn.cwnd(),
                    twin.cwnd()
                );
            }
            assert_eq!(conn.flow.has(sys::FLOW_FEEDBACK_LOST), forger);
            assert_eq!(conn.flow.reductions > 0, twin.flow.reductions > 0);
        }
    }
}

#[test]
fn a_forged_fack_is_ignored() {
    // With little in flight, the acknowledgement is easily guessed; the sequence number is not.
    let mut conn = Conn::to_vcc(Params::default(), 5);
    conn.send_segs(0, 8);
    let mss = conn.mss();
    for wrong in [1 << 24, 1 << 30, 1 << 31, 0xff00_0000] {
        let before = conn.flow;
        let forged = conn.ack(mss - 1).seq(conn.peer_seq(wrong)).fack(1, 8 * mss);
        conn.guest_gets(forged);
        assert_eq!((before.reductions, before.heard), (conn.flow.reductions, conn.flow.heard));
    }
    // After a super-segment that the guest has acknowledged already.
    conn.guest_gets(conn.ack(mss).len(60_000).ect0());
    conn.guest_acks(60_000);
    conn.guest_gets(conn.ack(mss - 1).fack(1, mss));
    assert_eq!(conn.flow.reductions, 1);
}

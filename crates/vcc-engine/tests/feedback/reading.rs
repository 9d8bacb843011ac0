//! Reading PACKs and FACKs.

use super::*;

#[test]
fn a_mark_in_a_report_reduces() {
    for isn in ISNS {
        for name in ["reno-ecn", "dctcp"] {
            let (mut conn, mss_bytes) = flying(name, isn);
            let mut far = Far::new();
            conn.guest_gets(far.gets(2 * mss_bytes, 0).pack(conn.ack(2 * mss_bytes)));
            assert_eq!((conn.flow.reductions, conn.flow.marks), (0, 0), "{name}");
            conn.guest_gets(far.gets(mss_bytes, mss_bytes).pack(conn.ack(4 * mss_bytes)));
            assert_eq!((conn.flow.reductions, conn.flow.marks), (1, 1), "{name}");
            assert_eq!(conn.flow.unreported_bytes, 6 * mss_bytes);
            let next = conn.send(10 * mss_bytes, mss_bytes);
            assert!(has_flags(&next, sys::TCP_CWR), "a classic echo beside it must end");
            conn.guest_gets(far.gets(0, mss_bytes).pack(conn.ack(5 * mss_bytes)));
            assert_eq!(conn.flow.reductions, 1, "law 6: once per window");
        }
    }
}

#[test]
fn a_fack_is_consumed_and_read() {
    for isn in ISNS {
        let (mut conn, mss_bytes) = flying("dctcp", isn);
        let mut far = Far::new();
        let fack = far.gets(0, mss_bytes).fack(&conn, mss_bytes);
        let before = conn.flow;
        let action = conn.guest_gets(fack);
        assert!(is_consumed(&action) && action.forged == 0);
        assert_eq!((conn.flow.reductions, conn.flow.marks), (1, 1));
        assert_eq!((conn.flow.snd_una, conn.flow.dupacks), (before.snd_una, before.dupacks));
        assert_eq!(conn.flow.right_edge, before.right_edge, "it shows the guest nothing");
        // A duplicate, and one after the segment beside it.
        conn.guest_gets(conn.ack(mss_bytes).len(100));
        assert!(is_consumed(&conn.guest_gets(fack)));
        assert_eq!((conn.flow.reductions, conn.flow.marks), (1, 1));
    }
}

#[test]
fn a_fack_without_negotiation_passes_as_an_old_ack() {
    let mut conn = Conn::established(Params::default(), 5);
    conn.send_segs(0, 4);
    conn.peer_ack_segs(2);
    let action = conn.guest_gets(conn.ack(2 * conn.mss() - 1).fack(1, 5000));
    assert_eq!(u32::from(action.verdict), sys::VCC_PASS);
    assert_eq!((action.strip, action.forged), (1, 1));
    assert_eq!((conn.flow.marks, conn.flow.dupacks), (0, 0));
}

#[test]
fn a_segment_with_payload_is_no_fack() {
    let (mut conn, mss_bytes) = flying("dctcp", 5);
    let data = conn.guest_gets(conn.ack(mss_bytes).len(100).fack(1, mss_bytes));
    assert_eq!((u32::from(data.verdict), data.strip), (sys::VCC_PASS, 1));
}

#[test]
fn a_fack_that_ends_a_reduction_can_start_the_next() {
    // Its marks are processed with the report or not at all.
    let (mut conn, mss_bytes) = flying("dctcp", 5);
    let mut far = Far::new();
    conn.guest_gets(far.gets(0, mss_bytes).pack(conn.ack(mss_bytes)));
    assert_eq!(conn.flow.reductions, 1);
    conn.send_segs(10, 15);
    conn.guest_gets(far.gets(9 * mss_bytes, 0).pack(conn.ack(10 * mss_bytes)));
    // Beyond `recover` now, and marked again.
    conn.guest_gets(far.gets(0, 2 * mss_bytes).fack(&conn, 12 * mss_bytes));
    conn.guest_gets(conn.ack(12 * mss_bytes).len(100));
    assert_eq!(conn.flow.reductions, 2);
}

#[test]
fn a_fack_may_overtake_the_report_before_it() {
    // The segment beside a FACK acknowledges one byte more; so may an earlier one.
    for isn in ISNS {
        let (mut conn, mss_bytes) = flying("dctcp", isn);
        let mut far = Far::new();
        let pack = far.gets(mss_bytes, 0).pack(conn.ack(2 * mss_bytes));
        let fack = far.gets(mss_bytes, 0).fack(&conn, 2 * mss_bytes);
        conn.guest_gets(fack);
        let action = conn.guest_gets(pack);
        assert_eq!((action.forged, conn.flow.forged), (0, 0));
        assert_eq!(state(&conn), sys::FLOW_FEEDBACK_HEARD);
        assert_eq!(conn.flow.unreported_bytes, 8 * mss_bytes);
    }
}

/// Guest and far end as a property: whatever happens to reports, the counters agree in the end, and
/// no report counts as forged.
#[test]
fn lost_duplicated_and_reordered_reports_do_no_harm() {
    for seed in 0..3000 {
        let mut rng = Rng::new(seed);
        let isn = rng.pick(&ISNS);
        let mut conn = Conn::to_vcc(underlay(rng.pick(&["dctcp", "reno-ecn"])), isn);
        let mut far = Far::new();
        far.ect0_bytes = rng.pick(&[1, COUNTER_MASK - 20_000]);
        conn.flow.0.heard.ect0_bytes = far.ect0_bytes;
        let mss_bytes = conn.mss();
        let (mut sent, mut arrived) = (0, 0);
        let mut under_way: Vec<Seg> = Vec::new();
        let mut marked_bytes = 0;
        for _ in 0..rng.range(10, 200) {
            for _ in 0..rng.range(0, 4) {
                conn.send(sent, mss_bytes);
                sent += mss_bytes;
            }
            // Some segments arrive and are acknowledged, by a PACK or by data with a FACK beside
            // it.
            let segs = rng.range(0, u64::from((sent - arrived) / mss_bytes) + 1) as u32;
            for _ in 0..segs {
                let marked = rng.chance(300);
                far.gets(u32::from(!marked) * mss_bytes, u32::from(marked) * mss_bytes);
                marked_bytes += u32::from(marked) * mss_bytes;
            }
            arrived += segs * mss_bytes;
            if segs > 0 && rng.chance(500) {
                under_way.push(far.pack(conn.ack(arrived)));
            } else if segs > 0 {
                let beside = conn.ack(arrived).len(10);
                let pair = [far.fack(&conn, arrived), beside];
                under_way.extend(if rng.chance(500) { pair } else { [pair[1], pair[0]] });
            }
            // The path loses, duplicates and reorders.
            while under_way.len() > 4 {
                let place = if rng.chance(200) { rng.range(0, 4) as usize } else { 0 };
                let segment = under_way.remove(place);
                for _ in 0..[0, 1, 1, 1, 1, 1, 1, 2][rng.range(0, 8) as usize] {
                    let action = conn.guest_gets(segment);
                    assert_eq!(action.forged, 0, "seed {seed}");
                }
            }
        }
        // The last report arrives.
        let action = conn.guest_gets(far.pack(conn.ack(arrived)));
        assert_eq!((action.forged, conn.flow.forged), (0, 0), "seed {seed}");
        assert!(!conn.flow.has(sys::FLOW_FEEDBACK_LOST), "seed {seed}");
        let heard = conn.flow.heard;
        assert_eq!((heard.ect0_bytes, heard.ce_bytes), (far.ect0_bytes, far.ce_bytes));
        assert_eq!(conn.flow.unreported_bytes, sent - arrived, "seed {seed}");
        assert_eq!(conn.flow.marks == 0, marked_bytes == 0, "seed {seed}");
    }
}

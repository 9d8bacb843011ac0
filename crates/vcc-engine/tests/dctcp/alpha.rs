//! Alpha (RFC 8257, 3.3).

use super::*;

#[test]
fn alpha_starts_at_one_and_decays_to_zero() {
    let mut conn = conn(without_prr("dctcp"), 5, Reporting::Reports);
    let mut far = Far::new(Reporting::Reports);
    assert_eq!(alpha(&conn), 1024);
    let mss_bytes = conn.mss();
    let mut before = 1024;
    for window in 0..200 {
        conn.send(window * mss_bytes, mss_bytes);
        let ack = conn.ack((window + 1) * mss_bytes);
        conn.guest_gets(far.ack(ack, mss_bytes, 0));
        assert!(alpha(&conn) < before || before == 0);
        before = alpha(&conn);
    }
    assert_eq!(alpha(&conn), 0);
}

#[test]
fn alpha_converges_to_the_marked_fraction() {
    // RFC 8257, 3.3, step 6, in real numbers.
    for of_twenty in [1, 2, 5, 10, 15, 19, 20] {
        let mut conn = conn(without_prr("dctcp"), 5, Reporting::Reports);
        let mut far = Far::new(Reporting::Reports);
        let bytes = conn.mss() / 20;
        let (mut sent, mut exact) = (0, 1.0f64);
        for _ in 0..100 {
            conn.send(sent, 20 * bytes);
            sent += 20 * bytes;
            let ack = conn.ack(sent);
            conn.guest_gets(far.ack(ack, (20 - of_twenty) * bytes, of_twenty * bytes));
            exact += (f64::from(of_twenty) / 20.0 - exact) / 16.0;
            let error = f64::from(alpha(&conn)) / 1024.0 - exact;
            assert!(error.abs() <= 1.0 / 64.0, "{error} at {of_twenty} of 20");
        }
    }
}

#[test]
fn alpha_is_updated_once_per_window() {
    let mut conn = conn(without_prr("dctcp"), 5, Reporting::Reports);
    let mut far = Far::new(Reporting::Reports);
    let mss_bytes = conn.mss();
    conn.send_segs(0, 10);
    let ack = conn.ack(mss_bytes);
    conn.guest_gets(far.ack(ack, mss_bytes, 0));
    assert_eq!(alpha(&conn), 960);
    for segs in 2..10 {
        let ack = conn.ack(segs * mss_bytes);
        conn.guest_gets(far.ack(ack, mss_bytes, 0));
        assert_eq!(alpha(&conn), 960);
    }
    let ack = conn.ack(10 * mss_bytes);
    conn.guest_gets(far.ack(ack, mss_bytes, 0));
    assert_eq!(alpha(&conn), 900);
}

/// Requests and responses: data received while nothing is in flight says nothing about the path
/// (Linux: dctcp_update_alpha, by what was delivered since the last window).
#[test]
fn alpha_is_constant_during_a_response() {
    for reporting in [Reporting::Reports, Reporting::DctcpEcho] {
        for request in 0..3 {
            let mut conn = conn(without_prr("dctcp"), 5, reporting);
            let mut far = Far::new(reporting);
            let mss_bytes = conn.mss();
            for number in 0..request {
                conn.send(number * mss_bytes, mss_bytes);
                let ack = conn.ack((number + 1) * mss_bytes);
                conn.guest_gets(far.ack(ack, mss_bytes, 0));
            }
            let before = alpha(&conn);
            for number in 0..100 {
                let offset = number * 1440;
                let ack = conn.ack(request * mss_bytes);
                let response = ack.seq(conn.peer_seq(offset)).len(1440);
                conn.guest_gets(if reporting == Reporting::Reports {
                    response
                } else {
                    far.ack(response, 0, 0)
                });
                conn.guest_acks(offset + 1440);
            }
            assert_eq!(alpha(&conn), before, "{reporting:?}, after {request} requests");
        }
    }
}

#[test]
fn fully_marked_requests_keep_alpha_at_one() {
    for reporting in [Reporting::Reports, Reporting::DctcpEcho] {
        let mut conn = conn(without_prr("dctcp"), 5, reporting);
        let mut far = Far::new(reporting);
        let mss_bytes = conn.mss();
        let (mut acked, mut came) = (0, 0);
        for _ in 0..200 {
            let segs = conn.cwnd().min(4);
            conn.send_segs(acked, acked + segs);
            for _ in 0..segs {
                acked += 1;
                let ack = conn.ack(acked * mss_bytes);
                conn.guest_gets(far.ack(ack, 0, mss_bytes));
            }
            for _ in 0..10 {
                let response = conn.ack(acked * mss_bytes).seq(conn.peer_seq(came)).len(1440);
                conn.guest_gets(response);
                came += 1440;
            }
        }
        assert_eq!(alpha(&conn), 1024, "{reporting:?}");
    }
}

/// A FACK may arrive before or after the segment beside it, which acknowledges the reported data.
#[test]
fn alpha_is_updated_once_per_window_by_facks_too() {
    for fack_first in [true, false] {
        let mut conn = conn(without_prr("dctcp"), 5, Reporting::Reports);
        let mss_bytes = conn.mss();
        // After a first report; until then, only ECE is used.
        conn.send(0, mss_bytes);
        conn.guest_gets(conn.ack(mss_bytes).pack(1 + mss_bytes, 0));
        let (mut ect0_bytes, mut ce_bytes) = (1 + mss_bytes, 0);
        let mut model = Model::linux(1);
        model.on_ack(1, 1, 1, 0);
        for number in 1..200 {
            conn.send(number * mss_bytes, mss_bytes);
            let marked = number % 2;
            ect0_bytes += (1 - marked) * mss_bytes;
            ce_bytes += marked * mss_bytes;
            let end = (number + 1) * mss_bytes;
            let response = conn.ack(end).seq(conn.peer_seq(number * 100)).len(100);
            let fack =
                conn.ack(end - 1).seq(conn.peer_seq(number * 100)).fack(ect0_bytes, ce_bytes);
            for segment in if fack_first { [fack, response] } else { [response, fack] } {
                conn.guest_gets(segment);
            }
            let sent = u64::from(number + 1);
            model.on_ack(sent, sent, 1, marked.into());
            assert_eq!(u64::from(alpha(&conn)), model.alpha, "after {sent}, {fack_first}");
        }
        assert!(alpha(&conn).abs_diff(512) < 64, "{}", alpha(&conn));
    }
}

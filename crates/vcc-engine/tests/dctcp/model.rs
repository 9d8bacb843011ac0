//! The windows, compared with models after every ACK.

use super::*;

#[test]
fn windows_equal_the_models_to_the_segment() {
    for seed in 0..300 {
        for reporting in [Reporting::Reports, Reporting::DctcpEcho] {
            compare(without_prr("dctcp"), reporting, seed, &mut Model::linux(1));
        }
    }
}

/// cwnd and the lowest window shown, in segments, after every segment of a long flow was marked.
fn marked_throughout(mut conn: Conn) -> (u32, u32) {
    let mut far = Far::new(Reporting::Reports);
    let mss_bytes = conn.mss();
    let (mut sent, mut acked, mut lowest) = (0, 0, u32::MAX);
    for _ in 0..200 {
        while sent - acked < conn.cwnd() {
            conn.send(sent * mss_bytes, mss_bytes);
            sent += 1;
        }
        acked += 1;
        let ack = conn.ack(acked * mss_bytes).seq(conn.flow.rcv_nxt);
        let action = conn.guest_gets(far.ack(ack, 0, mss_bytes));
        lowest = lowest.min(conn.shown_bytes(&action) / mss_bytes);
    }
    (conn.cwnd(), lowest)
}

#[test]
fn the_floor_is_the_operators() {
    for floor_segs in [1, 2, 5] {
        let mut params = without_prr("dctcp");
        params.0.window_floor_segs = floor_segs;
        for seed in 0..50 {
            let mut model = Model::linux(floor_segs.into());
            compare(params, Reporting::Reports, seed, &mut model);
        }
        let conn = conn(params, 5, Reporting::Reports);
        assert_eq!(marked_throughout(conn), (floor_segs, floor_segs));
    }
}

#[test]
fn a_peer_that_sends_data_gets_two_segments() {
    // Such a receiver delays the ACK of a single segment (Linux: pingpong mode).
    for (floor_segs, least_segs) in [(1, 2), (2, 2), (5, 5)] {
        for name in ["dctcp", "dctcp-priority"] {
            let mut params = without_prr(name);
            params.0.window_floor_segs = floor_segs;
            let mut conn = conn(params, 5, Reporting::Reports);
            conn.guest_gets(conn.ack(0).len(100));
            assert_eq!(marked_throughout(conn), (least_segs, least_segs), "{name}");
        }
    }
}

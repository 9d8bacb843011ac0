//! The windows, compared with models after every ACK.

use super::*;

#[test]
fn windows_equal_the_models_to_the_segment() {
    for seed in 0..300 {
        for told in [Told::Reports, Told::DctcpEcho] {
            compare(without_prr("dctcp"), told, seed, &mut Model::linux(1));
        }
    }
}

#[test]
fn the_floor_is_the_operators() {
    for floor_segs in [1, 2, 5] {
        let mut params = without_prr("dctcp");
        params.0.window_floor_segs = floor_segs;
        let mut lowest = u32::MAX;
        for seed in 0..50 {
            let mut model = Model::linux(floor_segs.into());
            compare(params, Told::Reports, seed, &mut model);
        }
        // Every segment is marked, for a long time.
        let mut conn = conn(params, 5, Told::Reports);
        let mut far = Far::new(Told::Reports);
        let mss_bytes = conn.mss();
        let (mut sent, mut acked) = (0, 0);
        for _ in 0..200 {
            while sent - acked < conn.cwnd() {
                conn.send(sent * mss_bytes, mss_bytes);
                sent += 1;
            }
            acked += 1;
            let ack = conn.ack(acked * mss_bytes);
            let action = conn.guest_gets(far.ack(ack, 0, mss_bytes));
            lowest = lowest.min(conn.shown_bytes(&action) / mss_bytes);
        }
        assert_eq!((conn.cwnd(), lowest), (floor_segs, floor_segs));
    }
}

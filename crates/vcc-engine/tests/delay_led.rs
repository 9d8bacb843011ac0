//! Underlays that are led by delay: the engine's integers against the rules of their sources.

use crate::common::*;
use vcc_engine::Params;

/// A guest that keeps its window full over a path without delayed ACKs.
struct Stream {
    conn: Conn,
    sent: u32,
}

impl Stream {
    fn new(params: Params) -> Self {
        Stream { conn: Conn::established(params, 5).without_sack(), sent: 0 }
    }

    fn at(mut self, cwnd_segs: u32, ssthresh_segs: u32) -> Self {
        self.conn.flow.0.cc.cwnd_segs = cwnd_segs;
        self.conn.flow.0.cc.ssthresh_segs = ssthresh_segs;
        self
    }

    /// Sends `segs`, all of which are acknowledged, one ACK each, `rtt_us` later.
    fn burst(&mut self, segs: u32, rtt_us: u64) -> u32 {
        let acked = self.sent;
        self.sent += segs;
        self.conn.send_segs(acked, self.sent);
        self.conn.wait_us(rtt_us);
        for number in acked..self.sent {
            self.conn.peer_ack_segs(number + 1);
        }
        self.conn.cwnd()
    }

    /// A round trip of the whole window.
    fn round(&mut self, rtt_us: u64) -> u32 {
        self.burst(self.conn.cwnd(), rtt_us)
    }
}

mod vegas {
    use super::*;

    const BASE_US: u64 = 20_000;

    fn settled(cwnd_segs: u32, ssthresh_segs: u32) -> Stream {
        let mut stream = Stream::new(underlay("vegas")).at(2, 2);
        for _ in 0..3 {
            stream.round(BASE_US);
        }
        stream.at(cwnd_segs, ssthresh_segs)
    }

    #[test]
    fn in_congestion_avoidance_diff_stays_between_alpha_and_beta() {
        // At 50 segments and 20 ms, each segment of Diff is 400 us.
        for (delay_us, change) in
            [(0, 1), (799, 1), (800, 0), (1_600, 0), (1_999, 0), (2_000, -1), (4_900, -1)]
        {
            let mut stream = settled(50, 10);
            let after = stream.round(BASE_US + delay_us);
            assert_eq!(i64::from(after) - 50, change, "{delay_us} us");
        }
    }

    #[test]
    fn slow_start_ends_at_gamma() {
        // Of 50 segments at 22 ms, 50 * 20 / 22 = 45 would leave none waiting.
        let mut stream = settled(50, 1000);
        assert_eq!(stream.round(BASE_US + 2_000), 46);
        assert_eq!(stream.conn.flow.cc.ssthresh_segs, 46);
        // A segment that waits is none too many.
        let mut stream = settled(50, 1000);
        assert_eq!(stream.round(BASE_US + 799), 100);
    }

    #[test]
    fn it_settles_with_alpha_to_beta_segments_waiting() {
        for per_segment_us in [1000, 400, 100] {
            for cwnd_segs in [2, 50, 300] {
                let mut stream = settled(cwnd_segs, 2);
                let rtt_us = |cwnd| BASE_US.max(u64::from(cwnd) * per_segment_us);
                for _ in 0..400 {
                    let cwnd_segs = stream.conn.cwnd();
                    stream.round(rtt_us(cwnd_segs));
                }
                let settled_segs = stream.conn.cwnd();
                let carried = BASE_US as f64 / per_segment_us as f64;
                let waiting = f64::from(settled_segs) - carried;
                assert!((1.7..=5.0).contains(&waiting), "{waiting} segments after {cwnd_segs}");
                assert_eq!(stream.round(rtt_us(settled_segs)), settled_segs);
            }
        }
    }

    #[test]
    fn a_loss_halves_and_the_round_begins_anew() {
        let mut stream = settled(40, 10);
        stream.sent += 40;
        stream.conn.send_segs(stream.sent - 40, stream.sent);
        for _ in 0..4 {
            stream.conn.peer_ack_segs(stream.sent - 40);
        }
        assert_eq!(stream.conn.flow.cc.ssthresh_segs, 20);
        assert_eq!(stream.conn.flow.reductions, 1);
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        let mut stream = settled(50, 10);
        for _ in 0..20 {
            stream.burst(3, BASE_US);
        }
        assert!(stream.conn.cwnd() <= 50, "{}", stream.conn.cwnd());
    }
}

mod swift {
    use super::*;

    const TARGET_US: u32 = 100;

    fn swift() -> Stream {
        Stream::new(Params::with(|p| {
            p.underlay = underlay("swift").0.underlay;
            p.rtt_target_us = TARGET_US;
        }))
    }

    /// Its handshake took 50 us.
    fn near(stream: &mut Stream) {
        let path = &mut stream.conn.flow.0.cc.path;
        (path.rtt_us, path.rtt_min_us, path.rtt_least_us) = (50, 50, 50);
        path.least_since_us = stream.conn.now_us as u32;
    }

    /// Swift, 3.5, with fs_range of the base, fs_min_cwnd of 1 and fs_max_cwnd of 100.
    fn target_us(base_us: f64, cwnd_segs: u32) -> f64 {
        let scale = (1.0 / f64::from(cwnd_segs).sqrt() - 0.1) / (1.0 - 0.1);
        base_us * (1.0 + scale.clamp(0.0, 1.0))
    }

    /// The window after a round of `cwnd_segs` (Swift, algorithm 1).
    fn after(cwnd_segs: u32, delay_us: f64, target_us: f64) -> f64 {
        let cut = (0.8 * (delay_us - target_us) / delay_us).min(0.5);
        (f64::from(cwnd_segs) * (1.0 - cut)).max(1.0)
    }

    #[test]
    fn below_the_target_it_grows_by_a_segment_in_a_round_trip() {
        for cwnd_segs in [1, 2, 9, 50, 500] {
            let mut stream = swift().at(cwnd_segs, 1);
            for round in 1..=10 {
                assert_eq!(stream.round(60), cwnd_segs + round, "from {cwnd_segs}");
            }
        }
    }

    #[test]
    fn above_the_target_it_shrinks_in_proportion_to_the_excess() {
        for cwnd_segs in [2, 4, 9, 25, 100, 1000] {
            for delay_us in [101, 120, 150, 199, 201, 400, 3000] {
                let mut stream = swift().at(cwnd_segs, 1);
                near(&mut stream);
                let target_us = target_us(TARGET_US.into(), cwnd_segs);
                let segs = stream.round(delay_us);
                if (delay_us as f64) < target_us.floor() {
                    assert_eq!(segs, cwnd_segs + 1, "{cwnd_segs} at {delay_us} us");
                    continue;
                }
                // The target and the factor are rounded, and part of a segment is kept for later.
                let wanted = after(cwnd_segs, delay_us as f64, target_us);
                let error = wanted - f64::from(segs);
                assert!(
                    (-0.01 * wanted..1.0 + 0.01 * wanted).contains(&error),
                    "{cwnd_segs} at {delay_us} us: {segs} for {wanted}"
                );
            }
        }
    }

    #[test]
    fn small_cuts_add_up() {
        // 2 % of 10 segments are less than a segment.
        let mut stream = swift().at(10, 1);
        near(&mut stream);
        let delay_us = target_us(TARGET_US.into(), 10) * 1.025;
        let mut segs = 10;
        for _ in 0..6 {
            segs = stream.round(delay_us as u64);
        }
        assert_eq!(segs, 9, "0.98^6 of 10 is 8.9, and a smaller window has a longer target");
    }

    #[test]
    fn it_cuts_once_in_a_round_trip() {
        let mut stream = swift().at(64, 1);
        near(&mut stream);
        assert_eq!(stream.round(10_000), 32, "64 ACKs, one cut");
    }

    #[test]
    fn on_a_long_path_the_target_is_the_paths() {
        let mut stream = swift().at(1000, 1);
        stream.round(10_000);
        let cwnd_segs = stream.conn.cwnd();
        assert_eq!(stream.round(12_400), cwnd_segs + 1);
        assert!(stream.round(13_500) <= cwnd_segs);
    }

    #[test]
    fn a_cut_leaves_the_floor() {
        for (floor_segs, least) in [(1, 1), (2, 2), (5, 5)] {
            let mut stream = swift().at(64, 1);
            stream.conn.params.0.window_floor_segs = floor_segs;
            near(&mut stream);
            for _ in 0..20 {
                stream.round(100_000);
            }
            assert_eq!(stream.conn.cwnd(), least);
        }
    }

    #[test]
    fn a_connection_that_begins_beside_a_queue_has_the_target_of_the_others() {
        for rtt_us in [120, 250, 390] {
            let mut stream = swift().at(100, 1);
            let least_us = rtt_us as u32;
            let path = &mut stream.conn.flow.0.cc.path;
            (path.rtt_us, path.rtt_min_us, path.rtt_least_us) = (least_us, least_us, least_us);
            assert!(stream.round(rtt_us) < 100, "{rtt_us} us are more than 100");
        }
    }

    #[test]
    fn a_queue_that_stands_does_not_become_the_target() {
        let mut stream = swift().at(100, 1);
        near(&mut stream);
        for _ in 0..3 {
            stream.conn.wait_us(160_000_000);
            // The window is not idle for the engine: the last burst was acknowledged.
            stream.conn.flow.0.sent_us = stream.conn.now_us as u32;
            stream.conn.flow.0.validated_us = stream.conn.now_us as u32;
            let before = stream.conn.cwnd();
            let after = stream.round(450);
            assert!(after < before, "{before} to {after}");
        }
    }

    #[test]
    fn a_floor_above_the_window_does_not_raise_it() {
        let mut stream = swift().at(10, 1);
        stream.conn.params.0.window_floor_segs = 50;
        near(&mut stream);
        assert_eq!(stream.round(1000), 10);
    }

    #[test]
    fn it_grows_again_after_a_timeout() {
        let mut stream = swift().at(20, 1);
        near(&mut stream);
        stream.round(3000);
        let begin = stream.sent;
        let window = stream.conn.cwnd();
        stream.conn.send_segs(begin, begin + window);
        stream.conn.wait_us(1_000_000);
        stream.conn.send_segs(begin, begin + 1);
        assert_eq!(stream.conn.cwnd(), 1);
        stream.conn.wait_us(60).peer_ack_segs(begin + window);
        stream.sent = begin + window;
        let grown = (0..3).map(|_| stream.round(60)).last();
        assert!(grown > Some(2), "{grown:?}");
    }

    #[test]
    fn it_leaves_a_window_of_one_whose_acks_are_delayed() {
        let mut stream = swift().at(1, 1);
        near(&mut stream);
        stream.conn.flow.0.fabric_us64 = 60 * 64;
        stream.conn.flow.0.cc.path.rtt_us = 300;
        stream.conn.flow.0.cc.own[1] = 200;
        let grown: Vec<u32> = (0..4).map(|_| stream.round(40_000)).collect();
        assert_eq!(grown, [1, 1, 1, 2]);
        assert_eq!(stream.round(60), 3, "two segments are measured");
    }

    #[test]
    fn a_dsack_does_not_take_back_what_the_delay_has_cut() {
        let mut stream = swift().at(40, 1);
        near(&mut stream);
        stream.conn.flow.0.undo_prior_segs = 80;
        stream.conn.flow.0.undo_bytes = stream.conn.mss();
        stream.round(1000);
        assert_eq!(stream.conn.flow.undo_prior_segs, 0);
    }

    #[test]
    fn slow_start_ends_at_the_target() {
        let mut stream = swift();
        near(&mut stream);
        assert_eq!(stream.round(50), 20);
        assert_eq!(stream.round(60), 40);
        let segs = stream.round(200);
        assert!(segs < 40, "{segs}");
        assert_eq!(stream.round(60), segs + 1);
    }

    #[test]
    fn a_loss_halves() {
        let mut stream = swift().at(40, 1);
        stream.sent += 40;
        stream.conn.send_segs(0, 40);
        for _ in 0..4 {
            stream.conn.peer_ack_segs(0);
        }
        assert_eq!(stream.conn.flow.cc.ssthresh_segs, 20);
    }
}

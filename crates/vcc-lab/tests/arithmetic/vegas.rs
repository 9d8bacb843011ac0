use crate::native::{VegasState, Window};

/// The base RTT plus 1, like every sample.
const BASE_RTT_US: u32 = 20_001;
const SSTHRESH_INFINITE_SEGS: u32 = 0x7fff_ffff;

/// A path that carries a segment per `per_segment_us`, and its queue.
struct Path {
    per_segment_us: u32,
}

impl Path {
    fn rtt_us(&self, cwnd_segs: u32) -> u32 {
        (BASE_RTT_US - 1).max(cwnd_segs * self.per_segment_us)
    }

    fn queued_segs(&self, cwnd_segs: u32) -> f64 {
        let carried = f64::from(BASE_RTT_US - 1) / f64::from(self.per_segment_us);
        (f64::from(cwnd_segs) - carried).max(0.0)
    }
}

fn round_at(rtt_us: u32, window: Window) -> Window {
    let mut window = window;
    VegasState::new(BASE_RTT_US).round(&[rtt_us; 3], &mut window);
    window
}

#[test]
fn in_congestion_avoidance_diff_stays_between_alpha_and_beta() {
    let window = Window { cwnd_segs: 50, ssthresh_segs: 10 };
    // At 50 segments and 20 ms, each segment of Diff is 400 us.
    for (delay_us, change) in
        [(0, 1), (799, 1), (801, 0), (1_600, 0), (1_999, 0), (2_001, -1), (10_000, -1)]
    {
        let after = round_at(BASE_RTT_US - 1 + delay_us, window);
        assert_eq!(i64::from(after.cwnd_segs) - 50, change, "{delay_us} us");
        assert_eq!(after.ssthresh_segs, 10);
    }
}

#[test]
fn it_settles_with_alpha_to_beta_segments_queued() {
    // Paths of 20 to 200 segments.
    for per_segment_us in [1_000, 400, 100] {
        let path = Path { per_segment_us };
        for cwnd_segs in [2, 50, 300] {
            let mut window = Window { cwnd_segs, ssthresh_segs: 2 };
            let mut state = VegasState::new(BASE_RTT_US);
            for _ in 0..400 {
                let rtt_us = path.rtt_us(window.cwnd_segs);
                state.round(&[rtt_us; 3], &mut window);
            }
            let queued = path.queued_segs(window.cwnd_segs);
            // Diff is the queue times RTT / BaseRTT.
            assert!((1.7..=5.0).contains(&queued), "{queued} segments after {cwnd_segs}");
            let settled = window;
            state.round(&[path.rtt_us(window.cwnd_segs); 3], &mut window);
            assert_eq!(window, settled);
        }
    }
}

#[test]
fn slow_start_ends_above_gamma() {
    let mut state = VegasState::new(BASE_RTT_US);
    let mut window = Window { cwnd_segs: 40, ssthresh_segs: SSTHRESH_INFINITE_SEGS };
    let before = window;
    // Diff is below 2.
    assert!(state.round(&[20_999; 3], &mut window));
    assert_eq!(window, before);
    // Diff is 20: the path carries 40 * 20 / 30 segments.
    assert!(!state.round(&[30_000; 3], &mut window));
    assert_eq!(window, Window { cwnd_segs: 27, ssthresh_segs: 26 });
}

#[test]
fn the_smallest_sample_of_a_round_trip_counts() {
    let mut state = VegasState::new(BASE_RTT_US);
    let mut window = Window { cwnd_segs: 50, ssthresh_segs: 10 };
    state.round(&[60_000, 20_000, 60_000], &mut window);
    assert_eq!(window.cwnd_segs, 51);
    assert_eq!((state.min_rtt_us, state.base_rtt_us), (BASE_RTT_US, BASE_RTT_US));
}

#[test]
fn two_segments_are_left() {
    let window = Window { cwnd_segs: 2, ssthresh_segs: 2 };
    assert_eq!(round_at(200_000, window).cwnd_segs, 2);
}

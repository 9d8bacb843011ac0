use crate::native::IllinoisState;

const ALPHA_ONE: f64 = 128.0;
const BETA_ONE: f64 = 64.0;
const ALPHA_MIN: f64 = 0.3;
const ALPHA_MAX: f64 = 10.0;
const BETA_MIN: f64 = 0.125;
const BETA_MAX: f64 = 0.5;
const THETA: usize = 5;
const BASE_RTT_US: u32 = 10_000;
const LARGE_WINDOW_SEGS: u32 = 100;

/// A state with one round trip of the base delay and one of the largest.
fn with_range(max_delay_us: u32) -> IllinoisState {
    let mut state = IllinoisState::new();
    state.round(LARGE_WINDOW_SEGS, BASE_RTT_US);
    state.round(LARGE_WINDOW_SEGS, BASE_RTT_US + max_delay_us);
    state
}

/// f1 of the paper with eta_1 = 0.01, from its k1 and k2.
fn alpha(delay: f64, max_delay: f64) -> f64 {
    let d1 = max_delay / 100.0;
    if delay <= d1 {
        return ALPHA_MAX;
    }
    let share = (max_delay - d1) * ALPHA_MIN / (ALPHA_MAX - ALPHA_MIN);
    let (k1, k2) = (share * ALPHA_MAX, share - d1);
    k1 / (k2 + delay)
}

/// f2 of the paper with eta_2 = 0.1 and eta_3 = 0.8.
fn beta(delay: f64, max_delay: f64) -> f64 {
    let (d2, d3) = (max_delay / 10.0, max_delay * 0.8);
    if delay <= d2 {
        BETA_MIN
    } else if delay >= d3 {
        BETA_MAX
    } else {
        BETA_MIN + (BETA_MAX - BETA_MIN) * (delay - d2) / (d3 - d2)
    }
}

#[test]
fn alpha_and_beta_are_the_papers_functions_of_delay() {
    const MAX_DELAY_US: u32 = 20_000;
    for delay_us in (0..=MAX_DELAY_US).step_by(100) {
        let mut state = with_range(MAX_DELAY_US);
        // Alpha returns from the largest delay after theta round trips.
        for _ in 0..THETA {
            state.round(LARGE_WINDOW_SEGS, BASE_RTT_US + delay_us);
        }
        let exact = alpha(f64::from(delay_us), f64::from(MAX_DELAY_US));
        let got = f64::from(state.alpha) / ALPHA_ONE;
        // Linux rounds alpha_min down to 38/128, and then alpha.
        let allowed = exact * 0.015 + 1.0 / ALPHA_ONE;
        assert!((got - exact).abs() < allowed, "alpha({delay_us} us) is {got}, not {exact}");
        let exact = beta(f64::from(delay_us), f64::from(MAX_DELAY_US));
        let got = f64::from(state.beta) / BETA_ONE;
        assert!((got - exact).abs() <= 1.0 / BETA_ONE, "beta({delay_us} us): {got}, not {exact}");
    }
}

#[test]
fn alpha_returns_to_its_maximum_after_theta_round_trips() {
    let mut state = with_range(20_000);
    let low = state.alpha;
    assert!(f64::from(low) < ALPHA_ONE);
    for _ in 1..THETA {
        state.round(LARGE_WINDOW_SEGS, BASE_RTT_US);
        assert_eq!(state.alpha, low);
    }
    state.round(LARGE_WINDOW_SEGS, BASE_RTT_US);
    assert_eq!(f64::from(state.alpha), ALPHA_MAX * ALPHA_ONE);
}

#[test]
fn below_the_threshold_and_after_a_timeout_it_is_reno() {
    let mut small = with_range(20_000);
    small.round(14, BASE_RTT_US);
    let mut timed_out = with_range(20_000);
    timed_out.be_reno();
    for state in [small, timed_out] {
        assert_eq!(f64::from(state.alpha), ALPHA_ONE);
        assert_eq!(state.reduced_segs(14), 7);
        assert_eq!([13, 14].map(|acked_segs| state.growth_segs(14, acked_segs)), [0, 1]);
    }
    let mut at_threshold = with_range(20_000);
    at_threshold.round(15, BASE_RTT_US + 20_000);
    assert!(f64::from(at_threshold.alpha) < ALPHA_ONE);
}

#[test]
fn a_window_grows_by_alpha_in_a_round_trip_and_shrinks_by_beta() {
    let mut state = with_range(20_000);
    for _ in 0..THETA {
        state.round(LARGE_WINDOW_SEGS, BASE_RTT_US);
    }
    // Grows by 10 per window of 100; shrinks by 1/8.
    assert_eq!(state.growth_segs(100, 9), 0);
    assert_eq!(state.growth_segs(100, 10), 1);
    assert_eq!(state.growth_segs(100, 100), 10);
    assert_eq!(state.reduced_segs(80), 70);
    assert_eq!(state.reduced_segs(2), 2);
    state.round(LARGE_WINDOW_SEGS, BASE_RTT_US + 20_000);
    assert_eq!(state.reduced_segs(80), 40);
    assert_eq!(state.growth_segs(100, 333), 0);
    assert_eq!(state.growth_segs(100, 337), 1);
}

#[test]
fn a_path_of_constant_delay_has_no_queues() {
    let mut state = IllinoisState::new();
    for _ in 0..10 {
        state.round(LARGE_WINDOW_SEGS, BASE_RTT_US);
    }
    assert_eq!(f64::from(state.alpha), ALPHA_MAX * ALPHA_ONE);
    assert_eq!(f64::from(state.beta), BETA_MIN * BETA_ONE);
    assert_eq!((state.base_rtt_us, state.max_rtt_us), (BASE_RTT_US, BASE_RTT_US));
}

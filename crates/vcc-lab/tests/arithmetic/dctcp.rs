use crate::native::{dctcp_next_alpha, dctcp_reduced_segs};

const ALPHA_ONE: u32 = 1024;

/// RFC 8257, 3.3, steps 4 and 5, with g of 4.2.
fn next_alpha(alpha: f64, share: f64) -> f64 {
    const G: f64 = 1.0 / 16.0;
    alpha * (1.0 - G) + G * share
}

#[test]
fn alpha_is_the_moving_average_of_the_share_of_marks() {
    const WINDOW_SEGS: u32 = 160;
    for ce_segs in [0, 1, 10, 40, 80, 159, 160] {
        let share = f64::from(ce_segs) / f64::from(WINDOW_SEGS);
        for alpha in [16, 100, 512, 1023, 1024] {
            let exact = next_alpha(f64::from(alpha) / 1024.0, share) * 1024.0;
            let got = dctcp_next_alpha(alpha, WINDOW_SEGS, ce_segs);
            // Both terms are rounded down to 1/1024; the first one is subtracted.
            assert!((f64::from(got) - exact).abs() < 1.0, "{alpha} {ce_segs}: {got}, not {exact}");
        }
    }
}

#[test]
fn alpha_stays_within_0_and_1_and_reaches_both() {
    let after = |windows: u32, alpha: u32, ce_segs: u32| {
        (0..windows).fold(alpha, |alpha, _| dctcp_next_alpha(alpha, 10, ce_segs))
    };
    assert_eq!(after(200, ALPHA_ONE, 0), 0);
    assert_eq!(after(200, 0, 10), ALPHA_ONE);
    // Counters read at different times may report more marked than delivered.
    assert_eq!(dctcp_next_alpha(ALPHA_ONE, 0, 10), ALPHA_ONE);
    assert_eq!(dctcp_next_alpha(0, u32::MAX, u32::MAX), ALPHA_ONE / 16);
}

#[test]
fn a_reduction_is_by_half_of_alpha_and_leaves_two_segments() {
    assert_eq!(dctcp_reduced_segs(100, ALPHA_ONE), 50);
    assert_eq!(dctcp_reduced_segs(100, ALPHA_ONE / 2), 75);
    assert_eq!(dctcp_reduced_segs(100, ALPHA_ONE / 4), 88);
    assert_eq!(dctcp_reduced_segs(100, 0), 100);
    assert_eq!(dctcp_reduced_segs(3, ALPHA_ONE), 2);
    assert_eq!(dctcp_reduced_segs(2, ALPHA_ONE), 2);
    assert_eq!(dctcp_reduced_segs(u32::MAX, ALPHA_ONE), u32::MAX / 2 + 1);
}

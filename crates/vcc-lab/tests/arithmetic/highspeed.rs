use crate::native::{
    HIGHSPEED_ROWS, highspeed_a_segs, highspeed_reduced_segs, highspeed_row,
    highspeed_row_cwnd_segs,
};

/// RFC 3649, 5: Low_Window, High_Window and High_Decrease.
const LOW_WINDOW: f64 = 38.0;
const HIGH_WINDOW: f64 = 83_000.0;
const HIGH_DECREASE: f64 = 0.1;

/// b(w) of RFC 3649, 5.
fn b(cwnd_segs: f64) -> f64 {
    let of_range = (cwnd_segs / LOW_WINDOW).ln() / (HIGH_WINDOW / LOW_WINDOW).ln();
    (HIGH_DECREASE - 0.5) * of_range + 0.5
}

/// a(w) of RFC 3649, 5, with p(w) = 0.078 / w^1.2.
fn a(cwnd_segs: f64) -> f64 {
    let loss_rate = 0.078 / cwnd_segs.powf(1.2);
    cwnd_segs.powi(2) * loss_rate * 2.0 * b(cwnd_segs) / (2.0 - b(cwnd_segs))
}

#[test]
fn every_row_of_the_table_follows_the_response_function() {
    for row in 0..HIGHSPEED_ROWS {
        let cwnd_segs = highspeed_row_cwnd_segs(row);
        let growth_segs = f64::from(highspeed_a_segs(row));
        // The RFC's own table has the same error.
        let error = (a(f64::from(cwnd_segs)) - growth_segs).abs();
        assert!(error < 0.05, "a({cwnd_segs}) is {growth_segs}: off by {error}");
        let left = f64::from(highspeed_reduced_segs(1 << 20, row)) / f64::from(1 << 20);
        let error = (1.0 - left - b(f64::from(cwnd_segs))).abs();
        assert!(error < 1.0 / 256.0, "1 - b({cwnd_segs}) is {left}: off by {error}");
    }
}

/// RFC 3649, appendix B, as printed.
#[test]
fn rows_printed_in_the_rfc() {
    for (cwnd_segs, growth_segs, percent) in [
        (38, 1, 50),
        (118, 2, 44),
        (221, 3, 41),
        (347, 4, 38),
        (495, 5, 37),
        (1058, 8, 33),
        (10661, 30, 21),
        (38992, 55, 14),
        (89053, 72, 10),
    ] {
        let row = highspeed_row(cwnd_segs);
        assert_eq!(highspeed_a_segs(row), growth_segs, "a({cwnd_segs})");
        let left = highspeed_reduced_segs(cwnd_segs, row);
        let exact = cwnd_segs * (100 - percent) / 100;
        assert!(left.abs_diff(exact) <= cwnd_segs / 100 + 1, "b({cwnd_segs}) leaves {left}");
    }
}

#[test]
fn windows_between_rows_use_the_next_row_and_small_ones_are_standard_tcp() {
    assert_eq!([2, 38, 39, 118, 119].map(|cwnd_segs| highspeed_row(cwnd_segs)), [0, 0, 1, 1, 2]);
    assert_eq!([89_053, 89_054, u32::MAX].map(|cwnd_segs| highspeed_row(cwnd_segs)), [71, 71, 71]);
    assert_eq!(highspeed_reduced_segs(20, highspeed_row(20)), 10);
    assert_eq!(highspeed_reduced_segs(3, highspeed_row(3)), 2);
}

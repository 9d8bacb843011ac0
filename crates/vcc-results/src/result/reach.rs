//! Confidence interval of a median: runs are a sample of all possible runs.

use serde::{Deserialize, Serialize};

/// Confidence aimed at, where there are enough runs for it.
const WANTED_CERTAINTY: f64 = 0.9;

/// The interval in which the median of all possible runs lies, by the runs that were made.
///
/// Nothing is assumed of how runs are distributed: each lies above that median or below it, either
/// by a chance of one half. So it lies between the kth least and the kth greatest run, but for the
/// chance that fewer than k runs lie on one side of it (the sign test's interval). The least and
/// the greatest of three runs have it between them by 75 %, of five by 93.75 %; with eleven the
/// third least and the third greatest do.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Reach {
    pub low: f64,
    pub high: f64,
    /// From 0 to 1; 0 of a single run, which shows nothing about others.
    pub certainty: f64,
}

impl Reach {
    /// The narrowest interval with the confidence aimed at, or else that of all runs; none without
    /// runs.
    pub fn from_values(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len();
        let mut fewer = (1..count.div_ceil(2)).rev();
        let left_out = fewer.find(|&k| certainty(count, k) >= WANTED_CERTAINTY).unwrap_or(0);
        Some(Self {
            low: *sorted.get(left_out)?,
            high: *sorted.get(count - 1 - left_out)?,
            certainty: certainty(count, left_out),
        })
    }
}

/// Confidence of the interval that leaves out so many of `count` runs at either end.
fn certainty(count: usize, left_out: usize) -> f64 {
    let mut term = 0.5_f64.powi(count as i32);
    let mut tail = 0.0;
    for k in 0..=left_out {
        tail += term;
        term *= (count - k) as f64 / (k + 1) as f64;
    }
    (1.0 - 2.0 * tail).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach_of(count: u32) -> Reach {
        let values: Vec<f64> = (1..=count).rev().map(f64::from).collect();
        Reach::from_values(&values).unwrap()
    }

    /// By tables of the sign test.
    #[test]
    fn more_runs_are_surer_and_reach_less_far() {
        for (count, low, high, certainty) in [
            (1, 1.0, 1.0, 0.0),
            (2, 1.0, 2.0, 0.5),
            (3, 1.0, 3.0, 0.75),
            (5, 1.0, 5.0, 0.9375),
            (7, 1.0, 7.0, 0.984375),
            (8, 2.0, 7.0, 0.9296875),
            (11, 3.0, 9.0, 0.9345703125),
            // The fifth and the eleventh have it between them by 88 % only.
            (15, 4.0, 12.0, 0.96484375),
        ] {
            let reach = reach_of(count);
            assert_eq!((reach.low, reach.high, reach.certainty), (low, high, certainty));
        }
        let many = reach_of(1000);
        assert!(many.certainty >= WANTED_CERTAINTY && many.certainty < 0.92, "{many:?}");
        assert!(many.low > 470.0 && many.high < 530.0, "{many:?}");
        assert_eq!(Reach::from_values(&[]), None);
    }

    /// How often the interval of a sample contains the median of its distribution.
    #[test]
    fn it_holds_as_often_as_it_says() {
        // A generator of equally distributed numbers (Knuth's MMIX), of which the median is known.
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        for (count, claimed) in [(3, 0.75), (5, 0.9375), (11, 0.9346)] {
            let trials = 20_000;
            let held = (0..trials).filter(|_| {
                let values: Vec<f64> = (0..count).map(|_| next().powi(3)).collect();
                let reach = Reach::from_values(&values).unwrap();
                (reach.low..=reach.high).contains(&0.125)
            });
            let share = held.count() as f64 / f64::from(trials);
            assert!((share - claimed).abs() < 0.01, "{count} runs: {share}, not {claimed}");
        }
    }
}

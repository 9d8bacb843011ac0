//! A median, and the spread of the samples.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    pub median: f64,
    /// A tenth of the samples lies below, a tenth above.
    pub p10: f64,
    pub p90: f64,
    pub samples: usize,
}

impl Spread {
    /// All zeros where there are no samples.
    pub fn from_samples(mut samples: Vec<f64>) -> Self {
        samples.sort_unstable_by(f64::total_cmp);
        let last = samples.len().saturating_sub(1);
        let at = |percent: usize| samples.get((last * percent + 50) / 100).copied().unwrap_or(0.0);
        Self { median: at(50), p10: at(10), p90: at(90), samples: samples.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_not_means() {
        let samples = (1..=11).rev().chain([1000]).map(f64::from).collect();
        let expected = Spread { median: 7.0, p10: 2.0, p90: 11.0, samples: 12 };
        assert_eq!(Spread::from_samples(samples), expected);
        let expected = Spread { median: 5.0, p10: 5.0, p90: 5.0, samples: 1 };
        assert_eq!(Spread::from_samples(vec![5.0]), expected);
    }
}

//! Distributions of message sizes in datacenters. To add a trace, add a file like [`web_search`]
//! and a line to [`Trace`].

mod data_mining;
mod web_search;

use serde::{Deserialize, Serialize};

/// A size in bytes, and the percentage of messages that are not larger.
type Point = (u64, u64);

/// The number of different words.
const WORDS: u128 = 1 << 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trace {
    WebSearch,
    DataMining,
}

impl Trace {
    fn points(self) -> &'static [Point] {
        match self {
            Self::WebSearch => web_search::POINTS,
            Self::DataMining => data_mining::POINTS,
        }
    }

    /// The size at one place of the distribution, in bytes; at least one. Words that are evenly
    /// distributed give sizes that are distributed as in the trace, linearly between its points.
    pub fn size_bytes(self, word: u64) -> u64 {
        let points = self.points();
        let place = u128::from(word) * 100;
        let of = |(_, percent): Point| u128::from(percent) * WORDS;
        let upper = points.partition_point(|&point| of(point) <= place);
        let (before, after) = (points[upper - 1], points[upper]);
        let bytes =
            u128::from(after.0 - before.0) * (place - of(before)) / (of(after) - of(before));
        (before.0 + bytes as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vcc_net::random::mix;

    const TRACES: [Trace; 2] = [Trace::WebSearch, Trace::DataMining];

    #[test]
    fn every_word_has_a_size() {
        for trace in TRACES {
            let points = trace.points();
            assert!(points.is_sorted() && points[0] == (0, 0), "{trace:?}");
            assert_eq!(points.last().unwrap().1, 100);
            assert_eq!(trace.size_bytes(0), 1);
            let largest = trace.size_bytes(u64::MAX);
            assert!(largest <= points.last().unwrap().0 && largest > points.last().unwrap().0 / 2);
        }
    }

    #[test]
    fn points_are_met_and_joined_by_lines() {
        let at_percent = |trace: Trace, percent: u128| {
            trace.size_bytes((percent * WORDS / 100).try_into().unwrap())
        };
        assert_eq!(at_percent(Trace::WebSearch, 20), 19_999);
        assert_eq!(at_percent(Trace::WebSearch, 75), 1_500_000);
        assert_eq!(at_percent(Trace::DataMining, 80), 9_999);
        assert_eq!(at_percent(Trace::DataMining, 99), 549_999_999);
    }

    /// The means that these traces are known to have, to within what chance leaves of many.
    #[test]
    fn the_mean_is_the_traces() {
        const MESSAGES: u64 = 1_000_000;
        for (trace, mean_bytes) in TRACES.into_iter().zip([1_711_000, 12_660_000]) {
            let sum: u64 = (0..MESSAGES).map(|i| trace.size_bytes(mix(i))).sum();
            let error = (sum / MESSAGES).abs_diff(mean_bytes) as f64 / mean_bytes as f64;
            assert!(error < 0.01, "{trace:?}: {}", sum / MESSAGES);
        }
    }
}

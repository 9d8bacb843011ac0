//! Delay between the due time of each frame and its delivery to the kernel.

use serde::{Deserialize, Serialize};

/// One bin a microsecond; what is later than this many falls into the last.
const BINS: usize = 10_000;

#[derive(Debug, Clone)]
pub struct Lateness {
    bins: Vec<u64>,
    count: u64,
    max_ns: u64,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct LatenessSummary {
    pub p50_us: u64,
    pub p99_us: u64,
    pub max_us: u64,
}

impl Default for Lateness {
    fn default() -> Self {
        Self { bins: vec![0; BINS], count: 0, max_ns: 0 }
    }
}

impl Lateness {
    pub fn note(&mut self, late_ns: u64) {
        let bin = (late_ns / 1000).min(BINS as u64 - 1);
        self.bins[bin as usize] += 1;
        self.count += 1;
        self.max_ns = self.max_ns.max(late_ns);
    }

    /// The least whole microsecond that this share of the frames did not exceed.
    pub fn percentile_us(&self, share: f64) -> u64 {
        let wanted = (share * self.count as f64).ceil() as u64;
        let mut seen = 0;
        let bin = self.bins.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        bin.unwrap_or(0) as u64
    }

    pub fn summary(&self) -> LatenessSummary {
        LatenessSummary {
            p50_us: self.percentile_us(0.5),
            p99_us: self.percentile_us(0.99),
            max_us: self.max_ns / 1000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_a_known_set() {
        let mut lateness = Lateness::default();
        (1..=100).for_each(|us| lateness.note(us * 1000 + 500));
        assert_eq!(lateness.percentile_us(0.5), 50);
        assert_eq!(lateness.percentile_us(0.99), 99);
        lateness.note(50_000_000);
        assert_eq!(lateness.percentile_us(1.0), 9_999);
        assert_eq!(lateness.summary().max_us, 50_000);
    }

    #[test]
    fn nothing_noted_is_nothing_late() {
        assert_eq!(Lateness::default().summary().p99_us, 0);
    }
}

//! Interrupt moderation with jitter.
//!
//! Real hosts have independent and imprecise clocks. With identical ones, flows synchronise, and a
//! flow that always arrives first at a threshold-marking queue is marked less than the others for
//! seconds.

use vcc_net::random::SplitMix64;

pub(super) struct Moderation {
    every_ns: u64,
    random: SplitMix64,
}

impl Moderation {
    pub fn new(every_ns: u64, seed: u64) -> Self {
        Self { every_ns, random: SplitMix64::new(seed) }
    }

    /// `every_ns` on average, uniformly within half of it to either side.
    pub fn next_ns(&mut self) -> u64 {
        self.random.around(self.every_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varies_by_half_to_either_side_and_by_its_seed() {
        let times = |seed| {
            let mut moderation = Moderation::new(10_000, seed);
            (0..1000).map(|_| moderation.next_ns()).collect::<Vec<_>>()
        };
        assert_eq!(times(1), times(1));
        assert_ne!(times(1), times(2));
        assert!(times(1).iter().all(|ns| (5_000..15_000).contains(ns)));
        let mean_ns = times(1).iter().sum::<u64>() / 1000;
        assert!((9_700..10_300).contains(&mean_ns), "{mean_ns}");
        assert_eq!(Moderation::new(0, 1).next_ns(), 0);
    }
}

//! Histograms of the delays that a port has measured (`engine/histogram.h`).

use std::ops::AddAssign;

use crate::{Action, native, sys};

/// The two parts of the round trips of all connections at a port, since it was attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Delays(pub sys::vcc_delays);

impl Delays {
    /// Counts what the engine has measured by a segment.
    #[inline]
    pub fn count(&mut self, action: &Action) {
        // Few segments are samples.
        if action.fabric_us == 0 && action.guest_us == 0 {
            return;
        }
        // SAFETY: both point to live values of the C types for the length of the call.
        unsafe { native::delays_count(&mut self.0, action) };
    }

    pub fn fabric(&self) -> Histogram {
        Histogram(self.0.fabric)
    }

    pub fn guest(&self) -> Histogram {
        Histogram(self.0.guest)
    }
}

impl AddAssign<&Delays> for Delays {
    fn add_assign(&mut self, other: &Delays) {
        for (part, more) in
            [(&mut self.0.fabric, &other.0.fabric), (&mut self.0.guest, &other.0.guest)]
        {
            part.sum_us += more.sum_us;
            part.counts.iter_mut().zip(more.counts).for_each(|(count, more)| *count += more);
        }
    }
}

/// Delays by their length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Histogram(sys::vcc_histogram);

impl Histogram {
    pub const BUCKETS: usize = sys::HISTOGRAM_BUCKETS as usize;

    /// The upper bound of each bucket in us, which belongs to it; the last has none.
    pub fn bounds_us() -> impl Iterator<Item = Option<u32>> {
        let last = Self::BUCKETS - 1;
        (0..=last)
            .map(move |at| (at < last).then_some(1 << (sys::HISTOGRAM_LEAST_SHIFT as usize + at)))
    }

    pub fn counts(&self) -> &[u64; Self::BUCKETS] {
        &self.0.counts
    }

    /// The number of delays.
    pub fn count(&self) -> u64 {
        self.0.counts.iter().sum()
    }

    pub fn sum_us(&self) -> u64 {
        self.0.sum_us
    }

    /// The value that a share of the delays, from 0 to 1, does not exceed, as far as the buckets
    /// show: delays are taken to be spread evenly within a bucket. The least bound that the last
    /// bucket exceeds, if it is there. None without delays.
    pub fn quantile_us(&self, share: f64) -> Option<f64> {
        let all = self.count();
        let rank = share * all as f64;
        let (mut below, mut lower_us) = (0, 0);
        for (bound_us, count) in Self::bounds_us().zip(*self.counts()) {
            let Some(upper_us) = bound_us else { break };
            if count > 0 && (below + count) as f64 >= rank {
                let within = (rank - below as f64) / count as f64;
                return Some(f64::from(lower_us) + within * f64::from(upper_us - lower_us));
            }
            (below, lower_us) = (below + count, upper_us);
        }
        (all > 0).then_some(lower_us.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_guest(delays_us: &[u32]) -> Delays {
        let mut delays = Delays::default();
        for &guest_us in delays_us {
            delays.count(&Action { guest_us, ..Action::default() });
        }
        delays
    }

    #[test]
    fn a_delay_is_in_the_bucket_whose_bound_it_does_not_exceed() {
        for (at, bound_us) in Histogram::bounds_us().enumerate() {
            let lower_us = if at == 0 { 0 } else { 1 << (at + 3) };
            let upper_us = bound_us.unwrap_or(u32::MAX);
            for delay_us in [lower_us + 1, upper_us] {
                let counts = *of_guest(&[delay_us]).guest().counts();
                assert_eq!(counts.iter().position(|count| *count == 1), Some(at), "{delay_us} us");
            }
        }
    }

    #[test]
    fn each_part_is_counted_for_itself_and_nothing_is_not() {
        let mut delays = of_guest(&[31_000, 0]);
        delays.count(&Action { fabric_us: 200, guest_us: 20_000, ..Action::default() });
        assert_eq!((delays.guest().count(), delays.guest().sum_us()), (2, 51_000));
        assert_eq!((delays.fabric().count(), delays.fabric().sum_us()), (1, 200));
        let before = delays;
        delays += &before;
        assert_eq!((delays.guest().count(), delays.fabric().sum_us()), (4, 400));
    }

    #[test]
    fn quantiles_are_within_the_bucket() {
        assert_eq!(Delays::default().guest().quantile_us(0.5), None);
        let delays = of_guest(&[100, 100, 100, 100, 3_000_000]).guest();
        assert_eq!(delays.quantile_us(0.4), Some(64.0 + 0.5 * 64.0));
        assert_eq!(delays.quantile_us(0.8), Some(128.0));
        assert_eq!(delays.quantile_us(0.99), Some(f64::from(1 << 20)));
    }
}

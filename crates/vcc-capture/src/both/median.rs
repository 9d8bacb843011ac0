//! The median of many differences in time, of which a bounded number is kept.

/// An even number.
const KEPT: usize = 1 << 14;

/// Of more values than are kept, every second one, then every fourth one, and so on, is kept.
#[derive(Clone, Debug)]
pub(crate) struct Samples {
    kept_ns: Vec<i64>,
    stride: u64,
    seen: u64,
}

impl Default for Samples {
    fn default() -> Self {
        Self { kept_ns: Vec::new(), stride: 1, seen: 0 }
    }
}

impl Samples {
    pub(crate) fn add(&mut self, value_ns: i64) {
        let is_kept = self.seen % self.stride == 0;
        self.seen += 1;
        if !is_kept {
            return;
        }
        if self.kept_ns.len() == KEPT {
            let mut is_even = false;
            self.kept_ns.retain(|_| {
                is_even = !is_even;
                is_even
            });
            self.stride *= 2;
        }
        self.kept_ns.push(value_ns);
    }

    /// None without values.
    pub(crate) fn median_ns(mut self) -> Option<i64> {
        let middle = self.kept_ns.len() / 2;
        (!self.kept_ns.is_empty()).then(|| *self.kept_ns.select_nth_unstable(middle).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_few_and_of_many() {
        let median = |values: &mut dyn Iterator<Item = i64>| {
            let mut samples = Samples::default();
            values.for_each(|value| samples.add(value));
            assert!(samples.kept_ns.len() <= KEPT);
            samples.median_ns()
        };
        assert_eq!(median(&mut std::iter::empty()), None);
        assert_eq!(median(&mut [7, -5, 6].into_iter()), Some(6));
        let many = median(&mut (0..1_000_000)).expect("values");
        assert!((490_000..510_000).contains(&many), "{many}");
    }
}

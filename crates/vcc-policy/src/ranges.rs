//! Sets of numbers as ranges.

/// Inclusive ranges in ascending order, neither overlapping nor touching.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ranges(Vec<(u128, u128)>);

impl Ranges {
    pub fn new(ranges: impl IntoIterator<Item = (u128, u128)>) -> Self {
        let mut sorted: Vec<(u128, u128)> = ranges.into_iter().collect();
        sorted.sort_unstable();
        let mut merged: Vec<(u128, u128)> = Vec::with_capacity(sorted.len());
        for (first, last) in sorted {
            match merged.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => {
                    before.1 = before.1.max(last);
                }
                _ => merged.push((first, last)),
            }
        }
        Self(merged)
    }

    pub fn all() -> Self {
        Self(vec![(0, u128::MAX)])
    }

    pub fn iter(&self) -> impl Iterator<Item = (u128, u128)> {
        self.0.iter().copied()
    }

    /// Does it contain all of `other`?
    pub fn covers(&self, other: &Ranges) -> bool {
        other.0.iter().all(|(first, last)| {
            // Ranges do not touch, so only one can contain all of another.
            let after = self.0.partition_point(|range| range.0 <= *first);
            after.checked_sub(1).is_some_and(|at| *last <= self.0[at].1)
        })
    }

    pub fn meets(&self, other: &Ranges) -> bool {
        self.0.iter().any(|(first, last)| {
            let from = other.0.partition_point(|range| range.1 < *first);
            other.0.get(from).is_some_and(|range| range.0 <= *last)
        })
    }

    pub fn union<'a>(parts: impl IntoIterator<Item = &'a Ranges>) -> Self {
        Self::new(parts.into_iter().flat_map(|part| part.0.iter().copied()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touching_ranges_are_one() {
        let ranges = Ranges::new([(8, 9), (1, 3), (2, 5), (6, 6), (u128::MAX, u128::MAX)]);
        assert_eq!(ranges.0, [(1, 6), (8, 9), (u128::MAX, u128::MAX)]);
    }

    #[test]
    fn covering() {
        let ranges = Ranges::new([(1, 6), (8, 9)]);
        for (other, expected) in
            [((1, 6), true), ((2, 3), true), ((8, 9), true), ((6, 8), false), ((0, 1), false)]
        {
            assert_eq!(ranges.covers(&Ranges::new([other])), expected, "{other:?}");
        }
        assert!(Ranges::all().covers(&ranges));
        assert!(!ranges.covers(&Ranges::all()));
        assert!(ranges.meets(&Ranges::new([(7, 8)])) && !ranges.meets(&Ranges::new([(7, 7)])));
        assert!(Ranges::union([&ranges, &Ranges::new([(7, 7)])]).covers(&Ranges::new([(1, 9)])));
    }
}

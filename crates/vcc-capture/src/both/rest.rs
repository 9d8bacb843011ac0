//! The part of a segment that has no counterpart yet.

use std::ops::Range;

/// Ranges of sequence numbers, as offsets from the segment's first one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rest(Vec<Range<u32>>);

impl Rest {
    pub(crate) fn whole(numbers: u32) -> Self {
        let all = 0..numbers;
        Self(if all.is_empty() { Vec::new() } else { vec![all] })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn numbers(&self) -> u32 {
        self.0.iter().map(|range| range.end - range.start).sum()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// The first range that both have; `distance` is how far the other segment begins behind this one. The
    /// range is in offsets of this one.
    pub(crate) fn shared(&self, other: &Self, distance: i64) -> Option<Range<u32>> {
        let shared = |one: &Range<u32>, other: &Range<u32>| {
            let start = i64::from(one.start).max(i64::from(other.start) + distance);
            let end = i64::from(one.end).min(i64::from(other.end) + distance);
            (start < end).then_some(start as u32..end as u32)
        };
        self.0.iter().find_map(|one| other.0.iter().find_map(|other| shared(one, other)))
    }

    pub(crate) fn remove(&mut self, part: &Range<u32>) {
        let cut = |range: &Range<u32>| {
            [
                range.start..range.end.min(part.start).max(range.start),
                range.start.max(part.end).min(range.end)..range.end,
            ]
        };
        let left: Vec<Range<u32>> = self.0.iter().flat_map(cut).collect();
        self.0 = left.into_iter().filter(|range| !range.is_empty()).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(rest: &Rest) -> Vec<(u32, u32)> {
        rest.0.iter().map(|range| (range.start, range.end)).collect()
    }

    #[test]
    fn parts_are_removed_from_any_place() {
        let mut rest = Rest::whole(100);
        rest.remove(&(0..10));
        rest.remove(&(40..60));
        assert_eq!((rest.numbers(), ranges(&rest)), (70, vec![(10, 40), (60, 100)]));
        rest.remove(&(5..70));
        assert_eq!(ranges(&rest), [(70, 100)]);
        rest.remove(&(70..100));
        assert!(rest.is_empty() && Rest::whole(0).is_empty());
    }

    #[test]
    fn shared_ranges_have_offsets_of_the_first() {
        let (one, mut other) = (Rest::whole(100), Rest::whole(50));
        assert_eq!(one.shared(&other, 0), Some(0..50));
        assert_eq!(one.shared(&other, 80), Some(80..100));
        assert_eq!(one.shared(&other, -20), Some(0..30));
        assert_eq!(one.shared(&other, 100), None);
        assert_eq!(one.shared(&other, -50), None);
        other.remove(&(0..30));
        assert_eq!(one.shared(&other, -20), Some(10..30));
    }
}

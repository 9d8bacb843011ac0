/// A set of disjoint half-open ranges of stream offsets, in order.
#[derive(Default)]
pub struct Ranges(Vec<(i64, i64)>);

impl Ranges {
    pub fn insert(&mut self, start: i64, end: i64) {
        if start >= end {
            return;
        }
        self.0.push((start, end));
        self.0.sort_unstable();
        let mut merged: Vec<(i64, i64)> = Vec::with_capacity(self.0.len());
        for &(start, end) in &self.0 {
            match merged.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => merged.push((start, end)),
            }
        }
        self.0 = merged;
    }

    /// Removes everything below `floor`.
    pub fn trim(&mut self, floor: i64) {
        self.0.retain(|range| range.1 > floor);
        if let Some(first) = self.0.first_mut() {
            first.0 = first.0.max(floor);
        }
    }

    /// The end of the range that starts at or before `offset`, or `offset` if there is none.
    pub fn end_from(&self, offset: i64) -> i64 {
        let inside = self.0.iter().find(|range| range.0 <= offset && offset < range.1);
        inside.map_or(offset, |range| range.1)
    }

    /// The start of the first range after `offset`.
    pub fn next_start(&self, offset: i64) -> Option<i64> {
        self.0.iter().map(|range| range.0).find(|&start| start > offset)
    }

    pub fn around(&self, offset: i64) -> Option<(i64, i64)> {
        self.0.iter().copied().find(|range| range.0 <= offset && offset < range.1)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}

//! The segments that wait for their counterparts, of all connections, within a bound.

use std::collections::BTreeMap;

use super::captured::Captured;
use super::face::{ByFace, Face};

/// Of each side: one file may be so far ahead of the other.
pub const WAITING_MAX_BYTES: usize = 4 << 20;
/// What a segment takes besides its payload.
const SEGMENT_BYTES: usize = 512;

/// A lane by its connection's index, and by whether the segments are of the first of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaneKey {
    pub connection: usize,
    pub from_first: bool,
}

/// In the order in which they came.
#[derive(Default)]
pub(crate) struct Room {
    arrivals: u64,
    waiting: ByFace<BTreeMap<u64, LaneKey>>,
    bytes: ByFace<usize>,
}

impl Room {
    /// Returns the number by which the segment leaves.
    pub(crate) fn enter(&mut self, face: Face, lane: LaneKey, segment: &Captured) -> u64 {
        self.arrivals += 1;
        self.waiting[face].insert(self.arrivals, lane);
        self.bytes[face] += bytes(segment);
        self.arrivals
    }

    pub(crate) fn leave(&mut self, face: Face, arrival: u64, segment: &Captured) {
        if self.waiting[face].remove(&arrival).is_some() {
            self.bytes[face] -= bytes(segment);
        }
    }

    pub(crate) fn is_full(&self, face: Face) -> bool {
        self.bytes[face] > WAITING_MAX_BYTES
    }

    /// The lane of the segment that has waited longest.
    pub(crate) fn oldest(&self, face: Face) -> Option<LaneKey> {
        self.waiting[face].first_key_value().map(|(_, lane)| *lane)
    }
}

fn bytes(segment: &Captured) -> usize {
    SEGMENT_BYTES + segment.payload.len()
}

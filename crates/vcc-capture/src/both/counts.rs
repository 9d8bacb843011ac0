//! What was compared, and what was found.

use super::change::{Change, Changes, count};
use super::face::{ByDirection, ByFace};
use super::payload::PayloadCounts;

/// Segments without a counterpart, or with one for a part of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Alone {
    pub segments: u64,
    /// Without a counterpart.
    pub payload_bytes: u64,
}

/// Of a connection, or of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// A super-segment is one.
    pub segments: ByFace<u64>,
    /// Segments that are on both sides. A super-segment has a pair with each of its parts.
    pub pairs: u64,
    /// Pairs of which only the payload was compared, because they may be two copies of the same bytes.
    pub copies: u64,
    pub payload: PayloadCounts,
    /// By pairs.
    pub changes: Changes,
    pub alone: ByDirection<ByFace<Alone>>,
    /// Of those on the fabric's side alone, reports from one vcc to another (FACK).
    pub reports: ByDirection<u64>,
    /// Segments that were not compared, because the other file was too far behind.
    pub given_up: Alone,
    /// Differences that vcc does not make.
    pub errors: u64,
}

impl Counts {
    pub(crate) fn note(&mut self, change: Change) {
        count(&mut self.changes, change, 1);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (sum, more) in [
            (&mut self.segments.guest, other.segments.guest),
            (&mut self.segments.fabric, other.segments.fabric),
            (&mut self.pairs, other.pairs),
            (&mut self.copies, other.copies),
            (&mut self.reports.from_guest, other.reports.from_guest),
            (&mut self.reports.to_guest, other.reports.to_guest),
            (&mut self.errors, other.errors),
        ] {
            *sum += more;
        }
        self.payload.add(&other.payload);
        for (change, made) in &other.changes {
            count(&mut self.changes, *change, *made);
        }
        self.alone.from_guest.add(&other.alone.from_guest);
        self.alone.to_guest.add(&other.alone.to_guest);
        self.given_up.add(&other.given_up);
    }
}

impl Alone {
    pub(crate) fn note(&mut self, payload_bytes: u64) {
        self.add(&Self { segments: 1, payload_bytes });
    }

    fn add(&mut self, other: &Self) {
        self.segments += other.segments;
        self.payload_bytes += other.payload_bytes;
    }
}

impl ByFace<Alone> {
    fn add(&mut self, other: &Self) {
        self.guest.add(&other.guest);
        self.fabric.add(&other.fabric);
    }
}

//! One direction of a connection: the segments of either side that wait for their counterparts.

use std::collections::VecDeque;
use std::ops::Range;

use super::captured::Captured;
use super::face::{ByFace, Face};
use super::likeness::{Neighbour, has_same_id, is_alike, is_copy, is_identified, is_nearly_alike};
use super::rest::Rest;
use super::room::{LaneKey, Room};

/// A segment without a counterpart has none if so many segments behind it have theirs.
const OVERTAKEN: u64 = 1024;

/// A segment that waits.
pub(crate) struct Waiting {
    pub segment: Captured,
    pub rest: Rest,
    /// In the room.
    arrival: u64,
    /// Within its lane and side.
    order: u64,
    before: Option<Neighbour>,
    behind: Option<Neighbour>,
}

impl Waiting {
    fn is_whole(&self) -> bool {
        self.rest.numbers() == self.segment.numbers()
    }
}

/// Segments of the two sides that are the same, and the sequence numbers that both have.
pub(crate) struct Pair<'a> {
    pub segments: ByFace<&'a Captured>,
    /// Offsets from the first number of each.
    pub ranges: ByFace<Range<u32>>,
    pub likeness: Likeness,
}

/// What two segments with the same sequence numbers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Likeness {
    Same,
    /// Maybe another copy: only its payload must be the same.
    Copy,
}

impl Pair<'_> {
    /// Do the two have other sequence numbers?
    pub(crate) fn is_moved(&self) -> bool {
        let [guest, fabric] =
            Face::BOTH.map(|face| self.segments[face].seq.wrapping_add(self.ranges[face].start));
        guest != fabric
    }

    /// Of the two, has neither been cut in front of what they share?
    pub(crate) fn begins(&self) -> bool {
        Face::BOTH.iter().all(|face| self.ranges[*face].start == 0)
    }
}

/// Why a segment waits no longer, without a counterpart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is on one side only.
    Alone,
    /// The other file is too far behind.
    GivenUp,
}

type Found<'a> = dyn FnMut(Pair) + 'a;

pub(crate) struct Lane {
    key: LaneKey,
    waiting: ByFace<VecDeque<Waiting>>,
    /// The number of segments so far.
    orders: ByFace<u64>,
    /// The last one that has a counterpart.
    paired: ByFace<u64>,
    last: ByFace<Option<Neighbour>>,
}

impl Lane {
    pub(crate) fn new(key: LaneKey) -> Self {
        let (waiting, orders, paired, last) = Default::default();
        Self { key, waiting, orders, paired, last }
    }

    /// Looks for the segment's counterparts. What is left of it waits.
    pub(crate) fn take(
        &mut self,
        face: Face,
        segment: Captured,
        room: &mut Room,
        found: &mut Found,
    ) {
        self.orders[face] += 1;
        let order = self.orders[face];
        let behind = Neighbour::behind(&segment);
        if let Some(last) = self.waiting[face].back_mut().filter(|last| last.order + 1 == order) {
            last.behind = Some(behind);
        }
        let before = self.last[face].replace(Neighbour::before(&segment));
        let rest = Rest::whole(segment.numbers());
        let mut new = Waiting { segment, rest, arrival: 0, order, before, behind: None };
        let is_paired = match new.segment.is_empty() {
            true => self.pair_empty(face, &mut new, room, found),
            false => self.pair_ranges(face, &mut new, room, found, if_alike),
        };
        if !is_paired {
            new.arrival = room.enter(face, self.key, &new.segment);
            self.waiting[face].push_back(new);
        }
    }

    /// Removes the next segment, the oldest first, that others have overtaken.
    pub(crate) fn take_overtaken(&mut self, face: Face, room: &mut Room) -> Option<Waiting> {
        let first = self.waiting[face].front()?;
        (first.order + OVERTAKEN < self.paired[face]).then(|| self.remove(face, 0, room)).flatten()
    }

    /// Removes the segment that has waited longest.
    pub(crate) fn take_first(&mut self, face: Face, room: &mut Room) -> Option<(Waiting, Fate)> {
        let first = self.remove(face, 0, room)?;
        let is_overtaken = first.order < self.paired[face];
        Some((first, if is_overtaken { Fate::Alone } else { Fate::GivenUp }))
    }

    /// Pairs a segment that waits no longer with one that waits on the other side, and differs from it. Returns
    /// what is left.
    pub(crate) fn pair_changed(
        &mut self,
        face: Face,
        mut waiting: Waiting,
        room: &mut Room,
        found: &mut Found,
    ) -> Option<Waiting> {
        if self.pair_nearly_alike(face, &waiting, room, found) {
            return None;
        }
        let is_paired = !waiting.segment.is_empty()
            && self.pair_ranges(face, &mut waiting, room, found, if_overlapping);
        (!is_paired).then_some(waiting)
    }

    /// Looks for a segment at the same place that differs in one way.
    fn pair_nearly_alike(
        &mut self,
        face: Face,
        waiting: &Waiting,
        room: &mut Room,
        found: &mut Found,
    ) -> bool {
        let other = face.other();
        let is_counterpart = |it: &Waiting| {
            it.is_whole()
                && waiting.is_whole()
                && has_same_place(waiting, it)
                && is_nearly_alike(&waiting.segment, &it.segment)
        };
        let at = self.waiting[other].iter().position(is_counterpart);
        let Some(counterpart) = at.and_then(|at| self.remove(other, at, room)) else {
            return false;
        };
        let segments = [&waiting.segment, &counterpart.segment];
        let whole = segments.map(|segment| 0..segment.numbers());
        found(pair(face, segments, whole, Likeness::Same));
        true
    }

    fn remove(&mut self, face: Face, at: usize, room: &mut Room) -> Option<Waiting> {
        let removed = self.waiting[face].remove(at)?;
        room.leave(face, removed.arrival, &removed.segment);
        Some(removed)
    }

    fn note_paired(&mut self, face: Face, orders: [u64; 2]) {
        let [own, others] = orders;
        self.paired[face] = self.paired[face].max(own);
        self.paired[face.other()] = self.paired[face.other()].max(others);
    }

    fn pair_empty(
        &mut self,
        face: Face,
        new: &mut Waiting,
        room: &mut Room,
        found: &mut Found,
    ) -> bool {
        let other = face.other();
        let alike = |it: &Waiting| is_alike(&new.segment, &it.segment);
        let same = |it: &Waiting| alike(it) && has_same_id(&new.segment, &it.segment);
        let waiting = &self.waiting[other];
        let at = waiting.iter().position(same).or_else(|| waiting.iter().position(alike));
        let Some(counterpart) = at.and_then(|at| self.remove(other, at, room)) else {
            return false;
        };
        found(pair(face, [&new.segment, &counterpart.segment], [0..0, 0..0], Likeness::Same));
        self.note_paired(face, [new.order, counterpart.order]);
        true
    }

    /// Is all of the segment paired?
    fn pair_ranges(
        &mut self,
        face: Face,
        new: &mut Waiting,
        room: &mut Room,
        found: &mut Found,
        likeness: fn(&Waiting, &Waiting) -> Option<Likeness>,
    ) -> bool {
        let other = face.other();
        let mut at = 0;
        while !new.rest.is_empty() && at < self.waiting[other].len() {
            let counterpart = &mut self.waiting[other][at];
            let order = counterpart.order;
            let is_paired = likeness(new, counterpart)
                .is_some_and(|likeness| pair_shared(face, new, counterpart, likeness, found));
            if is_paired {
                self.note_paired(face, [new.order, order]);
            }
            if self.waiting[other][at].rest.is_empty()
                && !self.waiting[other][at].segment.is_empty()
            {
                self.remove(other, at, room);
            } else {
                at += 1;
            }
        }
        new.rest.is_empty()
    }
}

fn if_alike(one: &Waiting, other: &Waiting) -> Option<Likeness> {
    is_alike(&one.segment, &other.segment).then_some(Likeness::Same)
}

/// A segment with other acknowledgements or timestamps has changed if it is recognised besides, or else it is
/// another copy of the same bytes.
fn if_overlapping(one: &Waiting, other: &Waiting) -> Option<Likeness> {
    let is_same = is_identified(&one.segment, &other.segment) || has_same_place(one, other);
    is_copy(&one.segment, &other.segment).then_some(match is_same {
        true => Likeness::Same,
        false => Likeness::Copy,
    })
}

/// Pairs all that two segments share. Do they share anything?
fn pair_shared(
    face: Face,
    one: &mut Waiting,
    other: &mut Waiting,
    likeness: Likeness,
    found: &mut Found,
) -> bool {
    let distance = i64::from(other.segment.seq.wrapping_sub(one.segment.seq) as i32);
    let mut is_any = false;
    while let Some(range) = one.rest.shared(&other.rest, distance) {
        let shift = |number: u32| (i64::from(number) - distance) as u32;
        let others = shift(range.start)..shift(range.end);
        one.rest.remove(&range);
        other.rest.remove(&others);
        found(pair(face, [&one.segment, &other.segment], [range, others], likeness));
        is_any = true;
    }
    // If only one has a FIN, the pair shows it.
    if is_any && distance == 0 && one.segment.payload_bytes == other.segment.payload_bytes {
        one.rest.clear();
        other.rest.clear();
    }
    is_any
}

fn has_same_place(one: &Waiting, other: &Waiting) -> bool {
    (one.before.is_some() && one.before == other.before)
        || (one.behind.is_some() && one.behind == other.behind)
}

/// Of a segment of `face`, and one of the other side.
fn pair<'a>(
    face: Face,
    segments: [&'a Captured; 2],
    ranges: [Range<u32>; 2],
    likeness: Likeness,
) -> Pair<'a> {
    let ([one, other], [range, others]) = (segments, ranges);
    let (segments, ranges) = match face {
        Face::Guest => {
            (ByFace { guest: one, fabric: other }, ByFace { guest: range, fabric: others })
        }
        Face::Fabric => {
            (ByFace { guest: other, fabric: one }, ByFace { guest: others, fabric: range })
        }
    };
    Pair { segments, ranges, likeness }
}

#[cfg(test)]
mod tests {
    use super::super::testing::captured;
    use super::*;

    struct Both {
        lane: Lane,
        room: Room,
    }

    impl Both {
        fn new() -> Self {
            let key = LaneKey { connection: 0, from_first: true };
            Self { lane: Lane::new(key), room: Room::default() }
        }

        /// Takes data, and returns the ranges of the guest's side that it shares.
        fn take(&mut self, face: Face, seq: u32, bytes: u32) -> Vec<(u32, u32)> {
            let segment = captured(|it| (it.seq, it.payload_bytes) = (seq, bytes));
            let mut ranges = Vec::new();
            self.lane.take(face, segment, &mut self.room, &mut |pair| {
                assert!(!pair.is_moved());
                ranges.push((pair.ranges.guest.start, pair.ranges.guest.end));
            });
            ranges
        }
    }

    #[test]
    fn ranges_are_paired_once() {
        let mut both = Both::new();
        let start = u32::MAX - 999;
        assert!(both.take(Face::Guest, start, 3000).is_empty());
        assert_eq!(both.take(Face::Fabric, 0, 1000), [(1000, 2000)]);
        assert!(both.take(Face::Fabric, 0, 1000).is_empty(), "a copy waits for another");
        assert_eq!(both.take(Face::Fabric, start, 1500), [(0, 1000)]);
        assert_eq!(both.take(Face::Fabric, 1000, 1000), [(2000, 3000)]);
        assert_eq!(both.take(Face::Guest, 0, 1000), [(0, 1000)]);
        assert_eq!(both.take(Face::Guest, 0, 500), [(0, 500)], "the rest of another cut");
        assert!(
            both.room.oldest(Face::Guest).is_none() && both.room.oldest(Face::Fabric).is_none()
        );
    }

    /// Acknowledgements differ, so that only payload is compared, unless the identification is the same.
    #[test]
    fn the_same_bytes_are_paired_in_the_end() {
        for (id, likeness) in [(1, Likeness::Same), (2, Likeness::Copy)] {
            let mut both = Both::new();
            both.take(Face::Guest, 0, 30);
            let other = captured(|it| {
                (it.seq, it.payload_bytes, it.ack) = (10, 10, 7);
                it.ip.ipv4_id = Some(id);
            });
            both.lane.take(Face::Fabric, other, &mut both.room, &mut |_| panic!("not alike"));
            let (first, _) = both.lane.take_first(Face::Guest, &mut both.room).expect("one");
            let mut pairs = Vec::new();
            let left = both.lane.pair_changed(Face::Guest, first, &mut both.room, &mut |pair| {
                pairs.push((pair.ranges.guest.start, pair.ranges.guest.end, pair.likeness));
            });
            assert_eq!(pairs, [(10, 20, likeness)]);
            assert_eq!(left.map(|left| left.rest.numbers()), Some(20));
            assert!(both.room.oldest(Face::Fabric).is_none());
        }
    }

    #[test]
    fn a_segment_is_alone_if_others_have_overtaken_it() {
        let mut both = Both::new();
        both.take(Face::Guest, 0, 10);
        let first = both.lane.take_first(Face::Guest, &mut both.room).expect("one that waits");
        assert_eq!(first.1, Fate::GivenUp);
        both.take(Face::Guest, 10, 10);
        both.take(Face::Guest, 20, 10);
        both.take(Face::Fabric, 20, 10);
        assert!(both.lane.take_overtaken(Face::Guest, &mut both.room).is_none());
        for segment in 0..OVERTAKEN as u32 {
            for face in Face::BOTH {
                both.take(face, 30 + segment * 10, 10);
            }
        }
        let overtaken = both.lane.take_overtaken(Face::Guest, &mut both.room).expect("one");
        assert_eq!(overtaken.segment.seq, 10);
        both.take(Face::Fabric, 7, 0);
        both.take(Face::Fabric, 8, 0);
        assert!(both.take(Face::Guest, 8, 0).len() == 1);
        let (alone, fate) = both.lane.take_first(Face::Fabric, &mut both.room).expect("one");
        assert_eq!((alone.segment.seq, fate), (7, Fate::Alone));
        assert!(both.lane.take_first(Face::Fabric, &mut both.room).is_none());
    }
}

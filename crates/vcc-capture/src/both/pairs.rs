//! Pairs of segments, compared and counted.

use super::captured::Captured;
use super::connection::Watched;
use super::counts::Counts;
use super::delays::{Delays, Times};
use super::difference::{DIFFERENCES_MAX, Difference};
use super::face::{ByFace, Direction, Face};
use super::field::Field;
use super::headers::{Finding, Passed};
use super::lane::{Fate, Likeness, Pair, Waiting};
use super::order::Order;
use super::payload;
use super::room::{LaneKey, Room};

#[derive(Default)]
pub(crate) struct Pairs {
    differences: Vec<Difference>,
    times: Times,
}

impl Pairs {
    /// Pairs a segment with what waits on the other side, or lets it wait.
    pub(crate) fn take(
        &mut self,
        watched: &mut Watched,
        key: LaneKey,
        face: Face,
        segment: Captured,
        room: &mut Room,
        order: &mut Order,
    ) {
        let way = Way::new(watched, key);
        let (lane, counts) = watched.lane_and_counts(key);
        lane.take(face, segment, room, &mut |pair| {
            order.note(times_ns(&pair));
            self.compare(way, counts, &pair);
        });
    }

    /// Counts a segment that waits no longer, unless a changed one is its counterpart.
    pub(crate) fn release(
        &mut self,
        watched: &mut Watched,
        key: LaneKey,
        face: Face,
        waiting: Waiting,
        fate: Fate,
        room: &mut Room,
    ) {
        let way = Way::new(watched, key);
        let (lane, counts) = watched.lane_and_counts(key);
        let left =
            lane.pair_changed(face, waiting, room, &mut |pair| self.compare(way, counts, &pair));
        let Some(Waiting { segment, rest, .. }) = left else { return };
        let bytes = u64::from(rest.numbers().min(segment.payload_bytes));
        match fate {
            Fate::GivenUp => counts.given_up.note(bytes),
            Fate::Alone => {
                counts.alone[way.direction][face].note(bytes);
                let is_report = face == Face::Fabric && segment.options.has_fack();
                counts.reports[way.direction] += u64::from(is_report);
            }
        }
    }

    fn compare(&mut self, way: Way, counts: &mut Counts, pair: &Pair) {
        match pair.likeness {
            Likeness::Same => self.compare_headers(way, counts, pair),
            Likeness::Copy => counts.copies += 1,
        }
        let (bytes, different) = payload::compare(pair.segments, &pair.ranges);
        counts.payload.add(&bytes);
        if let Some(byte) = different {
            let text = |byte: u8| format!("{byte:#04x}");
            let values = ByFace { guest: text(byte.bytes.guest), fabric: text(byte.bytes.fabric) };
            self.complain(way, counts, pair, Field::Payload { at: byte.at }, values);
        }
    }

    fn compare_headers(&mut self, way: Way, counts: &mut Counts, pair: &Pair) {
        counts.pairs += 1;
        if pair.begins() {
            self.times.add(way.direction, times_ns(pair));
        }
        let entrance = way.direction.entrance();
        let passed = Passed {
            direction: way.direction,
            before: pair.segments[entrance],
            after: pair.segments[entrance.other()],
            is_moved: pair.is_moved(),
        };
        passed.compare(&mut |finding| match finding {
            Finding::Named(change) => counts.note(change),
            Finding::Unnamed(field, values) => {
                self.complain(way, counts, pair, field, way.by_face(values));
            }
        });
    }

    fn complain(
        &mut self,
        way: Way,
        counts: &mut Counts,
        pair: &Pair,
        field: Field,
        values: ByFace<String>,
    ) {
        counts.errors += 1;
        if self.differences.len() >= DIFFERENCES_MAX {
            return;
        }
        let ByFace { guest, fabric } = pair.segments;
        let offsets = ByFace { guest: guest.offset, fabric: fabric.offset };
        let seq = pair.segments[way.direction.entrance()].seq;
        let Way { direction, from, to } = way;
        self.differences.push(Difference { from, to, direction, seq, field, values, offsets });
    }

    pub(crate) fn end(self) -> (Vec<Difference>, Delays) {
        (self.differences, self.times.delays())
    }
}

/// The way of a lane's segments.
#[derive(Clone, Copy)]
struct Way {
    direction: Direction,
    from: std::net::SocketAddr,
    to: std::net::SocketAddr,
}

impl Way {
    fn new(watched: &Watched, key: LaneKey) -> Self {
        let direction = watched.direction(key.from_first);
        let (first, second) = watched.ends;
        let (from, to) = if key.from_first { (first, second) } else { (second, first) };
        Self { direction, from, to }
    }

    /// The values in front of the port and behind it, by sides.
    fn by_face(self, [before, after]: [String; 2]) -> ByFace<String> {
        match self.direction {
            Direction::FromGuest => ByFace { guest: before, fabric: after },
            Direction::ToGuest => ByFace { guest: after, fabric: before },
        }
    }
}

fn times_ns(pair: &Pair) -> ByFace<u64> {
    let ByFace { guest, fabric } = pair.segments;
    ByFace { guest: guest.time_ns, fabric: fabric.time_ns }
}

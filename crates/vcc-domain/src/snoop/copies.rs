//! Copies of what was promised, and of what lies behind a hole. A guest that discards what was in
//! its ring, because it lacks memory or takes no more connections, gets it again.

use std::collections::VecDeque;

use super::stored::{Current, Stored, emptied, renewed};
use crate::frame::Frame;
use crate::parse::Parsed;
use crate::spare::Spare;
use vcc_net::seq::{after, before};

/// The first wait for an acknowledgement of the guest's own, which doubles (RFC 6298, 2.1 and 5.5).
const WAIT_NS: u64 = 1_000_000_000;
const WAIT_MAX_NS: u64 = 60 * WAIT_NS;

/// A flow's copies in sequence. Without any, they take no memory of their own.
#[derive(Clone, Default)]
pub(crate) struct Copies {
    /// None within another, so in order of their ends, too.
    stored: VecDeque<Stored>,
    /// So many in front had been given to the guest when one was given last.
    given_count: usize,
    /// When the guest last acknowledged some, or the first of them was promised.
    progress_ns: u64,
    /// When the guest was last given one again, if it was.
    again_ns: Option<u64>,
    /// How often since it last acknowledged any, and how often of these it has sent something since
    /// and has not taken it.
    times: u32,
    refusals: u32,
    /// When the guest was last asked for its window, and how often since its last acknowledgement.
    probed_ns: Option<u64>,
    probes: u32,
}

/// The list of a flow that has no copies any more, for the next one that keeps some. Most guests acknowledge
/// all that they have again and again, and to grow a new one takes longer than to fill it.
#[derive(Default)]
pub(crate) struct SpareList(VecDeque<Stored>);

/// A longer one is not kept.
const SPARE_LIST_MAX: usize = 256;

/// A copy of the port begins without.
impl Clone for SpareList {
    fn clone(&self) -> Self {
        SpareList::default()
    }
}

impl SpareList {
    fn take(&mut self, list: VecDeque<Stored>) {
        debug_assert!(list.is_empty());
        if (self.0.capacity()..=SPARE_LIST_MAX).contains(&list.capacity()) {
            self.0 = list;
        }
    }
}

/// The next copy that the guest gets.
pub(crate) struct Next {
    place: usize,
    /// One past the end of its data.
    pub end: u32,
    /// The payload of its full segments.
    pub seg_bytes: u32,
}

impl Copies {
    pub(crate) fn is_empty(&self) -> bool {
        self.stored.is_empty()
    }

    /// In sequence.
    pub(crate) fn frames(&self) -> impl Iterator<Item = &Frame> {
        self.stored.iter().map(Stored::frame)
    }

    /// Keeps a frame with data, unless all of it is there, in place of those that have no more. Returns
    /// its bytes of the port's limit, and those that are free again.
    #[inline]
    pub(crate) fn keep(
        &mut self,
        frame: Frame,
        parsed: &Parsed,
        spare: &mut SpareList,
    ) -> (u32, u32) {
        if self.stored.capacity() == 0 {
            self.stored = std::mem::take(&mut spare.0);
        }
        let seq = parsed.segment.seq;
        let end = seq.wrapping_add(parsed.segment.payload_bytes);
        // Mostly it follows the others.
        let is_last = |last: &Stored| after(seq, last.seq) && after(end, last.end);
        if self.stored.back().is_none_or(is_last) {
            let copied = Stored::new(frame, parsed);
            let kept_bytes = copied.charge_bytes();
            self.stored.push_back(copied);
            return (kept_bytes, 0);
        }
        self.keep_among(frame, parsed)
    }

    /// The same, of one that does not follow the others.
    fn keep_among(&mut self, frame: Frame, parsed: &Parsed) -> (u32, u32) {
        let seq = parsed.segment.seq;
        let end = seq.wrapping_add(parsed.segment.payload_bytes);
        if self.covered(seq, end) == end {
            return (0, 0);
        }
        let copied = Stored::new(frame, parsed);
        let kept_bytes = copied.charge_bytes();
        let place = self.stored.partition_point(|other| before(other.seq, seq));
        let nested = self.stored.range(place..).take_while(|other| !after(other.end, end)).count();
        let freed_bytes =
            self.stored.drain(place..place + nested).map(|copied| copied.charge_bytes()).sum();
        self.stored.insert(place, copied);
        (kept_bytes, freed_bytes)
    }

    /// Are there copies of what lies beyond it, perhaps behind a hole?
    #[inline]
    pub(crate) fn reach_beyond(&self, nxt: u32) -> bool {
        self.stored.back().is_some_and(|last| after(last.end, nxt))
    }

    /// How far there are copies without a gap behind `from`, at most up to `end`.
    pub(crate) fn covered(&self, from: u32, end: u32) -> u32 {
        if !self.reach_beyond(from) {
            return from;
        }
        let place = self.stored.partition_point(|copied| !after(copied.seq, from));
        let mut covered = from;
        for copied in self.stored.range(place.saturating_sub(1)..) {
            if after(copied.seq, covered) || !after(end, covered) {
                break;
            }
            if after(copied.end, covered) {
                covered = copied.end;
            }
        }
        if after(covered, end) { end } else { covered }
    }

    /// The first copy that reaches beyond what the guest has been `given`.
    pub(crate) fn next(&self, given: u32) -> Option<Next> {
        let place = self.place_beyond(given);
        let copied = self.stored.get(place)?;
        Some(Next { place, end: copied.end, seg_bytes: copied.seg_bytes() })
    }

    fn place_beyond(&self, given: u32) -> usize {
        let is_given =
            |place: usize| self.stored.get(place).is_some_and(|copied| !after(copied.end, given));
        // Mostly the guest has been given nothing since by other ways.
        let place = self.given_count;
        if !is_given(place) && (place == 0 || is_given(place - 1)) {
            return place;
        }
        self.stored.partition_point(|copied| !after(copied.end, given))
    }

    /// Gives the guest that copy for the first time. One that ends after `end` is cut in two there: returns
    /// what both need of the port's limit besides.
    pub(crate) fn give(
        &mut self,
        next: &Next,
        end: u32,
        current: &Current,
        spare: &mut Spare,
        to_guest: &mut Vec<Frame>,
    ) -> Option<u32> {
        let place = next.place;
        let copied = self.stored.get_mut(place)?;
        self.given_count = place + 1;
        if !after(copied.end, end) {
            copied.first(current, spare, to_guest);
            return Some(0);
        }
        let before_bytes = copied.charge_bytes();
        let first = copied.cut(end)?;
        let more_bytes = first.charge_bytes() + copied.charge_bytes() - before_bytes;
        first.first(current, spare, to_guest);
        self.stored.insert(place, first);
        Some(more_bytes)
    }

    /// An empty segment of the peer's that the guest answers with its window (RFC 9293, 3.8.6.1).
    pub(crate) fn probe(&mut self, now_ns: u64, seq: u32, current: &Current) -> Option<Frame> {
        (self.probed_ns, self.probes) = (Some(now_ns), self.probes.saturating_add(1));
        let copied = self.stored.front()?;
        Some(renewed(&emptied(copied.frame(), seq), current))
    }

    /// The first promise since the guest has acknowledged all of them.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        (self.progress_ns, self.again_ns) = (now_ns, None);
        (self.times, self.refusals) = (0, 0);
        (self.probed_ns, self.probes) = (None, 0);
    }

    /// The guest has acknowledged what is before `ack`. Returns the bytes that are free again.
    pub(crate) fn acknowledged(
        &mut self,
        now_ns: u64,
        ack: u32,
        spare: &mut Spare,
        spare_list: &mut SpareList,
    ) -> u32 {
        let mut freed_bytes = 0;
        while self.stored.front().is_some_and(|copied| !after(copied.end, ack)) {
            let Some(copied) = self.stored.pop_front() else { break };
            freed_bytes += copied.charge_bytes();
            spare.take(copied.into_frame());
            self.given_count = self.given_count.saturating_sub(1);
            (self.progress_ns, self.times, self.refusals) = (now_ns, 0, 0);
            (self.probed_ns, self.probes) = (None, 0);
        }
        if self.stored.is_empty() {
            spare_list.take(std::mem::take(&mut self.stored));
        }
        freed_bytes
    }

    pub(crate) fn clear(&mut self) -> u32 {
        let bytes = self.stored.iter().map(Stored::charge_bytes).sum();
        *self = Copies::default();
        bytes
    }

    /// Is the guest getting again the data that it discarded?
    pub(crate) fn is_repairing(&self) -> bool {
        self.again_ns.is_some() && !self.is_empty()
    }

    /// How often the guest has not taken what it was given again.
    pub(crate) fn refusals(&self) -> u32 {
        self.refusals
    }

    /// When the guest, which last sent a frame at `heard_ns`, gets the first one again.
    /// One that has not been heard since the last time has perhaps not run.
    pub(crate) fn due_ns(&self, heard_ns: u64) -> u64 {
        let since_ns = self.again_ns.unwrap_or(0).max(self.progress_ns);
        waited_ns(since_ns, self.times, heard_ns)
    }

    /// Neither that nor the next is sooner.
    pub(crate) fn least_due_ns(&self) -> u64 {
        self.progress_ns.saturating_add(WAIT_NS)
    }

    /// When the guest is asked for its window, likewise.
    pub(crate) fn probe_ns(&self, heard_ns: u64) -> u64 {
        let since_ns = self.probed_ns.unwrap_or(0).max(self.progress_ns);
        waited_ns(since_ns, self.probes, heard_ns)
    }

    /// The guest has been heard since it was given the first one again, and `takes` data, but has
    /// not taken that.
    pub(crate) fn note_refusal(&mut self, heard_ns: u64, takes: bool) {
        let since_heard = self.again_ns.is_some_and(|again_ns| heard_ns > again_ns);
        self.refusals += u32::from(self.times > 0 && since_heard && takes);
    }

    /// The first `count` of those before `promised`, for the guest to be given again.
    pub(crate) fn again(
        &mut self,
        now_ns: u64,
        count: usize,
        promised: u32,
        current: Current,
    ) -> impl Iterator<Item = Frame> {
        self.times += 1;
        self.again_ns = Some(now_ns);
        let due = self.stored.iter().take_while(move |copied| after(promised, copied.seq));
        due.take(count).map(move |copied| copied.again(&current))
    }
}

/// Since then, the guest was given something `times` in vain, and last heard at `heard_ns`.
fn waited_ns(since_ns: u64, times: u32, heard_ns: u64) -> u64 {
    let wait_ns = match times > 0 && heard_ns <= since_ns {
        true => WAIT_MAX_NS,
        false => (WAIT_NS << times.min(6)).min(WAIT_MAX_NS),
    };
    since_ns.saturating_add(wait_ns)
}

#[cfg(test)]
mod tests {
    use vcc_engine::{FlowState, Hold};
    use vcc_frames::{Packet, payload};

    use super::*;
    use crate::frame::Direction;
    use crate::parse::parse;
    use crate::testing::{Talk, framed};

    const SEG_BYTES: u32 = 100;

    /// Keeps so many segments, which the guest acknowledges.
    fn keep_and_acknowledge(copies: &mut Copies, count: u32, spare_list: &mut SpareList) {
        for seq in (0..count).map(|nth| nth * SEG_BYTES) {
            let packet = Packet { seq, payload: payload(100), ..Talk::v4().segment(false) };
            let frame = framed(&packet);
            let parsed = parse(&frame, Direction::ToGuest).expect("TCP");
            let (kept_bytes, freed_bytes) = copies.keep(frame, &parsed, spare_list);
            assert!(kept_bytes > SEG_BYTES && freed_bytes == 0);
        }
        let end = count * SEG_BYTES;
        assert_eq!(copies.covered(0, end), end);
        assert!(copies.acknowledged(0, end, &mut Spare::default(), spare_list) > end);
        assert!(copies.is_empty() && copies.stored.capacity() == 0);
    }

    #[test]
    fn flows_without_copies_leave_one_list_for_the_next() {
        let (mut one, mut other) = (Copies::default(), Copies::default());
        let spare_list = &mut SpareList::default();
        keep_and_acknowledge(&mut one, 100, spare_list);
        let capacity = spare_list.0.capacity();
        assert!((100..=SPARE_LIST_MAX).contains(&capacity));
        keep_and_acknowledge(&mut other, 3, spare_list);
        assert_eq!(spare_list.0.capacity(), capacity, "it was long enough");
        assert_eq!(spare_list.clone().0.capacity(), 0);
        keep_and_acknowledge(&mut one, SPARE_LIST_MAX as u32 + 1, spare_list);
        assert_eq!(spare_list.0.capacity(), 0, "it has grown too long");
    }

    #[test]
    fn a_list_that_was_used_before_has_nothing_of_then() {
        let (mut copies, spare_list) = (Copies::default(), &mut SpareList::default());
        keep_and_acknowledge(&mut copies, 2, spare_list);
        keep_and_acknowledge(&mut copies, 2, spare_list);
        let packet = Packet { seq: 7, payload: payload(5), ..Talk::v4().segment(false) };
        let frame = framed(&packet);
        let parsed = parse(&frame, Direction::ToGuest).expect("TCP");
        copies.keep(frame.clone(), &parsed, spare_list);
        assert_eq!(copies.frames().collect::<Vec<_>>(), [&frame]);
        let next = copies.next(7).expect("it has not been given");
        assert_eq!((next.end, next.seg_bytes), (12, 5));
        let current = Current::new(&FlowState::default(), &Hold::default(), 0);
        let mut to_guest = Vec::new();
        copies.give(&next, 12, &current, &mut Spare::default(), &mut to_guest);
        assert!(to_guest.len() == 1 && copies.next(12).is_none());
    }
}

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
    pub(crate) fn keep(&mut self, frame: Frame, parsed: &Parsed) -> (u32, u32) {
        let seq = parsed.segment.seq;
        let end = seq.wrapping_add(parsed.segment.payload_bytes);
        // Mostly it follows the others.
        let is_last = |last: &Stored| after(seq, last.seq) && after(end, last.end);
        let is_last = self.stored.back().is_none_or(is_last);
        if !is_last && self.covered(seq, end) == end {
            return (0, 0);
        }
        let copied = Stored::new(frame, parsed);
        let kept_bytes = copied.charge_bytes();
        if is_last {
            self.stored.push_back(copied);
            return (kept_bytes, 0);
        }
        let place = self.stored.partition_point(|other| before(other.seq, seq));
        let nested = self.stored.range(place..).take_while(|other| !after(other.end, end)).count();
        let freed_bytes =
            self.stored.drain(place..place + nested).map(|copied| copied.charge_bytes()).sum();
        self.stored.insert(place, copied);
        (kept_bytes, freed_bytes)
    }

    /// How far there are copies without a gap behind `from`, at most up to `end`.
    pub(crate) fn covered(&self, from: u32, end: u32) -> u32 {
        // Mostly nothing lies behind a hole.
        if self.stored.back().is_none_or(|last| !after(last.end, from)) {
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
        let mut more_bytes = 0;
        if after(copied.end, end) {
            let before_bytes = copied.charge_bytes();
            let first = copied.cut(end)?;
            more_bytes = first.charge_bytes() + copied.charge_bytes() - before_bytes;
            self.stored.insert(place, first);
        }
        self.given_count = place + 1;
        self.stored.get(place)?.first(current, spare, to_guest);
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
    pub(crate) fn acknowledged(&mut self, now_ns: u64, ack: u32, spare: &mut Spare) -> u32 {
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
            self.stored = VecDeque::new();
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

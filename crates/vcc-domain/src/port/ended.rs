//! Connections that were ended because a promise could not be kept (`engine/split.h`).

use std::collections::{BTreeSet, HashMap};

use vcc_engine::{Segment, sys};

use crate::frame::Direction;
use crate::ledger::Promise;
use vcc_engine::FlowKey;

/// What their ends still send is refused for this long: longer than an end that has not heard of it
/// retransmits (RFC 9293, 3.8.3: R2).
const REMEMBERED_NS: u64 = 1000 * 1_000_000_000;
/// An end that lacks data, or an acknowledgement, stays where it is, within the window that the port has
/// shown it last: this is more than any.
const NEAR_BYTES: u32 = 1 << 27;
/// The RSTs may be lost, and an end that has nothing to send would never ask: they are sent again after
/// these times.
const AGAIN_AFTER_NS: [u64; 3] = [500_000_000, 1_500_000_000, 6_000_000_000];

#[derive(Clone)]
pub(super) struct Refused {
    until_ns: u64,
    pub promise: Promise,
    /// In the ledger.
    pub slot: Option<usize>,
    /// How often its RSTs were sent again.
    times: usize,
    /// A SYN-ACK that has passed since, by its sender and sequence number.
    answer: Option<(Direction, u32)>,
}

/// What becomes of a segment between the ends of a connection that was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Pass,
    /// The ends have a new connection.
    Begins,
    /// It is answered with a RST.
    Refuse,
}

impl Refused {
    /// A SYN may be stray or forged, and its purported sender may still have the connection. Whoever
    /// acknowledges the SYN-ACK's sequence number has a new one, as has the SYN-ACK's sender. A new one
    /// may have begun while no port was there: its numbers are others, which the guest is believed, and
    /// of which a peer is not refused.
    pub(super) fn judge(&mut self, direction: Direction, segment: &Segment) -> Fate {
        let flags = u32::from(segment.flags);
        if flags & (sys::TCP_SYN | sys::TCP_ACK) == sys::TCP_SYN | sys::TCP_ACK {
            self.answer = Some((direction, segment.seq));
        }
        if flags & (sys::TCP_SYN | sys::TCP_RST) != 0 {
            return Fate::Pass;
        }
        let Some((answerer, seq)) = self.answer else {
            return match (self.may_send(direction, segment), direction) {
                (true, _) => Fate::Refuse,
                (false, Direction::FromGuest) => Fate::Begins,
                (false, Direction::ToGuest) => Fate::Pass,
            };
        };
        // Either end may have sent data before the other's ACK (RFC 7413).
        let follows = |number: u32| number.wrapping_sub(seq.wrapping_add(1)) <= u16::MAX.into();
        match direction == answerer {
            true if follows(segment.seq) => Fate::Pass,
            false if follows(segment.ack) => Fate::Begins,
            _ => Fate::Refuse,
        }
    }

    /// May the segment belong to the connection that was ended? What was promised is missing in one
    /// direction; the other may have carried any amount since.
    fn may_send(&self, direction: Direction, segment: &Segment) -> bool {
        let Promise { snd_nxt, promised, rcv_nxt, .. } = self.promise;
        let is_near = |number: u32, place: u32| {
            (number.wrapping_sub(place) as i32).unsigned_abs() < NEAR_BYTES
        };
        match direction {
            Direction::FromGuest => is_near(segment.seq, promised) || is_near(segment.ack, rcv_nxt),
            Direction::ToGuest => is_near(segment.ack, snd_nxt) || is_near(segment.seq, rcv_nxt),
        }
    }
}

#[derive(Clone, Default)]
pub(super) struct Ended {
    refused: HashMap<FlowKey, Refused>,
    /// In order of time.
    order: BTreeSet<(u64, FlowKey)>,
    /// When RSTs are sent again. Those that were removed are here to their time.
    again: BTreeSet<(u64, FlowKey)>,
}

impl Ended {
    pub(super) fn add(&mut self, now_ns: u64, promise: Promise, slot: Option<usize>) {
        let until_ns = now_ns.saturating_add(REMEMBERED_NS);
        let refused = Refused { until_ns, promise, slot, times: 0, answer: None };
        let old = self.refused.insert(promise.key, refused);
        debug_assert!(old.is_none(), "no connection ends twice");
        self.order.insert((until_ns, promise.key));
        self.again.insert((now_ns.saturating_add(AGAIN_AFTER_NS[0]), promise.key));
    }

    /// When the next RSTs are due.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.again.first().map(|(at_ns, _)| *at_ns)
    }

    /// The next connection of which RSTs are due, unless its ends may have a new one.
    pub(super) fn next_again(&mut self, now_ns: u64) -> Option<Promise> {
        while let Some(&(at_ns, key)) = self.again.first().filter(|(at_ns, _)| *at_ns <= now_ns) {
            self.again.pop_first();
            let Some(refused) = self.refused.get_mut(&key) else { continue };
            refused.times += 1;
            if let Some(after_ns) = AGAIN_AFTER_NS.get(refused.times) {
                self.again.insert((at_ns.saturating_add(*after_ns), key));
            }
            if refused.answer.is_none() {
                return Some(refused.promise);
            }
        }
        None
    }

    /// A new connection has the key.
    pub(super) fn remove(&mut self, key: &FlowKey) -> Option<Refused> {
        let refused = self.refused.remove(key)?;
        self.order.remove(&(refused.until_ns, *key));
        Some(refused)
    }

    /// Mostly there are no ended connections.
    pub(super) fn is_empty(&self) -> bool {
        self.refused.is_empty()
    }

    pub(super) fn get(&mut self, key: &FlowKey) -> Option<&mut Refused> {
        self.refused.get_mut(key)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Refused> {
        self.refused.values()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Refused> {
        self.refused.values_mut()
    }

    /// Forgets one whose time is over, or the oldest one of more than `max`. To be called until it
    /// returns None.
    pub(super) fn forget(&mut self, now_ns: u64, max: usize) -> Option<Refused> {
        let &(until_ns, key) = self.order.first()?;
        let is_over = until_ns <= now_ns || self.refused.len() > max;
        if is_over { self.remove(&key) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn promise(port: u16) -> Promise {
        let key = FlowKey::new(([10, 0, 0, 2], port).into(), ([10, 0, 0, 9], 80).into(), None);
        let [guest_mac, next_hop_mac] = [[1; 6], [2; 6]];
        let [snd_una, snd_nxt, promised, rcv_nxt] = [0; 4];
        Promise { key, guest_mac, next_hop_mac, snd_una, snd_nxt, promised, rcv_nxt }
    }

    fn forgotten(ended: &mut Ended, now_ns: u64, max: usize) -> Vec<Option<usize>> {
        std::iter::from_fn(|| ended.forget(now_ns, max).map(|refused| refused.slot)).collect()
    }

    /// Its RSTs may be lost.
    #[test]
    fn resets_are_due_again_three_times_unless_the_ends_begin_anew() {
        let mut ended = Ended::default();
        ended.add(1000, promise(1), None);
        ended.add(1000, promise(2), None);
        let begins = Segment { flags: (sys::TCP_SYN | sys::TCP_ACK) as u16, ..Segment::default() };
        ended.get(&promise(2).key).expect("it").judge(Direction::FromGuest, &begins);
        let mut at_ns = 1000;
        for after_ns in AGAIN_AFTER_NS {
            at_ns += after_ns;
            assert_eq!(ended.next_ns(), Some(at_ns));
            assert_eq!(ended.next_again(at_ns - 1), None);
            assert_eq!(ended.next_again(at_ns), Some(promise(1)));
            assert_eq!(ended.next_again(at_ns), None);
        }
        assert_eq!(ended.next_ns(), None);
    }

    #[test]
    fn a_connection_is_remembered_for_its_time_and_until_it_begins_anew() {
        let mut ended = Ended::default();
        for port in 1..=3 {
            ended.add(port.into(), promise(port), Some(port.into()));
        }
        assert_eq!(ended.remove(&promise(2).key).map(|refused| refused.slot), Some(Some(2)));
        let has =
            |ended: &Ended| [1, 2, 3].map(|port| ended.refused.contains_key(&promise(port).key));
        assert_eq!(has(&ended), [true, false, true]);
        assert_eq!(forgotten(&mut ended, REMEMBERED_NS, 9), []);
        let _ = ended.remove(&promise(1).key);
        ended.add(5, promise(1), None);
        assert_eq!(forgotten(&mut ended, REMEMBERED_NS + 3, 9), [Some(3)]);
        assert_eq!(has(&ended), [true, false, false]);
        assert_eq!(forgotten(&mut ended, REMEMBERED_NS + 5, 9), [None]);
        assert!(ended.refused.is_empty() && ended.order.is_empty());
    }

    /// No port was there when it began.
    #[test]
    fn numbers_of_another_connection_are_not_refused() {
        let mut ended = Ended::default();
        ended.add(0, promise(1), None);
        let refused = ended.get(&promise(1).key).expect("it");
        let segment =
            |seq, ack| Segment { flags: sys::TCP_ACK as u16, seq, ack, ..Default::default() };
        let [near, far] = [NEAR_BYTES - 1, NEAR_BYTES];
        for (seq, ack, fates) in [
            (near, far, [Fate::Refuse, Fate::Refuse]),
            (far, near.wrapping_neg(), [Fate::Refuse, Fate::Refuse]),
            (far, far.wrapping_neg(), [Fate::Begins, Fate::Pass]),
        ] {
            let said = segment(seq, ack);
            let judged =
                [Direction::FromGuest, Direction::ToGuest].map(|it| refused.judge(it, &said));
            assert_eq!(judged, fates, "{seq} {ack}");
        }
    }

    #[test]
    fn their_number_is_limited() {
        let mut ended = Ended::default();
        for port in 1..=5 {
            ended.add(0, promise(port), Some(port.into()));
        }
        let _ = ended.remove(&promise(1).key);
        assert_eq!(forgotten(&mut ended, 0, 2), [Some(2), Some(3)]);
        assert!([4, 5].iter().all(|&port| ended.get(&promise(port).key).is_some()));
    }
}

//! The port's flow table and deadlines, with the datapath's rules for a full table
//! (datapath/flow_table.h).

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::ops::Range;

use slab::Slab;
use vcc_engine::{FlowState, Minisock, Params, Segment, half_open_max};

use crate::deadlines::Deadlines;
use crate::hold::Held;
use crate::minisocks::Minisocks;
use crate::pools::Member;
use crate::snoop::{Snooped, is_reset};
use vcc_engine::{FlowKey, sys};
use vcc_net::seq::after;

/// All that the port has of a flow.
#[derive(Clone)]
pub(crate) struct Entry {
    pub key: FlowKey,
    pub state: FlowState,
    pub held: Held,
    pub snooped: Snooped,
    pub member: Member,
    /// Its deadline.
    look_ns: u64,
    /// The number of its handshake while it is half-open.
    half_open: Option<u64>,
}

impl Entry {
    pub(crate) fn look_ns(&self) -> u64 {
        self.look_ns
    }

    /// Do its ends not understand each other without the port (`engine/accept.h`)? Until the connection was
    /// reset, or both have all of it.
    pub(crate) fn depends(&self) -> bool {
        let Entry { state: flow, snooped, .. } = self;
        let is_acknowledged =
            flow.flight_bytes() == 0 && !after(flow.rcv_nxt, snooped.snoop.0.guest_ack);
        let is_over =
            u32::from(flow.stage) == sys::STAGE_CLOSED && (is_reset(flow) || is_acknowledged);
        snooped.accepted.is_live() && !is_over
    }

    /// It may give way to newer ones.
    pub(crate) fn in_handshake(&self) -> bool {
        self.half_open.is_some()
    }
}

/// A flow of the table, valid for the length of a call of the port: to look it up by its key costs
/// as much as a call of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FlowId(usize);

/// The flows, limited in number. What it does does not depend on the order of their arrival.
#[derive(Clone)]
pub(crate) struct Table {
    max_flows: usize,
    /// Hashed with a secret, because guests and peers choose ports.
    ids: HashMap<FlowKey, FlowId>,
    entries: Slab<Entry>,
    /// The flow of the last look-up: segments come in bursts.
    last: Cell<Option<FlowId>>,
    deadlines: Deadlines,
    /// Half-open flows, oldest first.
    half_open: BTreeMap<u64, FlowId>,
    handshakes: u64,
    minisocks: Minisocks,
    /// The last states of removed flows, if they are kept.
    removed: Option<Vec<(FlowKey, FlowState)>>,
}

/// Room for a new flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Free,
    /// The oldest half-open flows, so many, were forgotten for it.
    Made(u64),
    None,
}

impl Table {
    pub(crate) fn new(max_flows: usize) -> Self {
        Table {
            max_flows,
            ids: HashMap::new(),
            entries: Slab::new(),
            last: Cell::new(None),
            deadlines: Deadlines::default(),
            half_open: BTreeMap::new(),
            handshakes: 0,
            minisocks: Minisocks::new(max_flows),
            removed: None,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn max_flows(&self) -> usize {
        self.max_flows
    }

    /// Looks a flow up.
    #[inline]
    pub(crate) fn find(&self, key: &FlowKey) -> Option<FlowId> {
        let is_last = |id: &FlowId| self.get(*id).is_some_and(|entry| entry.key == *key);
        if let Some(id) = self.last.get().filter(is_last) {
            debug_assert_eq!(self.ids.get(key), Some(&id));
            return Some(id);
        }
        self.find_by_hash(key)
    }

    fn find_by_hash(&self, key: &FlowKey) -> Option<FlowId> {
        let id = *self.ids.get(key)?;
        self.last.set(Some(id));
        Some(id)
    }

    /// None if the flow has been removed.
    pub(crate) fn get(&self, id: FlowId) -> Option<&Entry> {
        self.entries.get(id.0)
    }

    pub(crate) fn get_mut(&mut self, id: FlowId) -> Option<&mut Entry> {
        self.entries.get_mut(id.0)
    }

    pub(crate) fn of_key(&self, key: &FlowKey) -> Option<&Entry> {
        self.get(self.find(key)?)
    }

    /// All flows, in order of their keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.ids().into_iter().map(|id| &self.entries[id.0])
    }

    /// All flows, in order of their keys.
    pub(crate) fn ids(&self) -> Vec<FlowId> {
        let mut all: Vec<_> = self.ids.iter().collect();
        all.sort_unstable();
        all.into_iter().map(|(_, id)| *id).collect()
    }

    /// How many places there are for flows, empty ones included.
    pub(crate) fn places(&self) -> usize {
        self.entries.capacity()
    }

    /// The flows at these places.
    pub(crate) fn at_places(&self, places: Range<usize>) -> impl Iterator<Item = &Entry> {
        places.filter_map(|place| self.entries.get(place))
    }

    /// Inserts a flow before its first segment, with a deadline. `retire` is called for one that gives way, and
    /// returns its treatment.
    pub(crate) fn insert(
        &mut self,
        key: FlowKey,
        look_ns: u64,
        mut retire: impl FnMut(&mut Entry) -> Params,
    ) -> Room {
        let half_open_max = half_open_max(u32::try_from(self.max_flows).unwrap_or(u32::MAX));
        let mut gave_way = 0;
        if self.entries.len() >= self.max_flows {
            let Some((_, oldest)) = self.half_open.first_key_value() else { return Room::None };
            self.retire(*oldest, &mut retire);
            gave_way += 1;
        }
        let handshakes_since = |number: &u64| self.handshakes - number;
        if let Some((number, oldest)) = self.half_open.first_key_value()
            && (self.half_open.len() >= half_open_max as usize
                || handshakes_since(number) >= half_open_max.into())
        {
            self.retire(*oldest, &mut retire);
            gave_way += 1;
        }
        let half_open = Some(self.handshakes);
        let (state, held, snooped, member) = <(FlowState, Held, Snooped, Member)>::default();
        let entry = Entry { key, state, held, snooped, member, look_ns, half_open };
        let id = FlowId(self.entries.insert(entry));
        let old = self.ids.insert(key, id);
        debug_assert!(old.is_none(), "no flow replaces another");
        self.half_open.insert(self.handshakes, id);
        self.handshakes += 1;
        self.deadlines.add(look_ns, key);
        self.assert_laws();
        if gave_way > 0 { Room::Made(gave_way) } else { Room::Free }
    }

    /// The connection may continue after its flow is removed.
    pub(crate) fn leave_minisock(&mut self, id: FlowId, params: &Params) {
        if let Some(Entry { key, state, snooped, .. }) = self.entries.get(id.0)
            && !snooped.accepted.is_live()
        {
            self.minisocks.leave(*key, state, params);
        }
    }

    pub(crate) fn minisocks(&self) -> usize {
        self.minisocks.len()
    }

    pub(crate) fn supersede_minisock(&mut self, key: &FlowKey, segment: &Segment) {
        self.minisocks.supersede(key, segment);
    }

    pub(crate) fn take_minisock(&mut self, key: &FlowKey) -> Option<Minisock> {
        self.minisocks.take(key)
    }

    fn retire(&mut self, id: FlowId, retire: impl FnOnce(&mut Entry) -> Params) {
        if let Some(params) = self.get_mut(id).map(retire) {
            self.leave_minisock(id, &params);
        }
        self.remove(id);
    }

    /// From now on, the last states of removed flows are kept until [`Table::take_removed`].
    pub(crate) fn keep_removed(&mut self) {
        self.removed.get_or_insert_default();
    }

    pub(crate) fn take_removed(&mut self) -> Vec<(FlowKey, FlowState)> {
        self.removed.as_mut().map(mem::take).unwrap_or_default()
    }

    pub(crate) fn remove(&mut self, id: FlowId) {
        self.end_handshake(id);
        let Some(Entry { key, state, .. }) = self.entries.try_remove(id.0) else { return };
        if let Some(removed) = &mut self.removed {
            removed.push((key, state));
        }
        self.ids.remove(&key);
        self.last.set(None);
        self.settle(&key);
    }

    /// The flow is no longer half-open, so it cannot give way.
    pub(crate) fn end_handshake(&mut self, id: FlowId) {
        let number = self.get_mut(id).and_then(|entry| entry.half_open.take());
        if let Some(number) = number {
            self.half_open.remove(&number);
        }
    }

    /// Replaces the flow's deadline.
    pub(crate) fn set_look(&mut self, id: FlowId, at_ns: u64) {
        let Some(entry) = self.get_mut(id) else { return };
        entry.look_ns = at_ns;
        let key = entry.key;
        self.deadlines.add(at_ns, key);
        self.settle(&key);
    }

    pub(crate) fn next_look_ns(&self) -> Option<u64> {
        self.deadlines.first().map(|(look_ns, _)| look_ns)
    }

    /// The flow with the earliest expired deadline.
    pub(crate) fn due(&self, now_ns: u64) -> Option<FlowId> {
        let (_, key) = self.deadlines.first().filter(|(look_ns, _)| *look_ns <= now_ns)?;
        self.find(&key)
    }

    /// The flow's deadline has changed.
    fn settle(&mut self, key: &FlowKey) {
        let look_ns = |key: &FlowKey| {
            let id = self.ids.get(key)?;
            self.entries.get(id.0).map(|entry| entry.look_ns)
        };
        self.deadlines.settle(key, look_ns);
        if self.deadlines.are_many_beside(self.entries.len()) {
            self.deadlines =
                self.entries.iter().map(|(_, entry)| (entry.look_ns, entry.key)).collect();
        }
        self.assert_laws();
    }

    fn assert_laws(&self) {
        debug_assert!(self.entries.len() <= self.max_flows, "the number of flows is limited");
        debug_assert!(self.entries.len() == self.ids.len(), "every flow is found");
        debug_assert!(
            self.entries.is_empty() == self.next_look_ns().is_none(),
            "every flow has a deadline"
        );
        debug_assert!(self.half_open.len() <= self.entries.len(), "half-open flows are flows");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::rng::Rng;

    fn plain(_: &mut Entry) -> Params {
        Params::default()
    }

    fn key(port: u16) -> FlowKey {
        FlowKey::new(([10, 0, 0, 2], port).into(), ([10, 0, 0, 9], 80).into(), None)
    }

    #[test]
    fn flows_come_due_in_order_of_time() {
        let mut table = Table::new(16);
        for (port, look_ns) in [(3, 30), (1, 20), (2, 20)] {
            assert_eq!(table.insert(key(port), look_ns, plain), Room::Free);
        }
        let [first, second] = [1, 2].map(|port| table.find(&key(port)).expect("a flow"));
        assert_eq!(table.due(19), None);
        assert_eq!(table.due(20), Some(first));
        table.set_look(first, 40);
        assert_eq!(table.due(100), Some(second));
        table.remove(second);
        table.set_look(second, 1);
        assert_eq!(table.next_look_ns(), Some(30));
        let looks_ns = [first, second].map(|id| table.get(id).map(Entry::look_ns));
        assert_eq!(looks_ns, [Some(40), None]);
        let order: Vec<_> = table.iter().map(|entry| entry.key.guest().port()).collect();
        assert_eq!(order, [1, 3]);
    }

    /// Against an ordered set, through flows that come, go and move their deadlines.
    #[test]
    fn deadlines_are_in_order_however_often_they_move() {
        let mut table = Table::new(200);
        let mut model = BTreeMap::new();
        let mut random = Rng::new(1);
        for _ in 0..50_000 {
            let (key, at_ns) = (key(random.range(0, 100) as u16), random.range(0, 40));
            match (random.range(0, 10), table.find(&key)) {
                (0, Some(id)) => {
                    table.remove(id);
                    model.remove(&key);
                }
                (_, Some(id)) => {
                    table.set_look(id, at_ns);
                    model.insert(key, at_ns);
                }
                (_, None) => {
                    assert_eq!(table.insert(key, at_ns, plain), Room::Free);
                    table.end_handshake(table.find(&key).expect("a flow"));
                    model.insert(key, at_ns);
                }
            }
            let first = model.iter().map(|(key, at_ns)| (*at_ns, *key)).min();
            assert_eq!(table.deadlines.first(), first);
        }
        let expected: Vec<_> = model.keys().collect();
        assert_eq!(table.iter().map(|entry| &entry.key).collect::<Vec<_>>(), expected);
        assert!(!table.deadlines.are_many_beside(table.len()), "obsolete ones are removed");
    }

    #[test]
    fn only_half_open_flows_give_way_to_newer_ones() {
        let mut table = Table::new(8);
        let ports = |table: &Table| -> Vec<u16> {
            table.iter().map(|entry| entry.key.guest().port()).collect()
        };
        assert_eq!([1, 2].map(|port| table.insert(key(port), 0, plain)), [Room::Free; 2]);
        assert_eq!(
            table.insert(key(3), 0, plain),
            Room::Made(1),
            "a quarter of the table is for half-open flows"
        );
        assert_eq!(ports(&table), [2, 3]);
        for port in [2, 3, 4, 5, 6, 7, 8, 9] {
            let _ =
                table.find(&key(port)).is_some() || table.insert(key(port), 0, plain) == Room::Free;
            table.end_handshake(table.find(&key(port)).expect("a flow"));
        }
        assert_eq!(table.len(), table.max_flows());
        assert_eq!(table.insert(key(10), 0, plain), Room::None);
        table.remove(table.find(&key(5)).expect("a flow"));
        assert_eq!(table.insert(key(10), 0, plain), Room::Free);
        assert_eq!(table.insert(key(11), 0, plain), Room::Made(1));
        assert_eq!(ports(&table), [2, 3, 4, 6, 7, 8, 9, 11]);
    }

    #[test]
    fn a_handshake_gives_way_when_as_many_as_have_room_have_begun_since() {
        let mut table = Table::new(16);
        for port in 1..=5 {
            let room = table.insert(key(port), 0, plain);
            assert_eq!(room, if port == 5 { Room::Made(1) } else { Room::Free }, "{port}");
            if port > 1 {
                table.end_handshake(table.find(&key(port)).expect("a flow"));
            }
        }
        assert_eq!((table.find(&key(1)), table.len()), (None, 4));
    }
}

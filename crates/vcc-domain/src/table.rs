//! The port's flow table and deadlines, with the datapath's rules for a full table
//! (datapath/table.h).

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};

use slab::Slab;
use vcc_engine::{FlowState, half_open_max};

use crate::deadlines::Deadlines;
use crate::hold::Held;
use crate::key::FlowKey;
use crate::snoop::Snooped;

#[derive(Clone)]
struct Entry {
    state: FlowState,
    held: Held,
    snooped: Snooped,
    look_ns: u64,
    /// The number of its handshake while it is half-open.
    half_open: Option<u64>,
}

/// The flows, limited in number. What it does does not depend on the order of their arrival.
#[derive(Clone)]
pub(crate) struct Table {
    max_flows: usize,
    /// Hashed with a secret, because guests and peers choose ports.
    places: HashMap<FlowKey, usize>,
    entries: Slab<Entry>,
    /// The flow of the last look-up: a segment asks for its own several times.
    last: Cell<Option<(FlowKey, usize)>>,
    deadlines: Deadlines,
    /// The keys of half-open flows, oldest first.
    half_open: BTreeMap<u64, FlowKey>,
    handshakes: u64,
}

/// What the table has of a flow.
pub(crate) struct Known<'table> {
    pub state: &'table mut FlowState,
    pub held: &'table mut Held,
    pub snooped: &'table mut Snooped,
    /// Its deadline.
    pub look_ns: u64,
    /// It may give way to newer ones.
    pub in_handshake: bool,
}

/// Room for a new flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Free,
    /// The oldest half-open flow was forgotten for it.
    Made,
    None,
}

impl Table {
    pub(crate) fn new(max_flows: usize) -> Self {
        Table {
            max_flows,
            places: HashMap::new(),
            entries: Slab::new(),
            last: Cell::new(None),
            deadlines: Deadlines::default(),
            half_open: BTreeMap::new(),
            handshakes: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn max_flows(&self) -> usize {
        self.max_flows
    }

    pub(crate) fn get(&self, key: &FlowKey) -> Option<&FlowState> {
        self.entry(key).map(|entry| &entry.state)
    }

    /// All about a flow.
    pub(crate) fn known(&mut self, key: &FlowKey) -> Option<Known<'_>> {
        let Entry { state, held, snooped, look_ns, half_open } = self.entry_mut(key)?;
        let in_handshake = half_open.is_some();
        Some(Known { state, held, snooped, look_ns: *look_ns, in_handshake })
    }

    /// A flow, and what is held of it.
    pub(crate) fn holding(&mut self, key: &FlowKey) -> Option<(&mut FlowState, &mut Held)> {
        self.entry_mut(key).map(|entry| (&mut entry.state, &mut entry.held))
    }

    /// A flow, and what was promised of it.
    pub(crate) fn snooping(&mut self, key: &FlowKey) -> Option<(&mut FlowState, &mut Snooped)> {
        self.entry_mut(key).map(|entry| (&mut entry.state, &mut entry.snooped))
    }

    pub(crate) fn held(&self, key: &FlowKey) -> Option<&Held> {
        self.entry(key).map(|entry| &entry.held)
    }

    /// A flow, with what was held and promised of it.
    pub(crate) fn whole(&self, key: &FlowKey) -> Option<(&FlowState, &Held, &Snooped)> {
        self.entry(key).map(|Entry { state, held, snooped, .. }| (state, held, snooped))
    }

    /// All flows, in order of their keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&FlowKey, &FlowState)> {
        self.all().map(|(key, state, ..)| (key, state))
    }

    /// The same, with what was held and promised of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&FlowKey, &FlowState, &Held, &Snooped)> {
        let mut places: Vec<_> = self.places.iter().collect();
        places.sort_unstable();
        places.into_iter().map(|(key, place)| {
            let Entry { state, held, snooped, .. } = &self.entries[*place];
            (key, state, held, snooped)
        })
    }

    /// Inserts a flow before its first segment, with a deadline.
    pub(crate) fn insert(&mut self, key: FlowKey, look_ns: u64) -> Room {
        let half_open_max = half_open_max(u32::try_from(self.max_flows).unwrap_or(u32::MAX));
        let is_full = self.entries.len() >= self.max_flows;
        let mut room = Room::Free;
        if is_full || self.half_open.len() >= half_open_max as usize {
            let Some((_, oldest)) = self.half_open.first_key_value() else { return Room::None };
            let oldest = *oldest;
            self.remove(&oldest);
            room = Room::Made;
        }
        let half_open = Some(self.handshakes);
        let (state, held, snooped) = <(FlowState, Held, Snooped)>::default();
        let place = self.entries.insert(Entry { state, held, snooped, look_ns, half_open });
        let old = self.places.insert(key, place);
        debug_assert!(old.is_none(), "no flow replaces another");
        self.half_open.insert(self.handshakes, key);
        self.handshakes += 1;
        self.deadlines.add(look_ns, key);
        self.assert_laws();
        room
    }

    pub(crate) fn remove(&mut self, key: &FlowKey) {
        self.end_handshake(key);
        if let Some(place) = self.places.remove(key) {
            self.entries.remove(place);
            self.last.set(None);
        }
        self.settle(key);
    }

    /// The flow is no longer half-open, so it cannot give way.
    pub(crate) fn end_handshake(&mut self, key: &FlowKey) {
        let number = self.entry_mut(key).and_then(|entry| entry.half_open.take());
        if let Some(number) = number {
            self.half_open.remove(&number);
        }
    }

    /// Replaces the flow's deadline.
    pub(crate) fn set_look(&mut self, key: &FlowKey, at_ns: u64) {
        let Some(entry) = self.entry_mut(key) else { return };
        entry.look_ns = at_ns;
        self.deadlines.add(at_ns, *key);
        self.settle(key);
    }

    pub(crate) fn next_look_ns(&self) -> Option<u64> {
        self.deadlines.first().map(|(look_ns, _)| look_ns)
    }

    /// The flow with the earliest expired deadline.
    pub(crate) fn due(&self, now_ns: u64) -> Option<FlowKey> {
        self.deadlines.first().filter(|(look_ns, _)| *look_ns <= now_ns).map(|(_, key)| key)
    }

    fn place(&self, key: &FlowKey) -> Option<usize> {
        if let Some((last, place)) = self.last.get().filter(|(last, _)| last == key) {
            debug_assert_eq!(self.places.get(&last), Some(&place));
            return Some(place);
        }
        let place = *self.places.get(key)?;
        self.last.set(Some((*key, place)));
        Some(place)
    }

    fn entry(&self, key: &FlowKey) -> Option<&Entry> {
        self.entries.get(self.place(key)?)
    }

    fn entry_mut(&mut self, key: &FlowKey) -> Option<&mut Entry> {
        let place = self.place(key)?;
        self.entries.get_mut(place)
    }

    /// The flow's deadline has changed.
    fn settle(&mut self, key: &FlowKey) {
        let look_ns = |key: &FlowKey| {
            let place = *self.places.get(key)?;
            self.entries.get(place).map(|entry| entry.look_ns)
        };
        self.deadlines.settle(key, look_ns);
        if self.deadlines.are_many_beside(self.entries.len()) {
            self.deadlines = self
                .places
                .iter()
                .map(|(key, place)| (self.entries[*place].look_ns, *key))
                .collect();
        }
        self.assert_laws();
    }

    fn assert_laws(&self) {
        debug_assert!(self.entries.len() <= self.max_flows, "the number of flows is limited");
        debug_assert!(self.entries.len() == self.places.len(), "every flow is found");
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

    fn key(port: u16) -> FlowKey {
        FlowKey::new(([10, 0, 0, 2], port).into(), ([10, 0, 0, 9], 80).into(), None)
    }

    #[test]
    fn flows_come_due_in_order_of_time() {
        let mut table = Table::new(16);
        for (port, look_ns) in [(3, 30), (1, 20), (2, 20)] {
            assert_eq!(table.insert(key(port), look_ns), Room::Free);
        }
        assert_eq!(table.due(19), None);
        assert_eq!(table.due(20), Some(key(1)));
        table.set_look(&key(1), 40);
        assert_eq!(table.due(100), Some(key(2)));
        table.remove(&key(2));
        table.set_look(&key(2), 1);
        assert_eq!(table.next_look_ns(), Some(30));
        let looks_ns = [1, 2].map(|port| table.known(&key(port)).map(|known| known.look_ns));
        assert_eq!(looks_ns, [Some(40), None]);
        let order: Vec<_> = table.iter().map(|(key, _)| key.guest().port()).collect();
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
            match (random.range(0, 10), model.contains_key(&key)) {
                (0, true) => {
                    table.remove(&key);
                    model.remove(&key);
                }
                (_, true) => {
                    table.set_look(&key, at_ns);
                    model.insert(key, at_ns);
                }
                (_, false) => {
                    assert_eq!(table.insert(key, at_ns), Room::Free);
                    table.end_handshake(&key);
                    model.insert(key, at_ns);
                }
            }
            let first = model.iter().map(|(key, at_ns)| (*at_ns, *key)).min();
            assert_eq!(table.deadlines.first(), first);
        }
        let expected: Vec<_> = model.keys().collect();
        assert_eq!(table.iter().map(|(key, _)| key).collect::<Vec<_>>(), expected);
        assert!(!table.deadlines.are_many_beside(table.len()), "obsolete ones are removed");
    }

    #[test]
    fn only_half_open_flows_give_way_to_newer_ones() {
        let mut table = Table::new(8);
        let ports = |table: &Table| -> Vec<u16> {
            table.iter().map(|(key, _)| key.guest().port()).collect()
        };
        assert_eq!([1, 2].map(|port| table.insert(key(port), 0)), [Room::Free; 2]);
        assert_eq!(
            table.insert(key(3), 0),
            Room::Made,
            "a quarter of the table is for half-open flows"
        );
        assert_eq!(ports(&table), [2, 3]);
        for port in [2, 3, 4, 5, 6, 7, 8, 9] {
            let _ = table.get(&key(port)).is_some() || table.insert(key(port), 0) == Room::Free;
            table.end_handshake(&key(port));
        }
        assert_eq!(table.len(), table.max_flows());
        assert_eq!(table.insert(key(10), 0), Room::None);
        table.remove(&key(5));
        assert_eq!(table.insert(key(10), 0), Room::Free);
        assert_eq!(table.insert(key(11), 0), Room::Made);
        assert_eq!(ports(&table), [2, 3, 4, 6, 7, 8, 9, 11]);
    }
}

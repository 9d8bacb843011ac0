//! The port's flows, and when each wants to be looked at.

use std::collections::{BTreeMap, BTreeSet};

use vcc_engine::FlowState;

use crate::key::FlowKey;

#[derive(Clone)]
struct Entry {
    state: FlowState,
    tick_ns: u64,
}

/// At most so many flows, in an order that does not depend on how they came.
#[derive(Clone)]
pub(crate) struct Table {
    max_flows: usize,
    entries: BTreeMap<FlowKey, Entry>,
    /// The same keys by time.
    ticks: BTreeSet<(u64, FlowKey)>,
}

impl Table {
    pub(crate) fn new(max_flows: usize) -> Self {
        Table { max_flows, entries: BTreeMap::new(), ticks: BTreeSet::new() }
    }

    pub(crate) fn get(&self, key: &FlowKey) -> Option<&FlowState> {
        self.entries.get(key).map(|entry| &entry.state)
    }

    pub(crate) fn get_mut(&mut self, key: &FlowKey) -> Option<&mut FlowState> {
        self.entries.get_mut(key).map(|entry| &mut entry.state)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&FlowKey, &FlowState)> {
        self.entries.iter().map(|(key, entry)| (key, &entry.state))
    }

    /// A flow before its first segment, to be looked at by `tick_ns`; false if there is no room.
    pub(crate) fn insert(&mut self, key: FlowKey, tick_ns: u64) -> bool {
        if self.entries.len() >= self.max_flows {
            return false;
        }
        let entry = Entry { state: FlowState::default(), tick_ns };
        let old = self.entries.insert(key, entry);
        debug_assert!(old.is_none(), "no flow takes another's place");
        self.ticks.insert((tick_ns, key));
        self.assert_laws();
        true
    }

    pub(crate) fn remove(&mut self, key: &FlowKey) {
        if let Some(entry) = self.entries.remove(key) {
            self.ticks.remove(&(entry.tick_ns, *key));
        }
        self.assert_laws();
    }

    /// Looks at the flow by `tick_ns`, and no more when it was to be.
    pub(crate) fn set_tick(&mut self, key: &FlowKey, tick_ns: u64) {
        if let Some(entry) = self.entries.get_mut(key) {
            self.ticks.remove(&(entry.tick_ns, *key));
            self.ticks.insert((tick_ns, *key));
            entry.tick_ns = tick_ns;
        }
        self.assert_laws();
    }

    pub(crate) fn next_tick_ns(&self) -> Option<u64> {
        self.ticks.first().map(|(tick_ns, _)| *tick_ns)
    }

    /// The flow whose time came first, of those whose time has come.
    pub(crate) fn due(&self, now_ns: u64) -> Option<FlowKey> {
        self.ticks.first().filter(|(tick_ns, _)| *tick_ns <= now_ns).map(|(_, key)| *key)
    }

    fn assert_laws(&self) {
        debug_assert!(self.entries.len() <= self.max_flows, "a port's room is its limit");
        debug_assert!(self.entries.len() == self.ticks.len(), "every flow is looked at one day");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(port: u16) -> FlowKey {
        FlowKey::new(([10, 0, 0, 2], port).into(), ([10, 0, 0, 9], 80).into(), None)
    }

    #[test]
    fn flows_come_due_in_order_of_time() {
        let mut table = Table::new(3);
        for (port, tick_ns) in [(3, 30), (1, 20), (2, 20)] {
            assert!(table.insert(key(port), tick_ns));
        }
        assert!(!table.insert(key(4), 0), "no room");
        assert_eq!(table.due(19), None);
        assert_eq!(table.due(20), Some(key(1)));
        table.set_tick(&key(1), 40);
        assert_eq!(table.due(100), Some(key(2)));
        table.remove(&key(2));
        table.set_tick(&key(2), 1);
        assert_eq!(table.next_tick_ns(), Some(30));
        let order: Vec<_> = table.iter().map(|(key, _)| key.guest().port()).collect();
        assert_eq!(order, [1, 3]);
        assert!(table.insert(key(4), 0));
    }
}

//! Timers of flows, each of which knows when its own is set to go off.

use std::collections::BTreeSet;

use vcc_engine::FlowKey;

use crate::table::{Entry, FlowId, Table};

/// In order of time, then of key. One that a flow no longer knows of goes off for nothing.
#[derive(Clone, Default)]
pub(crate) struct Timers(BTreeSet<(u64, FlowKey)>);

impl Timers {
    /// When the first one goes off.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.0.first().map(|(at_ns, _)| *at_ns)
    }

    /// Sets the flow's timer, which is set to `own_ns`, if it must go off earlier. One that is early
    /// goes off for nothing, which costs less than to move it with each segment.
    pub(crate) fn set(&mut self, own_ns: &mut Option<u64>, due_ns: u64, key: &FlowKey) {
        if own_ns.is_some_and(|at_ns| at_ns <= due_ns) {
            return;
        }
        self.clear(own_ns, key);
        *own_ns = Some(due_ns);
        self.0.insert((due_ns, *key));
    }

    pub(crate) fn clear(&mut self, own_ns: &mut Option<u64>, key: &FlowKey) {
        if let Some(at_ns) = own_ns.take() {
            self.0.remove(&(at_ns, *key));
        }
    }

    /// The next flow whose timer, which is `own_ns` of its entry, has gone off.
    pub(crate) fn next_due(
        &mut self,
        table: &mut Table,
        now_ns: u64,
        own_ns: impl Fn(&mut Entry) -> &mut Option<u64>,
    ) -> Option<FlowId> {
        while let Some((at_ns, key)) = self.pop(now_ns) {
            let Some(id) = table.find(&key) else { continue };
            let Some(entry) = table.get_mut(id) else { continue };
            if own_ns(entry).take_if(|own_ns| *own_ns == at_ns).is_some() {
                return Some(id);
            }
        }
        None
    }

    /// The first one that has gone off: when it was to, and its flow, which still has it if it is set
    /// to that time.
    fn pop(&mut self, now_ns: u64) -> Option<(u64, FlowKey)> {
        let (at_ns, _) = self.0.first()?;
        if *at_ns > now_ns { None } else { self.0.pop_first() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_only_moves_forward_until_it_goes_off() {
        let key =
            |port| FlowKey::new(([10, 0, 0, 2], port).into(), ([10, 0, 0, 9], 80).into(), None);
        let (mut timers, mut own_ns) = (Timers::default(), [None; 3]);
        for (flow, due_ns) in [(1, 50), (2, 40), (1, 30), (1, 60), (0, 70)] {
            timers.set(&mut own_ns[flow], due_ns, &key(flow as u16));
        }
        assert_eq!(own_ns, [Some(70), Some(30), Some(40)]);
        timers.clear(&mut own_ns[0], &key(0));
        assert_eq!((own_ns[0], timers.next_ns()), (None, Some(30)));
        assert_eq!(timers.pop(29), None);
        assert_eq!([timers.pop(40), timers.pop(40)], [Some((30, key(1))), Some((40, key(2)))]);
        assert_eq!((timers.pop(100), timers.next_ns()), (None, None));
    }
}

//! Connections that were ended because a promise could not be kept (`engine/split.h`).

use std::collections::{HashMap, VecDeque};

use crate::key::FlowKey;

/// What their ends still send is refused for this long: longer than an end that has not heard of it
/// retransmits (RFC 9293, 3.8.3: R2).
const REMEMBERED_NS: u64 = 1000 * 1_000_000_000;

#[derive(Clone, Default)]
pub(super) struct Ended {
    /// Until when each is remembered.
    until_ns: HashMap<FlowKey, u64>,
    /// In order of time; those that were removed are here to their time.
    order: VecDeque<(u64, FlowKey)>,
}

impl Ended {
    pub(super) fn add(&mut self, now_ns: u64, key: FlowKey) {
        self.forget_old(now_ns);
        let until_ns = now_ns.saturating_add(REMEMBERED_NS);
        self.until_ns.insert(key, until_ns);
        self.order.push_back((until_ns, key));
    }

    /// A new connection has the key.
    pub(super) fn remove(&mut self, key: &FlowKey) {
        self.until_ns.remove(key);
    }

    pub(super) fn has(&mut self, now_ns: u64, key: &FlowKey) -> bool {
        self.forget_old(now_ns);
        self.until_ns.contains_key(key)
    }

    fn forget_old(&mut self, now_ns: u64) {
        while let Some(&(until_ns, key)) = self.order.front().filter(|(at_ns, _)| *at_ns <= now_ns)
        {
            self.order.pop_front();
            if self.until_ns.get(&key) == Some(&until_ns) {
                self.until_ns.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_remembered_for_its_time_and_until_it_begins_anew() {
        let key =
            |port| FlowKey::new(([10, 0, 0, 2], port).into(), ([10, 0, 0, 9], 80).into(), None);
        let mut ended = Ended::default();
        for port in 1..=3 {
            ended.add(u64::from(port), key(port));
        }
        ended.remove(&key(2));
        assert_eq!([1, 2, 3].map(|port| ended.has(4, &key(port))), [true, false, true]);
        ended.add(5, key(1));
        let at_ns = REMEMBERED_NS + 3;
        assert_eq!([1, 2, 3].map(|port| ended.has(at_ns, &key(port))), [true, false, false]);
        assert!(!ended.has(REMEMBERED_NS + 5, &key(1)));
        assert!(ended.until_ns.is_empty() && ended.order.is_empty());
    }
}

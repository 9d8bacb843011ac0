//! The minisocks of flows that were forgotten: the latest, as in `datapath/minisock.h`.

use std::collections::{BTreeMap, HashMap};

use vcc_engine::{FlowState, Minisock, Params};

use vcc_engine::FlowKey;

/// Of so many flows one may leave a minisock, but never fewer than the least.
const SHARE: usize = 16;
const LEAST: usize = 1024;

#[derive(Clone)]
pub(crate) struct Minisocks {
    max: usize,
    /// With the number of each in `oldest`.
    by_key: HashMap<FlowKey, (u64, Minisock)>,
    oldest: BTreeMap<u64, FlowKey>,
    left: u64,
}

impl Minisocks {
    pub(crate) fn new(max_flows: usize) -> Self {
        Self {
            max: (max_flows / SHARE).max(LEAST),
            by_key: HashMap::new(),
            oldest: BTreeMap::new(),
            left: 0,
        }
    }

    /// The flow, treated by `params`, is about to be forgotten. The oldest minisock gives way to its
    /// own.
    pub(crate) fn leave(&mut self, key: FlowKey, flow: &FlowState, params: &Params) {
        let Some(minisock) = flow.minisock(params) else { return };
        self.take(&key);
        if self.by_key.len() >= self.max
            && let Some((_, oldest)) = self.oldest.pop_first()
        {
            self.by_key.remove(&oldest);
        }
        self.by_key.insert(key, (self.left, minisock));
        self.oldest.insert(self.left, key);
        self.left += 1;
        debug_assert!(self.by_key.len() == self.oldest.len(), "each minisock has an age");
    }

    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    pub(crate) fn take(&mut self, key: &FlowKey) -> Option<Minisock> {
        let (number, minisock) = self.by_key.remove(key)?;
        self.oldest.remove(&number);
        Some(minisock)
    }
}

#[cfg(test)]
mod tests {
    use vcc_engine::sys;

    use super::*;

    fn key(port: u16) -> FlowKey {
        FlowKey::new(([10, 0, 0, 2], port).into(), ([10, 0, 0, 9], 80).into(), None)
    }

    fn bound() -> FlowState {
        let mut flow = FlowState::default();
        flow.0.stage = sys::STAGE_ESTABLISHED as u8;
        (flow.0.wscale_peer, flow.0.wscale_shown) = (10, 5);
        flow
    }

    #[test]
    fn the_latest_stay() {
        let mut minisocks = Minisocks::new(0);
        for port in 0..=LEAST as u16 {
            minisocks.leave(key(port), &bound(), &Params::default());
        }
        assert!(minisocks.take(&key(0)).is_none(), "the oldest gave way");
        assert!(minisocks.take(&key(1)).is_some());
        assert!(minisocks.take(&key(1)).is_none(), "taken");
        assert!(minisocks.take(&key(LEAST as u16)).is_some());
    }

    #[test]
    fn what_vcc_has_not_changed_leaves_none() {
        let mut minisocks = Minisocks::new(0);
        let mut flow = bound();
        flow.0.wscale_shown = flow.0.wscale_peer;
        minisocks.leave(key(1), &flow, &Params::default());
        assert!(minisocks.take(&key(1)).is_none());
    }
}

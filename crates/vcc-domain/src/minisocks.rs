//! The minisocks of flows that were forgotten: the latest, as in `datapath/minisock.h`.

use std::collections::{BTreeMap, HashMap};

use vcc_engine::{FlowKey, FlowState, Minisock, Params, Segment};

/// Of so many flows that were open one may leave a minisock, but never fewer than the least.
const SHARE: usize = 16;
const LEAST: usize = 1024;
/// Of so many of these, one may be of a connection that never was open: a flood of SYNs costs no open
/// connection its minisock.
const HALF_OPEN_SHARE: usize = 2;

#[derive(Clone)]
pub(crate) struct Minisocks {
    open: Latest,
    half_open: Latest,
}

impl Minisocks {
    pub(crate) fn new(max_flows: usize) -> Self {
        let max = (max_flows / SHARE).max(LEAST);
        Self { open: Latest::new(max), half_open: Latest::new(max / HALF_OPEN_SHARE) }
    }

    /// The flow, treated by `params`, is about to be forgotten. Its minisock takes the place of one
    /// that an earlier connection between the same ends has left.
    pub(crate) fn leave(&mut self, key: FlowKey, flow: &FlowState, params: &Params) {
        self.take(&key);
        let Some(minisock) = flow.minisock(params) else { return };
        let kind = if flow.has_been_open() { &mut self.open } else { &mut self.half_open };
        kind.put(key, minisock);
    }

    /// From-guest: drops the minisock of the connection that a SYN supersedes. The SYN's own may get
    /// no flow, as at a port that drains, and must not revive the earlier one.
    pub(crate) fn supersede(&mut self, key: &FlowKey, segment: &Segment) {
        for kind in [&mut self.open, &mut self.half_open] {
            if kind.by_key.get(key).is_some_and(|(_, it)| it.is_superseded(segment)) {
                kind.take(key);
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.open.by_key.len() + self.half_open.by_key.len()
    }

    pub(crate) fn take(&mut self, key: &FlowKey) -> Option<Minisock> {
        self.open.take(key).or_else(|| self.half_open.take(key))
    }
}

/// The latest minisocks.
#[derive(Clone)]
struct Latest {
    max: usize,
    /// With the number of each in `oldest`.
    by_key: HashMap<FlowKey, (u64, Minisock)>,
    oldest: BTreeMap<u64, FlowKey>,
    left: u64,
}

impl Latest {
    fn new(max: usize) -> Self {
        Self { max, by_key: HashMap::new(), oldest: BTreeMap::new(), left: 0 }
    }

    /// The oldest gives way. There is none with this key.
    fn put(&mut self, key: FlowKey, minisock: Minisock) {
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

    fn take(&mut self, key: &FlowKey) -> Option<Minisock> {
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
    fn a_syn_of_the_guest_ends_an_earlier_connection() {
        let mut flow = bound();
        flow.0.flags = sys::FLOW_SYN_SEEN_GUEST;
        flow.0.iss = 7;
        flow.0.syn_seq = 7;
        let syn = |seq| Segment { flags: sys::TCP_SYN as u16, seq, ..Segment::default() };
        let mut minisocks = Minisocks::new(0);
        minisocks.leave(key(1), &flow, &Params::default());
        minisocks.supersede(&key(1), &syn(7));
        minisocks.supersede(&key(2), &syn(8));
        minisocks.supersede(&key(1), &Segment { flags: sys::TCP_ACK as u16, ..syn(8) });
        assert_eq!(minisocks.len(), 1);
        minisocks.supersede(&key(1), &syn(8));
        assert_eq!(minisocks.len(), 0);
        // A paused guest answers a SYN that waited: its own numbers are not known yet.
        flow.0.flags = 0;
        minisocks.leave(key(1), &flow, &Params::default());
        minisocks.supersede(&key(1), &syn(8));
        assert_eq!(minisocks.len(), 1);
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
    fn handshakes_take_the_place_of_handshakes_alone() {
        let mut minisocks = Minisocks::new(0);
        minisocks.leave(key(0), &bound(), &Params::default());
        let mut handshake = bound();
        handshake.0.stage = sys::STAGE_SYN_RECEIVED as u8;
        for port in 1..=2 * LEAST as u16 {
            minisocks.leave(key(port), &handshake, &Params::default());
        }
        assert_eq!(minisocks.len(), 1 + LEAST / HALF_OPEN_SHARE);
        assert!(minisocks.take(&key(0)).is_some());
        assert!(minisocks.take(&key(1)).is_none(), "the oldest handshake gave way");
    }

    #[test]
    fn a_later_connection_takes_the_record_of_an_earlier_one_with_it() {
        let mut minisocks = Minisocks::new(0);
        minisocks.leave(key(1), &bound(), &Params::default());
        let mut closed = bound();
        closed.0.flags |= sys::FLOW_FIN_GUEST | sys::FLOW_FIN_PEER;
        minisocks.leave(key(1), &closed, &Params::default());
        assert!(minisocks.take(&key(1)).is_none());
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

//! What reads of connections add up to.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use super::Sums;
use crate::flow::FlowView;
use crate::names::FlowKey;
use crate::rates::{Counted, Growth};

/// A connection over all reads.
#[derive(Clone, Debug)]
pub struct Watch {
    pub port: Arc<str>,
    pub rule: Option<Arc<str>>,
    pub tenant: Option<Arc<str>>,
    pub(super) underlay: &'static str,
    /// The guest has negotiated ECN itself.
    pub(super) has_guest_ecn: bool,
    pub(super) growth: Growth,
    /// Of its bytes, the part that was acknowledged while more was in flight than the underlay's window.
    pub(super) beyond_bytes: u64,
    pub(super) watched: Duration,
    pub(super) beyond: Duration,
    /// The underlay's window over what was in flight, at each read at which that was more.
    pub(super) parts: Vec<f32>,
    pub(super) srtt_us: Option<u32>,
    /// 0: not measured.
    pub(super) rtt_min_us: u32,
    last: Last,
}

/// The read before.
#[derive(Clone, Copy, Debug)]
struct Last {
    at: Duration,
    counted: Counted,
    is_beyond: bool,
}

/// More than these of a connection do not change a median.
const PARTS_MAX: usize = 1000;

#[derive(Default)]
pub struct Tally {
    watches: HashMap<FlowKey, Watch>,
    ended: Vec<Watch>,
    pub reads: u64,
    pub lasted: Duration,
    /// Connections in other modes, at the last read.
    pub others: usize,
}

impl Tally {
    pub fn is_empty(&self) -> bool {
        self.watches.is_empty() && self.ended.is_empty()
    }

    /// Of all connections.
    pub fn total(&self) -> Sums {
        Sums::new("all", &self.watches().collect::<Vec<_>>())
    }

    /// Of the connections that have a name in common, those with the most bytes first. Those without
    /// a name are together under `-`.
    pub fn by(&self, name: impl Fn(&Watch) -> Option<&Arc<str>>) -> Vec<Sums> {
        let mut groups: BTreeMap<&str, Vec<&Watch>> = BTreeMap::new();
        for watch in self.watches() {
            groups.entry(name(watch).map_or("-", |name| name)).or_default().push(watch);
        }
        let mut groups: Vec<Sums> =
            groups.iter().map(|(name, watches)| Sums::new(name, watches)).collect();
        groups.sort_by_key(|sums| std::cmp::Reverse(sums.acked_bytes));
        groups
    }

    fn watches(&self) -> impl Iterator<Item = &Watch> {
        self.ended.iter().chain(self.watches.values())
    }

    /// A read, at this time since the first.
    pub fn note(&mut self, at: Duration, flows: &[FlowView]) {
        self.reads += 1;
        self.lasted = at;
        self.others = flows.iter().filter(|flow| !flow.is_shadow()).count();
        for flow in flows.iter().filter(|flow| flow.is_shadow()) {
            let Some(watch) = self.watches.get_mut(&flow.key) else {
                self.watches.insert(flow.key.clone(), Watch::begin(at, flow));
                continue;
            };
            if !watch.note(at, flow) {
                self.ended.push(std::mem::replace(watch, Watch::begin(at, flow)));
            }
        }
    }
}

impl Watch {
    fn begin(at: Duration, flow: &FlowView) -> Self {
        let counted = Counted::from_state(&flow.state);
        let mut watch = Self {
            port: flow.port.clone(),
            rule: flow.rule.clone(),
            tenant: flow.tenant.clone(),
            underlay: flow.underlay(),
            has_guest_ecn: flow.state.ecn_guest() != "no",
            growth: Growth::default(),
            beyond_bytes: 0,
            watched: Duration::ZERO,
            beyond: Duration::ZERO,
            parts: Vec::new(),
            srtt_us: None,
            rtt_min_us: 0,
            last: Last { at, counted, is_beyond: false },
        };
        watch.note_last(at, flow, counted);
        watch
    }

    /// Returns false, and changes nothing, if it is a later connection between the same ends.
    fn note(&mut self, at: Duration, flow: &FlowView) -> bool {
        let last = self.last;
        let elapsed = at.saturating_sub(last.at);
        let counted = Counted::from_state(&flow.state);
        let Some(growth) = counted.since(&last.counted, elapsed) else { return false };
        self.growth += growth;
        self.watched += elapsed;
        if last.is_beyond {
            self.beyond_bytes += growth.acked_bytes;
            self.beyond += elapsed;
        }
        self.note_last(at, flow, counted);
        true
    }

    fn note_last(&mut self, at: Duration, flow: &FlowView, counted: Counted) {
        let part = beyond(flow);
        self.last = Last { at, counted, is_beyond: part.is_some() };
        self.parts.extend(part.filter(|_| self.parts.len() < PARTS_MAX));
        self.srtt_us = flow.state.srtt_us().or(self.srtt_us);
        self.rtt_min_us = flow.state.cc.path.rtt_min_us;
    }
}

/// The underlay's window over what is in flight, if that is more.
fn beyond(flow: &FlowView) -> Option<f32> {
    let window_bytes = flow.would_show_bytes()? as f32;
    let flight_bytes = flow.state.flight_bytes() as f32;
    (flight_bytes > window_bytes).then(|| window_bytes / flight_bytes)
}

#[cfg(test)]
mod tests {
    use vcc_engine::Mode;

    use super::*;
    use crate::testing::shadow_flow as flow;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn time_and_bytes_are_those_behind_a_read_beyond_the_window() {
        let mut tally = Tally::default();
        tally.note(S, &[flow("a", 1000, 28_800, 0)]);
        tally.note(3 * S, &[flow("a", 31_000, 14_400, 2)]);
        tally.note(4 * S, &[flow("a", 41_000, 0, 2)]);
        let watches: Vec<&Watch> = tally.watches().collect();
        let [watch] = watches[..] else { panic!("{} connections", watches.len()) };
        assert_eq!((watch.growth.acked_bytes, watch.beyond_bytes), (40_000, 30_000));
        assert_eq!((watch.watched, watch.beyond), (3 * S, 2 * S));
        assert_eq!((&watch.parts[..], watch.growth.counts.marks), (&[0.5][..], 2));
        assert_eq!((watch.srtt_us, watch.rtt_min_us), (Some(1250), 250));
    }

    #[test]
    fn connections_are_told_apart() {
        let mut tally = Tally::default();
        let mut enforced = flow("a", 0, 0, 0);
        enforced.mode = Some(Mode::Enforce);
        tally.note(S, &[enforced]);
        assert!(tally.is_empty());
        assert_eq!(tally.others, 1);
        tally.note(S, &[flow("a", 1000, 0, 5), flow("b", 1000, 0, 0)]);
        // A later one between the same ends.
        tally.note(S, &[flow("a", 2000, 0, 0)]);
        tally.note(S, &[flow("a", 500, 0, 0)]);
        assert_eq!(tally.watches().count(), 4);
    }
}

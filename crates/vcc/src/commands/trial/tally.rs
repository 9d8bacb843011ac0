//! What reads of connections add up to.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use vcc_net::seq::advance;
use vcc_view::{Counts, FlowKey, FlowView};

/// A connection over all reads.
#[derive(Clone, Debug)]
pub struct Watch {
    pub port: Arc<str>,
    pub rule: Option<Arc<str>>,
    pub tenant: Option<Arc<str>>,
    pub underlay: &'static str,
    /// The guest has negotiated ECN itself.
    pub has_guest_ecn: bool,
    pub acked_bytes: u64,
    /// Of these, the part that was acknowledged while more was in flight than the underlay's window.
    pub beyond_bytes: u64,
    pub watched: Duration,
    pub beyond: Duration,
    /// The underlay's window over what was in flight, at each read at which that was more.
    pub parts: Vec<f32>,
    pub counts: Counts,
    pub srtt_us: Option<u32>,
    /// 0: not measured.
    pub rtt_min_us: u32,
    last: Last,
}

/// The read before.
#[derive(Clone, Copy, Debug)]
struct Last {
    at: Duration,
    snd_una: u32,
    is_beyond: bool,
    counts: Counts,
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

    pub fn watches(&self) -> impl Iterator<Item = &Watch> {
        self.ended.iter().chain(self.watches.values())
    }

    /// A read, at this time since the first.
    pub fn note(&mut self, at: Duration, flows: &[FlowView]) {
        self.reads += 1;
        self.lasted = at;
        self.others = flows.iter().filter(|flow| !flow.is_shadow()).count();
        for flow in flows.iter().filter(|flow| flow.is_shadow()) {
            match self.watches.get_mut(&flow.key) {
                Some(watch) if watch.continues(flow) => watch.note(at, flow),
                Some(watch) => self.ended.push(std::mem::replace(watch, Watch::begin(at, flow))),
                None => {
                    self.watches.insert(flow.key.clone(), Watch::begin(at, flow));
                }
            }
        }
    }
}

impl Watch {
    fn begin(at: Duration, flow: &FlowView) -> Self {
        let counts = Counts::from_state(&flow.state);
        let (is_beyond, snd_una) = (beyond(flow).is_some(), flow.state.snd_una);
        let mut watch = Self {
            port: flow.port.clone(),
            rule: flow.rule.clone(),
            tenant: flow.tenant.clone(),
            underlay: flow.underlay(),
            has_guest_ecn: flow.state.ecn_guest() != "no",
            acked_bytes: 0,
            beyond_bytes: 0,
            watched: Duration::ZERO,
            beyond: Duration::ZERO,
            parts: Vec::new(),
            counts: Counts::default(),
            srtt_us: None,
            rtt_min_us: 0,
            last: Last { at, snd_una, is_beyond, counts },
        };
        watch.look(flow);
        watch
    }

    /// Is it the same connection, and not a later one between the same ends?
    fn continues(&self, flow: &FlowView) -> bool {
        let counts = Counts::from_state(&flow.state);
        counts.since(self.last.counts).is_some()
            && (self.last.snd_una == flow.state.snd_una
                || advance(self.last.snd_una, flow.state.snd_una) > 0)
    }

    fn note(&mut self, at: Duration, flow: &FlowView) {
        let last = self.last;
        let acked_bytes = u64::from(advance(last.snd_una, flow.state.snd_una));
        let elapsed = at.saturating_sub(last.at);
        self.acked_bytes += acked_bytes;
        self.watched += elapsed;
        if last.is_beyond {
            self.beyond_bytes += acked_bytes;
            self.beyond += elapsed;
        }
        let counts = Counts::from_state(&flow.state);
        self.counts += counts.since(last.counts).unwrap_or_default();
        let (is_beyond, snd_una) = (beyond(flow).is_some(), flow.state.snd_una);
        self.last = Last { at, snd_una, is_beyond, counts };
        self.look(flow);
    }

    fn look(&mut self, flow: &FlowView) {
        if let Some(part) = beyond(flow).filter(|_| self.parts.len() < PARTS_MAX) {
            self.parts.push(part);
        }
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
pub mod tests {
    use vcc_engine::Mode;
    use vcc_view::testing;

    use super::*;

    const S: Duration = Duration::from_secs(1);

    /// In shadow mode, with a window of 10 segments of 1440 bytes.
    pub fn flow(port: &str, una: u32, flight_bytes: u32, marks: u32) -> FlowView {
        let mut flow = testing::flow("192.0.2.1:40000", "192.0.2.2:80");
        flow.key.0 = port.into();
        flow.port = port.into();
        flow.mode = Some(Mode::Shadow);
        let state = &mut flow.state.0;
        (state.snd_una, state.snd_nxt, state.marks) = (una, una + flight_bytes, marks);
        state.cc.path.rtt_min_us = 250;
        flow
    }

    #[test]
    fn time_and_bytes_are_those_behind_a_read_beyond_the_window() {
        let mut tally = Tally::default();
        tally.note(S, &[flow("a", 1000, 28_800, 0)]);
        tally.note(3 * S, &[flow("a", 31_000, 14_400, 2)]);
        tally.note(4 * S, &[flow("a", 41_000, 0, 2)]);
        let watches: Vec<&Watch> = tally.watches().collect();
        let [watch] = watches[..] else { panic!("{} connections", watches.len()) };
        assert_eq!((watch.acked_bytes, watch.beyond_bytes), (40_000, 30_000));
        assert_eq!((watch.watched, watch.beyond), (3 * S, 2 * S));
        assert_eq!((&watch.parts[..], watch.counts.marks), (&[0.5][..], 2));
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

//! Sums over snapshots, which therefore never decrease.

mod accounts;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use vcc_view::{Counted, Counts, Growth, Rates, Totals, numbered};

use crate::Snapshot;
use accounts::Accounts;

/// Since the first snapshot.
#[derive(Default)]
pub struct Ledger {
    /// Guests choose the ends of connections: a keyed hash lets them find no collisions.
    hasher: RandomState,
    flows: HashMap<u64, Seen>,
    /// By name: several network namespaces may have a port of one name.
    ports: HashMap<String, Vec<Growth>>,
    /// The growth of all ports, removed ones included.
    all: Growth,
    accounts: Accounts,
    entered: Option<Instant>,
}

/// Rates are over this time at least: over less, they would be those of single bursts.
const RATES_OVER: Duration = Duration::from_secs(1);

/// A connection in the last snapshot.
struct Seen {
    counted: Counted,
    rates: Option<Rates>,
    /// Since the rates were computed.
    growth: Growth,
    since: Instant,
    /// The edition in which its counts last went to a rule's account, and these counts.
    accounted: Option<(u32, Counts)>,
}

/// The vectors are parallel to the snapshot's flows, ports and rules. Where several ports have one
/// name, the sums of those that are gone are with the first.
pub struct Activity {
    /// The growth of all ports since the first snapshot.
    pub all: Growth,
    /// Identifiers of connections, unique for the life of the process.
    pub flow_ids: Vec<u64>,
    pub ports: Vec<Growth>,
    pub rules: Vec<Totals>,
}

impl Ledger {
    /// Gives the flows their rates, too.
    pub fn enter(&mut self, snapshot: &mut Snapshot, now: Instant) -> Activity {
        let elapsed = self.entered.map_or(Duration::ZERO, |before| now.duration_since(before));
        self.entered = Some(now);
        self.accounts.open(snapshot);
        let mut next = HashMap::with_capacity(snapshot.flows.len());
        let mut increments = vec![Growth::default(); snapshot.ports.len()];
        let mut flow_ids = Vec::with_capacity(snapshot.flows.len());
        for flow in &mut snapshot.flows {
            let id = self.hasher.hash_one(&flow.key);
            let counted = Counted::of(&flow.state);
            // A connection that has counted less is another one between the same ends.
            let goes_on = |seen: &Seen| counted.counts.since(seen.counted.counts).is_some();
            let before = self.flows.remove(&id).filter(goes_on);
            let accounted = self.accounts.count(snapshot.epoch, flow, before.as_ref());
            let mut seen = Seen::new(counted, accounted, now);
            if let Some(before) = before
                && let Some(growth) = counted.since(&before.counted, elapsed)
            {
                increments[flow.port_index] += growth;
                seen.grow(before, growth, now);
            }
            flow.rates = seen.rates;
            flow_ids.push(id);
            next.insert(id, seen);
        }
        self.flows = next;
        increments.iter().for_each(|increment| self.all += *increment);
        let ports = self.add(snapshot, &increments);
        Activity { all: self.all, flow_ids, ports, rules: self.accounts.close(snapshot) }
    }

    fn add(&mut self, snapshot: &Snapshot, increments: &[Growth]) -> Vec<Growth> {
        let mut before = std::mem::take(&mut self.ports);
        for name in names(snapshot) {
            self.ports.entry(name.to_owned()).or_default().push(Growth::default());
        }
        for (name, sums) in &mut self.ports {
            for (at, before) in before.remove(name).into_iter().flatten().enumerate() {
                let at = if at < sums.len() { at } else { 0 };
                sums[at] += before;
            }
        }
        let ports = numbered(names(snapshot)).into_iter().zip(increments);
        let add = |((name, number), increment): ((&str, usize), &Growth)| {
            let sums = &mut self.ports.get_mut(name).expect("just entered")[number];
            *sums += *increment;
            *sums
        };
        ports.map(add).collect()
    }
}

impl Seen {
    fn new(counted: Counted, accounted: Option<(u32, Counts)>, now: Instant) -> Self {
        Self { counted, rates: None, growth: Growth::default(), since: now, accounted }
    }

    fn grow(&mut self, before: Self, growth: Growth, now: Instant) {
        (self.rates, self.growth, self.since) = (before.rates, before.growth, before.since);
        self.growth += growth;
        let elapsed = now.duration_since(self.since);
        // Slightly early is on time: readings are not taken exactly on the second.
        if elapsed >= RATES_OVER * 9 / 10 {
            self.rates = Rates::over(&self.growth, elapsed);
            (self.growth, self.since) = (Growth::default(), now);
        }
    }
}

fn names(snapshot: &Snapshot) -> impl Iterator<Item = &str> {
    snapshot.ports.iter().map(|port| port.port.as_str())
}

#[cfg(test)]
mod tests;

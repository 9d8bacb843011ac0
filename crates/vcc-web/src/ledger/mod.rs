//! Sums over snapshots, which therefore never decrease.

mod accounts;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use vcc_view::{Counted, Counts, Group, Grown, Growth, Pace, Rates, Sums, keys, numbered, sum_up};

use crate::Snapshot;
use accounts::Accounts;

/// Since the first snapshot.
pub struct Ledger {
    /// Guests choose the ends of connections: a keyed hash lets them find no collisions.
    hasher: RandomState,
    flows: HashMap<u64, Seen>,
    /// By name: several network namespaces may have a port of one name.
    ports: HashMap<String, Vec<Growth>>,
    /// The growth of all ports, removed ones included.
    all: Growth,
    /// What connections had acknowledged, by their rule.
    acked_bytes: HashMap<Arc<str>, u64>,
    accounts: Accounts,
    pace: Pace,
    /// The first snapshot, and the last one.
    entered: Option<(Instant, Instant)>,
}

/// Rates are over this time at least: over less, they would be those of single bursts.
const RATES_OVER: Duration = Duration::from_secs(1);

/// Rates of ports and rules are over this time: marks come in bursts.
const SUMS_OVER: Duration = Duration::from_secs(10);

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

pub struct Activity {
    /// Of all connections.
    pub all: Sums,
    /// Identifiers of connections, unique for the life of the process; parallel to the snapshot's
    /// flows.
    pub flow_ids: Vec<u64>,
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            hasher: RandomState::new(),
            flows: HashMap::new(),
            ports: HashMap::new(),
            all: Growth::default(),
            acked_bytes: HashMap::new(),
            accounts: Accounts::default(),
            pace: Pace::over(SUMS_OVER),
            entered: None,
        }
    }
}

impl Ledger {
    /// Gives the flows their rates, and ports and rules their sums. Where several ports have one name,
    /// the sums of those that are gone are with the first.
    pub fn enter(&mut self, snapshot: &mut Snapshot, now: Instant) -> Activity {
        let (first, before) = self.entered.unwrap_or((now, now));
        self.entered = Some((first, now));
        let elapsed = now.duration_since(before);
        self.accounts.open(snapshot);
        let mut next = HashMap::with_capacity(snapshot.flows.len());
        let mut increments = vec![Growth::default(); snapshot.ports.len()];
        let mut flow_ids = Vec::with_capacity(snapshot.flows.len());
        for flow in &mut snapshot.flows {
            let id = self.hasher.hash_one(&flow.key);
            let counted = Counted::from_state(&flow.state);
            // A connection that has counted less is another one between the same ends.
            let goes_on = |seen: &Seen| counted.counts.since(seen.counted.counts).is_some();
            let before = self.flows.remove(&id).filter(goes_on);
            let is_of_kernel = snapshot.ports[flow.port_index].index.is_some();
            let accounted =
                self.accounts.count(snapshot.epoch, flow, before.as_ref(), is_of_kernel);
            let mut seen = Seen::new(counted, accounted, now);
            if let Some(before) = before
                && let Some(growth) = counted.since(&before.counted, elapsed)
            {
                increments[flow.port_index] += growth;
                if let Some(rule) = &flow.rule {
                    *self.acked_bytes.entry(rule.clone()).or_default() += growth.acked_bytes;
                }
                seen.grow(before, growth, now);
            }
            flow.rates = seen.rates;
            flow_ids.push(id);
            next.insert(id, seen);
        }
        self.flows = next;
        increments.iter().for_each(|increment| self.all += *increment);
        let grown = self.grown(snapshot, &increments);
        self.pace.note(now.duration_since(first), grown.clone());
        let Snapshot { ports, rules, flows, .. } = snapshot;
        let all = sum_up(ports, rules, flows, Some(&grown), &self.pace);
        Activity { all, flow_ids }
    }

    /// The growth since the first snapshot. Rules get the number of their connections.
    fn grown(&mut self, snapshot: &mut Snapshot, increments: &[Growth]) -> Grown {
        let keys = keys(names(snapshot)).into_iter().map(Group::Port);
        let mut grown: Grown = keys.zip(self.add(snapshot, increments)).collect();
        let totals = self.accounts.close(snapshot);
        let mut acked_bytes = std::mem::take(&mut self.acked_bytes);
        for (rule, totals) in snapshot.rules.iter_mut().zip(totals) {
            rule.connections = totals.connections;
            let acked_bytes = acked_bytes.remove(&rule.name).unwrap_or(0);
            self.acked_bytes.insert(rule.name.clone(), acked_bytes);
            let growth = Growth { acked_bytes, counts: totals.counts };
            grown.insert(Group::Rule(rule.name.clone()), growth);
        }
        grown.insert(Group::All, self.all);
        grown
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

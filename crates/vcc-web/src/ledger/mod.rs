//! What adds up from one snapshot to the next, and what therefore never runs back.

mod accounts;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use crate::Snapshot;
use crate::snapshot::{Counts, Flow, Stage, Totals};
use accounts::Accounts;

/// Since the first snapshot.
#[derive(Default)]
pub struct Ledger {
    /// Ends of connections are chosen by guests; with its keys nobody finds two alike.
    hasher: RandomState,
    flows: HashMap<u64, Seen>,
    /// By name, for there may be one of it in each network namespace.
    ports: HashMap<String, Vec<PortSums>>,
    /// Of those ports too that have gone.
    all: PortSums,
    accounts: Accounts,
    entered: Option<Instant>,
}

/// What the last snapshot said of a connection.
struct Seen {
    snd_una: u32,
    window_bytes: Option<u32>,
    counts: Counts,
    /// In which edition its counts last went to a rule's account, and what they were.
    accounted: Option<(u32, Counts)>,
}

/// What the connections of a port did while they were watched. Where there are several of a name, the
/// first has what those did that have gone: their sum does not run back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortSums {
    pub acked_bytes: u64,
    pub counts: Counts,
}

/// The vectors are parallel to the snapshot's flows, ports and rules.
pub struct Activity {
    /// Of all ports that ever were.
    pub all: PortSums,
    pub flows: Vec<FlowActivity>,
    pub ports: Vec<PortSums>,
    pub rules: Vec<Totals>,
}

pub struct FlowActivity {
    /// The same for the same connection, as long as the process lives.
    pub id: u64,
    /// Since the snapshot before; None where the connection was not in it.
    pub acked_bytes_per_s: Option<f64>,
    pub marks_per_s: Option<f64>,
}

impl Ledger {
    pub fn enter(&mut self, snapshot: &Snapshot, now: Instant) -> Activity {
        let elapsed = self.entered.map_or(Duration::ZERO, |before| now.duration_since(before));
        self.entered = Some(now);
        self.accounts.open(snapshot);
        let mut next = HashMap::with_capacity(snapshot.flows.len());
        let mut increments = vec![PortSums::default(); snapshot.ports.len()];
        let mut flows = Vec::with_capacity(snapshot.flows.len());
        let ports = numbered(snapshot);
        for flow in &snapshot.flows {
            let id = self.hasher.hash_one((ports[flow.port], flow.guest, flow.peer, flow.vlan));
            let before = self.flows.remove(&id).filter(|seen| seen.is_of(flow));
            let accounted = self.accounts.count(snapshot.epoch, flow, before.as_ref());
            let mut activity = FlowActivity { id, acked_bytes_per_s: None, marks_per_s: None };
            if let Some(before) = &before {
                let acked_bytes = before.acked_until(flow, elapsed);
                let counts = flow.counts.since(before.counts);
                increments[flow.port] += PortSums { acked_bytes, counts };
                let per_s = |value: u64| value as f64 / elapsed.as_secs_f64();
                if !elapsed.is_zero() {
                    activity.acked_bytes_per_s = Some(per_s(acked_bytes));
                    activity.marks_per_s = Some(per_s(counts.marks));
                }
            }
            flows.push(activity);
            next.insert(id, Seen::of(flow, accounted));
        }
        self.flows = next;
        increments.iter().for_each(|increment| self.all += *increment);
        let ports = self.add(snapshot, &increments);
        Activity { all: self.all, flows, ports, rules: self.accounts.close(snapshot) }
    }

    fn add(&mut self, snapshot: &Snapshot, increments: &[PortSums]) -> Vec<PortSums> {
        let mut before = std::mem::take(&mut self.ports);
        for port in &snapshot.ports {
            self.ports.entry(port.device.clone()).or_default().push(PortSums::default());
        }
        for (device, sums) in &mut self.ports {
            for (at, before) in before.remove(device).into_iter().flatten().enumerate() {
                let at = if at < sums.len() { at } else { 0 };
                sums[at] += before;
            }
        }
        let ports = numbered(snapshot).into_iter().zip(increments);
        let add = |((device, number), increment): ((&str, usize), &PortSums)| {
            let sums = &mut self.ports.get_mut(device).expect("just entered")[number];
            *sums += *increment;
            *sums
        };
        ports.map(add).collect()
    }
}

/// The names of the ports, and how many of the same came before.
fn numbered(snapshot: &Snapshot) -> Vec<(&str, usize)> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let devices = snapshot.ports.iter().map(|port| port.device.as_str());
    let number = |device| {
        let count = counts.entry(device).or_default();
        *count += 1;
        (device, *count - 1)
    };
    devices.map(number).collect()
}

impl std::ops::AddAssign for PortSums {
    fn add_assign(&mut self, other: Self) {
        self.acked_bytes += other.acked_bytes;
        self.counts += other.counts;
    }
}

impl Seen {
    fn of(flow: &Flow, accounted: Option<(u32, Counts)>) -> Self {
        let Flow { snd_una, window_shown_bytes, counts, .. } = *flow;
        Self { snd_una, window_bytes: window_shown_bytes, counts, accounted }
    }

    /// No longer, where another connection has the same ends: it has counted less.
    fn is_of(&self, flow: &Flow) -> bool {
        self.counts.zip(flow.counts, |before, now| u64::from(before > now)) == Counts::default()
    }

    /// Sequence numbers wrap, and another connection may have the same ends: only what its windows
    /// admit in that time is believed.
    fn acked_until(&self, flow: &Flow, elapsed: Duration) -> u64 {
        /// Windows and RTT are those of this moment, not means.
        const SLACK: f64 = 8.0;
        let acked = flow.snd_una.wrapping_sub(self.snd_una);
        let is_open = matches!(flow.stage, Stage::Established | Stage::Closed);
        if !is_open || self.snd_una == 0 || acked > u32::MAX / 2 {
            return 0;
        }
        let window = self.window_bytes.max(flow.window_shown_bytes);
        if let (Some(window), Some(srtt_us @ 1..)) = (window, flow.srtt_us) {
            let round_trips = elapsed.as_secs_f64() * 1e6 / f64::from(srtt_us) + 1.0;
            if f64::from(acked) > SLACK * f64::from(window) * round_trips {
                return 0;
            }
        }
        acked.into()
    }
}

#[cfg(test)]
mod tests;

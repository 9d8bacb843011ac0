//! Totals of rules, over editions of the policy and ends of connections.
//!
//! The kernel adds the counts of a connection to its rule when the connection ends, and its sums
//! begin at zero with each edition. A connection that continues under the next edition keeps its
//! counts. The total of a rule is therefore the kernel's sum plus the counts of live connections,
//! less the counts that these had when they came under the edition.
//!
//! A process of `vcc domain` does so, too, but its sums outlive editions, and end with it. What they
//! grow by is therefore added up here.

use std::collections::HashMap;
use std::sync::Arc;

use vcc_view::{Counts, FlowView, RuleView, Totals};

use super::Seen;
use crate::Snapshot;

#[derive(Default)]
pub struct Accounts {
    /// None before the first snapshot.
    epoch: Option<u32>,
    rules: HashMap<Arc<str>, Account>,
    /// By rule and tap. A process may not answer for a while.
    domains: HashMap<(Arc<str>, String), OfDomain>,
}

#[derive(Clone, Copy, Default)]
struct OfDomain {
    last: Sums,
    /// Snapshots without it since.
    missing: u32,
}

/// After so many snapshots without it, a domain or its rule has ended.
const MISSING_MAX: u32 = 1000;

/// Connections, and the four counts.
type Sums = [i64; 5];

#[derive(Clone, Copy, Default)]
struct Account {
    /// The kernel's sums of this edition are added to it.
    floor: Sums,
    live: Counts,
    shown: Sums,
    /// What the sums of domains have grown by since the first snapshot.
    of_domains: Sums,
}

impl Accounts {
    pub fn open(&mut self, snapshot: &Snapshot) {
        let is_new_edition = self.epoch.is_some_and(|epoch| epoch != snapshot.epoch);
        let mut next = HashMap::with_capacity(snapshot.rules.len());
        for rule in &snapshot.rules {
            let mut account = self.rules.get(&rule.name).copied().unwrap_or_default();
            account.live = Counts::default();
            if is_new_edition {
                account.floor = zip(account.shown, account.of_domains, |sum, part| sum - part);
            }
            next.insert(rule.name.clone(), account);
        }
        // A rule that only a domain has is missing with it.
        for (rule, _) in self.domains.keys() {
            if let Some(account) = self.rules.get(rule) {
                next.entry(rule.clone()).or_insert(*account);
            }
        }
        self.rules = next;
    }

    /// Returns the edition and the counts to remember of the flow.
    pub fn count(
        &mut self,
        epoch: u32,
        flow: &FlowView,
        before: Option<&Seen>,
        is_of_kernel: bool,
    ) -> Option<(u32, Counts)> {
        let accounted = before.and_then(|before| before.accounted);
        let account = flow.rule.as_ref().filter(|_| flow.is_current);
        let Some(account) = account.and_then(|rule| self.rules.get_mut(rule)) else {
            return accounted;
        };
        let counts = Counts::from_state(&flow.state);
        account.live += counts;
        if let Some((_, brought)) = accounted.filter(|(edition, _)| *edition != epoch) {
            // The kernel counts a connection again that comes under its next edition.
            let brought = sums(is_of_kernel.into(), brought);
            account.floor = zip(account.floor, brought, |floor, brought| floor - brought);
        }
        Some((epoch, counts))
    }

    /// Parallel to the snapshot's rules.
    pub fn close(&mut self, snapshot: &Snapshot) -> Vec<Totals> {
        let is_first = self.epoch.is_none();
        self.epoch = Some(snapshot.epoch);
        self.add_domains(snapshot, is_first);
        let total = |rule: &RuleView| {
            let account = self.rules.get_mut(&rule.name)?;
            let mut counts = rule.ended.counts;
            counts += account.live;
            let kernel = sums(rule.ended.connections, counts);
            if is_first {
                account.floor = kernel.map(|sum| -sum);
            }
            let now = zip(account.floor, kernel, |floor, sum| floor + sum);
            let now = zip(now, account.of_domains, |sum, part| sum + part);
            // A connection that ends during the reading may be missing from both sums.
            account.shown = zip(account.shown, now, i64::max);
            Some(totals(account.shown))
        };
        snapshot.rules.iter().map(total).map(Option::unwrap_or_default).collect()
    }
}

impl Accounts {
    fn add_domains(&mut self, snapshot: &Snapshot, is_first: bool) {
        self.domains.retain(|_, domain| {
            domain.missing += 1;
            domain.missing <= MISSING_MAX
        });
        for rule in &snapshot.rules {
            let Some(account) = self.rules.get_mut(&rule.name) else { continue };
            for (tap, totals) in &rule.in_domains {
                let key = (rule.name.clone(), tap.clone());
                let now = sums(totals.connections, totals.counts);
                // Another process began at zero.
                let is_same = |last: &&Sums| last.iter().zip(now).all(|(last, now)| *last <= now);
                let last = self.domains.get(&key).map(|domain| domain.last);
                let last = last.as_ref().filter(is_same).copied().unwrap_or_default();
                if !is_first {
                    let grown = zip(now, last, |now, last| now - last);
                    account.of_domains = zip(account.of_domains, grown, |sum, more| sum + more);
                }
                self.domains.insert(key, OfDomain { last: now, missing: 0 });
            }
        }
    }
}

fn sums(connections: u64, counts: Counts) -> Sums {
    let Counts { marks, reductions, retransmissions, drops } = counts;
    [connections, marks, reductions, retransmissions, drops].map(|count| count as i64)
}

fn zip(a: Sums, b: Sums, with: fn(i64, i64) -> i64) -> Sums {
    std::array::from_fn(|at| with(a[at], b[at]))
}

fn totals(sums: Sums) -> Totals {
    let [connections, marks, reductions, retransmissions, drops] =
        sums.map(|sum| u64::try_from(sum).unwrap_or(0));
    Totals { connections, counts: Counts { marks, reductions, retransmissions, drops } }
}

//! The last ten minutes, for a page that was just opened.

use std::collections::{BTreeMap, VecDeque};
use std::ops::AddAssign;
use std::time::{Duration, Instant};

use serde::Serialize;
use vcc_view::Counts;

use crate::Snapshot;
use crate::ledger::Activity;
use crate::time::unix_ms;

const STEP: Duration = Duration::from_secs(5);
const POINTS_MAX: usize = 120;
/// The number of ports, and of rules, in a point: those with the largest windows.
const LINES_MAX: usize = 32;

#[derive(Default)]
pub struct History {
    points: VecDeque<Point>,
    last: Option<Instant>,
}

#[derive(Clone, Serialize)]
pub struct Point {
    at_unix_ms: u64,
    all: Level,
    ports: BTreeMap<String, Level>,
    rules: BTreeMap<String, Level>,
}

/// Sums over connections; all but the first two never decrease.
#[derive(Clone, Copy, Default, Serialize)]
pub struct Level {
    pub flows: u64,
    pub window_bytes: u64,
    pub acked_bytes: u64,
    #[serde(flatten)]
    pub counts: Counts,
}

impl AddAssign for Level {
    fn add_assign(&mut self, other: Self) {
        self.flows += other.flows;
        self.window_bytes += other.window_bytes;
        self.acked_bytes += other.acked_bytes;
        self.counts += other.counts;
    }
}

/// Parallel to the snapshot's ports and rules.
pub struct Levels {
    pub all: Level,
    pub ports: Vec<Level>,
    pub rules: Vec<Level>,
}

impl Levels {
    pub fn of(snapshot: &Snapshot, activity: &Activity) -> Self {
        let mut ports: Vec<Level> = vec![Level::default(); snapshot.ports.len()];
        let mut all = Level::default();
        let levels = ports.iter_mut().chain([&mut all]);
        for (level, sums) in levels.zip(activity.ports.iter().chain([&activity.all])) {
            level.acked_bytes = sums.acked_bytes;
            level.counts = sums.counts;
        }
        let mut rules: Vec<Level> = vec![Level::default(); snapshot.rules.len()];
        for (level, totals) in rules.iter_mut().zip(&activity.rules) {
            level.counts = totals.counts;
        }
        let names = snapshot.rules.iter().zip(0..).map(|(rule, at)| (&*rule.name, at));
        let by_name: BTreeMap<&str, usize> = names.collect();
        for flow in &snapshot.flows {
            let rule = flow.rule.as_deref().and_then(|name| by_name.get(name));
            let of_rule = rule.map(|at| &mut rules[*at]);
            for level in [&mut all, &mut ports[flow.port_index]].into_iter().chain(of_rule) {
                level.flows += 1;
                level.window_bytes += u64::from(flow.state.window_shown_bytes().unwrap_or(0));
            }
        }
        Self { all, ports, rules }
    }
}

impl History {
    /// Adds a point once per [`STEP`].
    pub fn enter(&mut self, snapshot: &Snapshot, levels: &Levels, now: Instant) {
        // Slightly early is on time: readings are not taken exactly on the step.
        let due = |last: Instant| now.duration_since(last) >= STEP * 9 / 10;
        if !self.last.is_none_or(due) {
            return;
        }
        self.last = Some(now);
        if self.points.len() == POINTS_MAX {
            self.points.pop_front();
        }
        let ports = snapshot.ports.iter().map(|port| port.port.as_str());
        let rules = snapshot.rules.iter().map(|rule| &*rule.name);
        self.points.push_back(Point {
            at_unix_ms: unix_ms(snapshot.at),
            all: levels.all,
            ports: largest(ports.zip(&levels.ports)),
            rules: largest(rules.zip(&levels.rules)),
        });
    }

    pub fn points(&self) -> Vec<Point> {
        self.points.iter().cloned().collect()
    }
}

/// Ports of one name, which are in different network namespaces, are summed.
fn largest<'a>(levels: impl Iterator<Item = (&'a str, &'a Level)>) -> BTreeMap<String, Level> {
    let mut by_name: BTreeMap<&str, Level> = BTreeMap::new();
    for (name, level) in levels {
        *by_name.entry(name).or_default() += *level;
    }
    let mut levels: Vec<_> = by_name.into_iter().collect();
    levels.sort_by_key(|(_, level)| std::cmp::Reverse((level.window_bytes, level.flows)));
    levels.truncate(LINES_MAX);
    levels.into_iter().map(|(name, level)| (name.to_owned(), level)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Ledger;
    use crate::testing::snapshot;

    #[test]
    fn ten_minutes_are_kept_however_often_it_is_asked() {
        let (mut history, mut ledger) = (History::default(), Ledger::default());
        let begin = Instant::now();
        for second in 0..3600 {
            let now = begin + Duration::from_secs(second);
            let mut snapshot = snapshot(second);
            let activity = ledger.enter(&mut snapshot, now);
            let levels = Levels::of(&snapshot, &activity);
            history.enter(&snapshot, &levels, now);
        }
        let points = history.points();
        assert_eq!(points.len(), POINTS_MAX);
        let steps = points.windows(2).map(|pair| pair[1].at_unix_ms - pair[0].at_unix_ms);
        assert!(steps.into_iter().all(|step| step == 5000));
        assert!(points.windows(2).all(|p| p[0].all.acked_bytes <= p[1].all.acked_bytes));
    }

    #[test]
    fn a_device_that_goes_takes_nothing_back() {
        let mut ledger = Ledger::default();
        let begin = Instant::now();
        let acked_bytes = [3600, 3602, 3604].map(|second| {
            let mut snapshot = snapshot(second);
            if second == 3604 {
                snapshot.ports.truncate(1);
                snapshot.flows.retain(|flow| flow.port_index == 0);
            }
            let now = begin + Duration::from_secs(second);
            let activity = ledger.enter(&mut snapshot, now);
            Levels::of(&snapshot, &activity).all.acked_bytes
        });
        assert!(acked_bytes[1] > 0);
        assert!(acked_bytes.is_sorted(), "{acked_bytes:?}");
    }

    #[test]
    fn a_point_is_of_bounded_size() {
        let levels = vec![Level::default(); 4000];
        let names: Vec<String> = (0..4000).map(|number| format!("tap{number}")).collect();
        assert_eq!(largest(names.iter().map(String::as_str).zip(&levels)).len(), LINES_MAX);
    }

    #[test]
    fn ports_of_one_name_are_one_line() {
        let level = Level { flows: 1, window_bytes: 10, acked_bytes: 100, ..Level::default() };
        let lines = largest(["tap0", "tap1", "tap0"].into_iter().zip(&[level; 3]));
        let shown = |name: &str| {
            let Level { flows, window_bytes, acked_bytes, .. } = lines[name];
            (flows, window_bytes, acked_bytes)
        };
        assert_eq!((shown("tap0"), shown("tap1")), ((2, 20, 200), (1, 10, 100)));
    }
}

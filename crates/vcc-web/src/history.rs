//! The last ten minutes, for a page that was just opened.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use serde::Serialize;
use vcc_view::Sums;

use crate::Snapshot;
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

/// One moment: the sums of all connections, and those of the ports and rules with the largest windows.
#[derive(Clone, Serialize)]
pub struct Point {
    at_unix_ms: u64,
    all: Sums,
    ports: BTreeMap<String, Sums>,
    rules: BTreeMap<String, Sums>,
}

impl Point {
    pub fn from_snapshot(snapshot: &Snapshot, all: Sums) -> Self {
        let ports = snapshot.ports.iter().map(|port| (port.port.as_str(), &port.sums));
        let rules = snapshot.rules.iter().map(|rule| (&*rule.name, &rule.sums));
        Self { at_unix_ms: unix_ms(snapshot.at), all, ports: largest(ports), rules: largest(rules) }
    }
}

impl History {
    /// Adds a point once per [`STEP`].
    pub fn enter(&mut self, snapshot: &Snapshot, all: Sums, now: Instant) {
        // Slightly early is on time: readings are not taken exactly on the step.
        let due = |last: Instant| now.duration_since(last) >= STEP * 9 / 10;
        if !self.last.is_none_or(due) {
            return;
        }
        self.last = Some(now);
        if self.points.len() == POINTS_MAX {
            self.points.pop_front();
        }
        self.points.push_back(Point::from_snapshot(snapshot, all));
    }

    pub fn points(&self) -> Vec<Point> {
        self.points.iter().cloned().collect()
    }
}

/// Ports of one name, which are in different network namespaces, are summed.
fn largest<'a>(sums: impl Iterator<Item = (&'a str, &'a Sums)>) -> BTreeMap<String, Sums> {
    let mut by_name: BTreeMap<&str, Sums> = BTreeMap::new();
    for (name, sums) in sums {
        *by_name.entry(name).or_default() += *sums;
    }
    let mut all: Vec<_> = by_name.into_iter().collect();
    all.sort_by_key(|(_, sums)| std::cmp::Reverse((sums.window_bytes, sums.flows)));
    all.truncate(LINES_MAX);
    all.into_iter().map(|(name, sums)| (name.to_owned(), sums)).collect()
}

#[cfg(test)]
mod tests {
    use vcc_view::{Growth, Rates};

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
            history.enter(&snapshot, activity.all, now);
        }
        let points = history.points();
        assert_eq!(points.len(), POINTS_MAX);
        let steps = points.windows(2).map(|pair| pair[1].at_unix_ms - pair[0].at_unix_ms);
        assert!(steps.into_iter().all(|step| step == 5000));
        let acked_bytes = points.iter().map(|point| point.all.growth.expect("counted").acked_bytes);
        assert!(acked_bytes.is_sorted());
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
            ledger.enter(&mut snapshot, now).all.growth.expect("counted").acked_bytes
        });
        assert!(acked_bytes[1] > 0);
        assert!(acked_bytes.is_sorted(), "{acked_bytes:?}");
    }

    #[test]
    fn a_point_is_of_bounded_size() {
        let sums = vec![Sums::default(); 4000];
        let names: Vec<String> = (0..4000).map(|number| format!("tap{number}")).collect();
        assert_eq!(largest(names.iter().map(String::as_str).zip(&sums)).len(), LINES_MAX);
    }

    #[test]
    fn ports_of_one_name_are_one_line() {
        let growth = Some(Growth { acked_bytes: 100, ..Growth::default() });
        let rates = Some(Rates { marks_per_s: 0.5, ..Rates::default() });
        let sums = Sums { flows: 1, window_bytes: 10, growth, rates };
        let lines = largest(["tap0", "tap1", "tap0"].into_iter().zip(&[sums; 3]));
        let shown = |name: &str| {
            let Sums { flows, window_bytes, growth, rates } = lines[name];
            (flows, window_bytes, growth.map(|it| it.acked_bytes), rates.map(|it| it.marks_per_s))
        };
        assert_eq!(shown("tap0"), (2, 20, Some(200), Some(1.0)));
        assert_eq!(shown("tap1"), (1, 10, Some(100), Some(0.5)));
    }
}

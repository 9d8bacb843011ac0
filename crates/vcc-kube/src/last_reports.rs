//! When each node reported last: one that is down, or from which vcc was removed, keeps its VccNode
//! with its last report.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use crate::status::NodeStatus;
use crate::store::News;

/// A node writes its status once a minute: one that has not for this time does not work.
pub const SILENT: Duration = Duration::from_secs(180);

/// By our own clock, since the nodes' may be wrong. For one that is new to us, time begins with that.
#[derive(Default)]
pub struct LastReports {
    /// The time in each one's last report, and when it arrived.
    nodes: HashMap<String, (String, Instant)>,
}

impl LastReports {
    /// Removes the time from a report, which would make every report look like a change.
    pub fn note(&mut self, news: News<NodeStatus>, now: Instant) -> News<NodeStatus> {
        if let News::Gone(name) = &news {
            self.nodes.remove(name);
        }
        news.map(|name, status| self.of_node(name, status, now))
    }

    fn of_node(&mut self, name: &str, mut status: NodeStatus, now: Instant) -> NodeStatus {
        let updated = std::mem::take(&mut status.updated);
        // A list, or a label that another client set, has the earlier time.
        match self.nodes.get_mut(name) {
            Some((known, _)) if *known == updated => {}
            Some(known) => *known = (updated, now),
            None => drop(self.nodes.insert(name.to_owned(), (updated, now))),
        }
        status
    }

    /// Forgets others than these.
    pub fn keep<T>(&mut self, nodes: &BTreeMap<String, T>) {
        self.nodes.retain(|name, _| nodes.contains_key(name));
    }

    pub fn silent(&self, now: Instant) -> BTreeSet<String> {
        let is_silent = |reports: Instant| now.saturating_duration_since(reports) >= SILENT;
        let silent = self.nodes.iter().filter(|(_, (_, reports))| is_silent(*reports));
        silent.map(|(name, _)| name.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_writes_nothing_is_silent_until_it_does() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let status = |updated: &str| NodeStatus { updated: updated.into(), ..Default::default() };
        let is = |name: &str, updated: &str| News::Is(name.into(), status(updated));
        let listed = |name: &str, updated: &str| News::Listed(name.into(), status(updated));
        let mut reports = LastReports::default();
        let silent = |reports: &LastReports, seconds| {
            reports.silent(at(seconds)).into_iter().collect::<String>()
        };
        // An old report is no reason: the watch has only just begun.
        reports.note(listed("a", "2001-01-01T00:00:00Z"), begin);
        reports.note(listed("b", "2001-01-01T00:00:00Z"), begin);
        reports.note(listed("c", ""), begin);
        assert_eq!(silent(&reports, 179), "");
        let first = reports.note(is("a", "2026-01-01T00:00:00Z"), at(60));
        assert!(matches!(first, News::Is(_, status) if status == NodeStatus::default()));
        assert_eq!(silent(&reports, 180), "bc");
        // A list is no report of those that wrote nothing.
        reports.note(listed("a", "2026-01-01T00:00:00Z"), at(200));
        reports.note(listed("b", "2001-01-01T00:00:00Z"), at(200));
        reports.note(listed("c", "2026-01-01T00:02:00Z"), at(200));
        assert_eq!(silent(&reports, 239), "b");
        assert_eq!(silent(&reports, 240), "ab");
        reports.note(News::Gone("b".into()), at(240));
        assert_eq!(silent(&reports, 240), "a");
        assert_eq!(silent(&reports, 380), "ac");
        reports.keep(&BTreeMap::from([("a".to_owned(), ())]));
        assert_eq!(silent(&reports, 1000), "a");
    }
}

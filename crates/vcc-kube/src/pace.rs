//! When the policies' statuses are written. Each write goes to all nodes, since they watch the policies:
//! while a change goes round, many writes would be most of what the API server does.

use std::time::{Duration, Instant};

/// A policy's summary is written once all nodes have reported: when nothing new has arrived for this time.
const CALM: Duration = Duration::from_secs(1);
/// Other writes are this far apart per node, so that they cause at most 50 events a second.
const APART_PER_NODE: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
pub struct Pace {
    wrote: Option<Instant>,
    /// When the newest came of the news that are not written.
    news: Option<Instant>,
    /// Counts that are not written.
    has_counts: bool,
}

impl Pace {
    /// A policy has changed, or what a node makes of it.
    pub fn hear_news(&mut self, now: Instant) {
        self.news = Some(now);
    }

    /// A node has counted further.
    pub fn hear_counts(&mut self) {
        self.has_counts = true;
    }

    pub fn is_due(&self, nodes: usize, now: Instant) -> bool {
        let is_past = |since: Option<Instant>, pause: Duration| {
            since.is_none_or(|since| now.saturating_duration_since(since) >= pause)
        };
        let apart = APART_PER_NODE.saturating_mul(u32::try_from(nodes).unwrap_or(u32::MAX));
        let is_calm = self.news.is_some() && is_past(self.news, CALM);
        let pause = if is_calm { CALM } else { apart.max(CALM) };
        (self.news.is_some() || self.has_counts) && is_past(self.wrote, pause)
    }

    /// What was heard is written, or has to be tried again.
    pub fn wrote(&mut self, is_whole: bool, now: Instant) {
        self.wrote = Some(now);
        if is_whole {
            self.news = None;
            self.has_counts = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(begin: Instant, ms: u64) -> Instant {
        begin + Duration::from_millis(ms)
    }

    #[test]
    fn news_are_written_when_no_more_come() {
        let begin = Instant::now();
        let mut pace = Pace::default();
        assert!(!pace.is_due(1000, begin), "there is nothing to write");
        pace.hear_news(begin);
        assert!(pace.is_due(1000, begin), "the first");
        pace.wrote(true, begin);
        assert!(!pace.is_due(1000, at(begin, 60_000)));
        pace.wrote(true, at(begin, 60_000));
        for ms in (61_000..=64_000).step_by(500) {
            pace.hear_news(at(begin, ms));
            assert!(!pace.is_due(1000, at(begin, ms + 999)), "more may come");
        }
        assert!(pace.is_due(1000, at(begin, 65_000)));
    }

    #[test]
    fn news_without_end_are_written_too_and_counts_rarely() {
        let begin = Instant::now();
        let mut pace = Pace::default();
        pace.wrote(true, begin);
        for (nodes, after_ms) in [(3, 1_000), (1000, 20_000), (10_000, 200_000)] {
            pace.hear_news(at(begin, after_ms - 1));
            assert!(!pace.is_due(nodes, at(begin, after_ms - 1)), "{nodes}");
            assert!(pace.is_due(nodes, at(begin, after_ms)), "{nodes}");
            pace.news = None;
            pace.hear_counts();
            assert!(!pace.is_due(nodes, at(begin, after_ms - 1)), "{nodes}");
            assert!(pace.is_due(nodes, at(begin, after_ms)), "{nodes}");
            pace.has_counts = false;
        }
    }

    #[test]
    fn what_could_not_be_written_is_tried_again_a_moment_later() {
        let begin = Instant::now();
        let mut pace = Pace::default();
        pace.hear_news(begin);
        pace.wrote(false, begin);
        assert!(!pace.is_due(1000, at(begin, 999)));
        assert!(pace.is_due(1000, at(begin, 1_000)));
    }
}

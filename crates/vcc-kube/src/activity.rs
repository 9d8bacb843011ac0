//! From what rules did since the host began to count to what a node's connections did of late.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::host::RuleActivity;
use crate::status::Activity;

/// How often the connections are looked at.
pub const EVERY: Duration = Duration::from_secs(60);

pub struct Activities {
    before: HashMap<String, RuleActivity>,
    looked: Option<Instant>,
    /// From the last look to the next.
    pause: Duration,
    latest: Option<Activity>,
}

impl Activities {
    /// `first` is the time from the first look to the second: nodes that start together do not all look,
    /// and write what they saw, at the same moments.
    pub fn new(first: Duration) -> Self {
        Self { before: HashMap::new(), looked: None, pause: first, latest: None }
    }

    pub fn is_due(&self, now: Instant) -> bool {
        self.looked.is_none_or(|looked| now - looked >= self.pause)
    }

    pub fn update(&mut self, rules: Vec<RuleActivity>, now: Instant) {
        let seconds = self.looked.map_or(0, |looked| (now - looked).as_secs());
        if self.looked.replace(now).is_some() {
            self.pause = EVERY;
        }
        // A rule that has counted less is another one of the same name.
        let growth = |rule: &RuleActivity| {
            let before = self.before.get(&rule.name)?;
            Some([
                rule.retransmissions.checked_sub(before.retransmissions)?,
                rule.acked_bytes.checked_sub(before.acked_bytes)?,
            ])
        };
        let [retransmissions, acked_bytes] = rules
            .iter()
            .filter_map(growth)
            .fold([0; 2], |sums, more| [sums[0] + more[0], sums[1] + more[1]]);
        self.latest = Some(Activity {
            seconds,
            flows: rules.iter().map(|rule| rule.flows).sum(),
            retransmissions,
            acked_bytes,
            rtt_us: weighted_median(rules.iter().map(|rule| (rule.rtt_us, rule.flows))),
        });
        self.before = rules.into_iter().map(|rule| (rule.name.clone(), rule)).collect();
    }

    /// Between the last two looks.
    pub fn latest(&self) -> Option<Activity> {
        self.latest
    }
}

/// The median of medians, each weighted by its flows. Zero means no measurement.
pub fn weighted_median(medians: impl Iterator<Item = (u64, u64)>) -> u64 {
    let mut medians: Vec<(u64, u64)> =
        medians.filter(|(value, weight)| *value > 0 && *weight > 0).collect();
    medians.sort_unstable();
    let all: u64 = medians.iter().map(|(_, weight)| weight).sum();
    let mut below = 0;
    let median = medians.iter().find(|(_, weight)| {
        below += weight;
        below * 2 >= all
    });
    median.map_or(0, |(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(
        name: &str,
        flows: u64,
        retransmissions: u64,
        acked_bytes: u64,
        rtt_us: u64,
    ) -> RuleActivity {
        RuleActivity { name: name.into(), flows, retransmissions, acked_bytes, rtt_us }
    }

    #[test]
    fn a_node_reports_the_activity_since_the_last_update() {
        const FIRST: Duration = Duration::from_secs(20);
        let mut activities = Activities::new(FIRST);
        assert_eq!(activities.latest(), None);
        let begin = Instant::now();
        assert!(activities.is_due(begin));
        activities.update(vec![rule("a/x", 1, 10, 100, 50), rule("a/y", 2, 0, 0, 90)], begin);
        let first = Activity { flows: 3, rtt_us: 90, ..Activity::default() };
        assert_eq!(activities.latest(), Some(first));
        let later = begin + FIRST;
        assert!(activities.is_due(later) && !activities.is_due(later - Duration::from_millis(1)));
        let rules = vec![
            rule("a/x", 1, 15, 300, 50),
            rule("a/y", 3, 2, 50, 90),
            rule("default", 10, 9, 9, 7),
        ];
        activities.update(rules, later);
        let next = later + EVERY;
        assert!(activities.is_due(next) && !activities.is_due(next - Duration::from_millis(1)));
        let own =
            Activity { seconds: 20, flows: 14, retransmissions: 7, acked_bytes: 250, rtt_us: 7 };
        assert_eq!(activities.latest(), Some(own), "of the default, the first look is behind it");
        // The daemon has begun to count again.
        activities.update(vec![rule("a/x", 1, 3, 3, 50)], next);
        assert_eq!(activities.latest().map(|it| it.retransmissions), Some(0));
    }

    #[test]
    fn medians_weigh_as_much_as_their_flows() {
        let of = |medians: &[(u64, u64)]| weighted_median(medians.iter().copied());
        assert_eq!(of(&[]), 0);
        assert_eq!(of(&[(0, 5), (7, 1)]), 7);
        assert_eq!(of(&[(10, 1), (20, 1), (30, 1)]), 20);
        assert_eq!(of(&[(10, 1), (20, 1), (30, 9)]), 30);
    }
}

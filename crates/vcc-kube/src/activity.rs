//! From what rules did since the host began to count to what policies did of late.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::host::RuleActivity;
use crate::status::Activity;

/// How often the connections are looked at.
pub const EVERY: Duration = Duration::from_secs(60);

/// No policy has an empty name.
const NO_RULE: &str = "";

pub struct Activities {
    before: HashMap<String, RuleActivity>,
    looked: Option<Instant>,
    /// From the last look to the next.
    pause: Duration,
    /// By policy; of connections that no rule matches under [`NO_RULE`].
    of_policies: HashMap<String, Activity>,
}

impl Activities {
    /// `first` is the time from the first look to the second: nodes that start together do not all look,
    /// and write what they saw, at the same moments.
    pub fn new(first: Duration) -> Self {
        let (before, of_policies) = (HashMap::new(), HashMap::new());
        Self { before, looked: None, pause: first, of_policies }
    }

    pub fn is_due(&self, now: Instant) -> bool {
        self.looked.is_none_or(|looked| now - looked >= self.pause)
    }

    pub fn look(&mut self, rules: Vec<RuleActivity>, now: Instant) {
        let seconds = self.looked.map_or(0, |looked| (now - looked).as_secs());
        if self.looked.replace(now).is_some() {
            self.pause = EVERY;
        }
        let mut by_policy: HashMap<&str, Vec<(&RuleActivity, Activity)>> = HashMap::new();
        for rule in &rules {
            // A rule that has counted less is another one of the same name.
            let before = self.before.get(&rule.name);
            let growth = before.and_then(|before| {
                Some((
                    rule.retransmissions.checked_sub(before.retransmissions)?,
                    rule.acked_bytes.checked_sub(before.acked_bytes)?,
                ))
            });
            let (retransmissions, acked_bytes) = growth.unwrap_or_default();
            let policy = rule.name.split_once('/').map_or(NO_RULE, |(policy, _)| policy);
            let activity = Activity {
                seconds,
                flows: rule.flows,
                retransmissions,
                acked_bytes,
                rtt_us: rule.rtt_us,
            };
            by_policy.entry(policy).or_default().push((rule, activity));
        }
        let sum = |rules: Vec<(&RuleActivity, Activity)>| Activity {
            seconds,
            flows: rules.iter().map(|(_, it)| it.flows).sum(),
            retransmissions: rules.iter().map(|(_, it)| it.retransmissions).sum(),
            acked_bytes: rules.iter().map(|(_, it)| it.acked_bytes).sum(),
            rtt_us: weighted_median(rules.iter().map(|(_, it)| (it.rtt_us, it.flows))),
        };
        self.of_policies =
            by_policy.into_iter().map(|(policy, rules)| (policy.to_owned(), sum(rules))).collect();
        self.before = rules.into_iter().map(|rule| (rule.name.clone(), rule)).collect();
    }

    /// `has_default`: connections that no rule matches are under this policy.
    pub fn of(&self, policy: &str, has_default: bool) -> Option<Activity> {
        let own = self.of_policies.get(policy);
        let default = self.of_policies.get(NO_RULE).filter(|_| has_default);
        match (own, default) {
            (Some(own), Some(default)) => Some(Activity {
                seconds: own.seconds,
                flows: own.flows + default.flows,
                retransmissions: own.retransmissions + default.retransmissions,
                acked_bytes: own.acked_bytes + default.acked_bytes,
                rtt_us: weighted_median([own, default].into_iter().map(|it| (it.rtt_us, it.flows))),
            }),
            (own, default) => own.or(default).copied(),
        }
    }
}

/// The median of medians, each as often as there are flows. Those of 0 are of nobody.
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
    fn policies_get_what_their_rules_did_since_the_last_look() {
        const FIRST: Duration = Duration::from_secs(20);
        let mut activities = Activities::new(FIRST);
        let begin = Instant::now();
        assert!(activities.is_due(begin));
        let first = vec![rule("a/x", 1, 10, 100, 50), rule("a/y", 2, 0, 0, 90)];
        activities.look(first, begin);
        assert_eq!(
            activities.of("a", false).map(|it| (it.seconds, it.retransmissions)),
            Some((0, 0))
        );
        let later = begin + FIRST;
        assert!(activities.is_due(later) && !activities.is_due(later - Duration::from_millis(1)));
        activities.look(
            vec![
                rule("a/x", 1, 15, 300, 50),
                rule("a/y", 3, 2, 50, 90),
                rule("default", 10, 1, 1, 7),
                rule("ab/x", 9, 9, 9, 9),
            ],
            later,
        );
        let next = later + EVERY;
        assert!(activities.is_due(next) && !activities.is_due(next - Duration::from_millis(1)));
        let own =
            Activity { seconds: 20, flows: 4, retransmissions: 7, acked_bytes: 250, rtt_us: 90 };
        assert_eq!(activities.of("a", false), Some(own));
        let with_default = activities.of("a", true).expect("both");
        assert_eq!((with_default.flows, with_default.rtt_us), (14, 7));
        assert_eq!(activities.of("b", false), None);
        // The daemon has begun to count again.
        activities.look(vec![rule("a/x", 1, 3, 3, 50)], later + EVERY);
        assert_eq!(activities.of("a", false).map(|it| it.retransmissions), Some(0));
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

//! The rates of ports, of rules, and of all connections.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::flow::FlowView;
use crate::names::keys;
use crate::port::PortView;
use crate::rates::{Growth, Rates};
use crate::rule::RuleView;
use crate::sums::Sums;

/// Connections that are summed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    All,
    /// By its key from [`keys`].
    Port(Arc<str>),
    /// By its name.
    Rule(Arc<str>),
}

/// The growth of groups since some moment.
pub type Grown = HashMap<Group, Growth>;

/// The rates of groups: their growth over the time between reads. The connections that ended in that
/// time are in them with what they had at their last read.
pub struct Pace {
    over: Duration,
    reads: VecDeque<(Duration, Grown)>,
}

impl Pace {
    /// Rates are over this time where there are reads of it, and over two reads at least.
    pub fn over(over: Duration) -> Self {
        Self { over, reads: VecDeque::new() }
    }

    /// A read at `at`, of any clock.
    pub fn note(&mut self, at: Duration, grown: Grown) {
        self.reads.push_back((at, grown));
        while self.reads.len() > 2 && self.reads[1].0 + self.over <= at {
            self.reads.pop_front();
        }
    }

    /// None for a group that was not in two reads, or has shrunk.
    pub fn rates_of(&self, group: &Group) -> Option<Rates> {
        let known = |(at, grown): &(Duration, Grown)| Some((*at, *grown.get(group)?));
        let (last_at, last) = known(self.reads.back()?)?;
        let (first_at, first) = self.reads.iter().find_map(known)?;
        Rates::over(&last.since(first)?, last_at.checked_sub(first_at)?)
    }
}

/// Gives ports and rules the sums over their flows, and returns the sums over all flows. `grown` is
/// since the daemon started.
pub fn sum_up(
    ports: &mut [PortView],
    rules: &mut [RuleView],
    flows: &[FlowView],
    grown: Option<&Grown>,
    pace: &Pace,
) -> Sums {
    let begin = |group: &Group| Sums {
        growth: grown.and_then(|grown| grown.get(group)).copied(),
        rates: pace.rates_of(group),
        ..Sums::default()
    };
    let keys = keys(ports.iter().map(|port| port.port.as_str()));
    for (port, key) in ports.iter_mut().zip(keys) {
        port.sums = begin(&Group::Port(key));
    }
    for rule in rules.iter_mut() {
        rule.sums = begin(&Group::Rule(rule.name.clone()));
    }
    let mut all = begin(&Group::All);
    let names = rules.iter().zip(0..).map(|(rule, at)| (rule.name.clone(), at));
    let by_name: HashMap<Arc<str>, usize> = names.collect();
    for flow in flows {
        all.count(&flow.state);
        ports[flow.port_index].sums.count(&flow.state);
        if let Some(at) = flow.rule.as_ref().and_then(|name| by_name.get(name)) {
            rules[*at].sums.count(&flow.state);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{flow, port, rule};

    const SECOND: Duration = Duration::from_secs(1);

    fn grown(acked_bytes: u64) -> Grown {
        [(Group::All, Growth { acked_bytes, ..Growth::default() })].into()
    }

    fn goodput_bits_per_s(pace: &Pace) -> Option<f64> {
        pace.rates_of(&Group::All).map(|rates| rates.goodput_bits_per_s)
    }

    #[test]
    fn rates_are_over_the_time_that_is_wanted_and_over_two_reads_at_least() {
        for (over_s, expected) in [(0, 800.0), (1, 800.0), (2, 600.0), (60, 1600.0 / 3.0)] {
            let mut pace = Pace::over(over_s * SECOND);
            for (at_s, acked_bytes) in [(1, 0), (2, 50), (3, 100), (4, 200)] {
                pace.note(at_s * SECOND, grown(acked_bytes));
                assert_eq!(goodput_bits_per_s(&pace).is_some(), at_s > 1);
            }
            assert_eq!(goodput_bits_per_s(&pace), Some(expected), "{over_s} s");
        }
    }

    #[test]
    fn a_group_has_a_rate_from_its_second_read_on_unless_it_shrinks() {
        let mut pace = Pace::over(60 * SECOND);
        pace.note(SECOND, Grown::new());
        pace.note(2 * SECOND, grown(100));
        assert_eq!(goodput_bits_per_s(&pace), None);
        pace.note(3 * SECOND, grown(300));
        assert_eq!(goodput_bits_per_s(&pace), Some(1600.0));
        pace.note(4 * SECOND, grown(50));
        assert_eq!(goodput_bits_per_s(&pace), None);
        pace.note(5 * SECOND, Grown::new());
        assert_eq!(goodput_bits_per_s(&pace), None);
    }

    #[test]
    fn flows_are_summed_by_port_and_rule() {
        // Two ports of one name.
        let mut ports = [port("veth3"), port("veth3")];
        let mut rules = [rule("web"), rule("default")];
        let mut flows =
            [1, 2, 3].map(|number| flow(&format!("192.0.2.1:{number}"), "192.0.2.2:80"));
        flows[0].rule = Some("web".into());
        flows[1].rule = Some("of an earlier edition".into());
        flows[2].port_index = 1;
        let growth = |acked_bytes| Growth { acked_bytes, ..Growth::default() };
        let grown: Grown = [
            (Group::Port("veth3".into()), growth(10)),
            (Group::Port("veth3 2".into()), growth(20)),
            (Group::Rule("web".into()), growth(30)),
            (Group::All, growth(40)),
        ]
        .into();
        let pace = Pace::over(SECOND);
        let all = sum_up(&mut ports, &mut rules, &flows, Some(&grown), &pace);
        let seen = |sums: Sums| {
            (sums.flows, sums.window_bytes, sums.growth.map(|growth| growth.acked_bytes))
        };
        assert_eq!(seen(all), (3, 3 * 14_400, Some(40)));
        let [first, second] = ports.map(|port| seen(port.sums));
        assert_eq!((first, second), ((2, 28_800, Some(10)), (1, 14_400, Some(20))));
        let [web, default] = rules.map(|rule| seen(rule.sums));
        assert_eq!((web, default), ((1, 14_400, Some(30)), (0, 0, None)));
    }
}

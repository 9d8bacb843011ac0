//! What happens when in a run, beside the moving of data.

use super::Plan;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    StartMeasuring,
    /// The start or the end of a phase.
    Bound,
    Leave(usize),
    Join(usize),
    SampleWindows,
    SampleReceived,
    Finish,
}

/// Times since the traffic began, in their order. At the same time, flows are counted before they
/// leave, and leave before others join.
pub fn agenda(plan: &Plan) -> Vec<(u64, Act)> {
    let (start_ns, end_ns) = (plan.warm_up_ns, plan.warm_up_ns + plan.measured_ns);
    let mut acts = vec![(start_ns, Act::StartMeasuring), (end_ns, Act::Finish)];
    let phases = u64::from(plan.phases);
    acts.extend((0..=phases).map(|bound| (start_ns + plan.bound_ns(bound), Act::Bound)));
    for (number, flow) in plan.flows.iter().enumerate() {
        acts.push((flow.joins_at_ns.map_or(0, |at_ns| start_ns + at_ns), Act::Join(number)));
        acts.extend(flow.leaves_at_ns.map(|at_ns| (start_ns + at_ns, Act::Leave(number))));
    }
    let mut every = |every_us: Option<u64>, act| {
        let Some(every_ns) = every_us.map(|us| us * 1000) else { return };
        let times = (0..).map(|i| i * every_ns).take_while(|&at_ns| at_ns < plan.measured_ns);
        acts.extend(times.map(|at_ns| (start_ns + at_ns, act)));
    };
    every(plan.windows_every_us, Act::SampleWindows);
    every(plan.received_every_us, Act::SampleReceived);
    acts.sort_by_key(|&(at_ns, act)| (at_ns, rank(act)));
    acts
}

fn rank(act: Act) -> u8 {
    match act {
        Act::StartMeasuring => 0,
        Act::Bound => 1,
        Act::SampleWindows | Act::SampleReceived => 2,
        Act::Leave(_) => 3,
        Act::Join(_) => 4,
        Act::Finish => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FlowSpec, Pattern};
    use super::*;

    fn flow(joins_at_ns: Option<u64>, leaves_at_ns: Option<u64>) -> FlowSpec {
        FlowSpec {
            sender: 0,
            receiver: 1,
            pattern: Pattern::Bulk,
            congestion_control: "reno".into(),
            is_proxied: false,
            has_route_cwnd: false,
            joins_at_ns,
            leaves_at_ns,
        }
    }

    #[test]
    fn flows_join_and_leave_at_the_bounds_of_phases() {
        let plan = Plan {
            flows: vec![flow(None, None), flow(Some(10), Some(20))],
            warm_up_ns: 5,
            measured_ns: 30,
            phases: 3,
            windows_every_us: None,
            received_every_us: None,
            seed: 1,
        };
        let expected = [
            (0, Act::Join(0)),
            (5, Act::StartMeasuring),
            (5, Act::Bound),
            (15, Act::Bound),
            (15, Act::Join(1)),
            (25, Act::Bound),
            (25, Act::Leave(1)),
            (35, Act::Bound),
            (35, Act::Finish),
        ];
        assert_eq!(agenda(&plan), expected);
    }

    #[test]
    fn samples_cover_the_window_and_nothing_else() {
        let plan = Plan {
            flows: Vec::new(),
            warm_up_ns: 7_000,
            measured_ns: 3_000,
            phases: 1,
            windows_every_us: Some(1),
            received_every_us: None,
            seed: 1,
        };
        let agenda = agenda(&plan);
        let samples = agenda.iter().filter(|(_, act)| *act == Act::SampleWindows);
        let times: Vec<u64> = samples.map(|(at_ns, _)| *at_ns).collect();
        assert_eq!(times, [7_000, 8_000, 9_000]);
    }
}

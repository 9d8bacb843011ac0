//! The timeline of a run, apart from the transfer of data.

use crate::plan::Measure;

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

/// When a flow sends, on the clock of the measurement window.
#[derive(Debug, Clone, Copy)]
pub struct Presence {
    pub joins_at_ns: u64,
    pub leaves_at_ns: Option<u64>,
}

/// The acts of these flows in order, with times on the clock of `measure`. At the same time, flows
/// are counted before they leave, and leave before others join.
pub fn agenda(measure: &Measure, flows: impl IntoIterator<Item = Presence>) -> Vec<(u64, Act)> {
    let &Measure { start_ns, end_ns, .. } = measure;
    let mut acts = vec![(start_ns, Act::StartMeasuring), (end_ns, Act::Finish)];
    let phases = u64::from(measure.phases);
    acts.extend((0..=phases).map(|bound| (start_ns + measure.bound_ns(bound), Act::Bound)));
    for (number, flow) in flows.into_iter().enumerate() {
        acts.push((flow.joins_at_ns, Act::Join(number)));
        acts.extend(flow.leaves_at_ns.map(|at_ns| (at_ns, Act::Leave(number))));
    }
    let mut every = |every_us: Option<u64>, act| {
        let Some(every_ns) = every_us.map(|us| us * 1000) else { return };
        let times = (0..).map(|i| start_ns + i * every_ns).take_while(|&at_ns| at_ns < end_ns);
        acts.extend(times.map(|at_ns| (at_ns, act)));
    };
    every(measure.windows_every_us, Act::SampleWindows);
    every(measure.received_every_us, Act::SampleReceived);
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
    use super::*;

    #[test]
    fn flows_join_and_leave_at_the_bounds_of_phases() {
        let measure = Measure {
            start_ns: 5,
            end_ns: 35,
            phases: 3,
            windows_every_us: None,
            received_every_us: None,
        };
        let flows = [
            Presence { joins_at_ns: 0, leaves_at_ns: None },
            Presence { joins_at_ns: 15, leaves_at_ns: Some(25) },
        ];
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
        assert_eq!(agenda(&measure, flows), expected);
    }

    #[test]
    fn samples_cover_the_window_and_nothing_else() {
        let measure = Measure {
            start_ns: 7_000,
            end_ns: 10_000,
            phases: 1,
            windows_every_us: Some(1),
            received_every_us: None,
        };
        let agenda = agenda(&measure, []);
        let samples = agenda.iter().filter(|(_, act)| *act == Act::SampleWindows);
        let times: Vec<u64> = samples.map(|(at_ns, _)| *at_ns).collect();
        assert_eq!(times, [7_000, 8_000, 9_000]);
    }
}

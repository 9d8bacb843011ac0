//! The timeline of a guest.

use vcc_net::random::mix;
use vcc_traffic::Pattern;
use vcc_traffic::agenda::{self, Presence, agenda};
use vcc_traffic::plan::GuestPlan;

/// Numbers are positions in the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    Connect(usize),
    Traffic(agenda::Act),
    Ping(usize),
    /// A flow's next transfer.
    Transfer(usize),
    /// A worker's message.
    Post(usize),
    Report,
}

/// All acts with absolute times of CLOCK_MONOTONIC, in order.
pub fn timeline(plan: &GuestPlan) -> Vec<(u64, Act)> {
    let sends = plan.sends.iter().enumerate();
    let mut acts: Vec<(u64, Act)> =
        sends.map(|(number, flow)| (flow.connects_at_ns, Act::Connect(number))).collect();
    let flows = plan
        .sends
        .iter()
        .map(|flow| Presence { joins_at_ns: flow.joins_at_ns, leaves_at_ns: flow.leaves_at_ns });
    let traffic = agenda(&plan.measure, flows).into_iter();
    acts.extend(traffic.map(|(at_ns, act)| (at_ns, Act::Traffic(act))));
    for (number, flow) in plan.sends.iter().enumerate() {
        let Pattern::Transfers(transfers) = flow.pattern else { continue };
        let begins_at_ns = transfers.later_ns(flow.joins_at_ns, flow.seed ^ mix(flow.flow as u64));
        let within = begins_at_ns.take_while(|&at_ns| at_ns < plan.measure.end_ns);
        acts.extend(within.map(|at_ns| (at_ns, Act::Transfer(number))));
    }
    for (number, pings) in plan.pings.iter().enumerate() {
        acts.extend(pings.times.iter().map(|at_ns| (at_ns, Act::Ping(number))));
    }
    for (number, worker) in plan.workers.iter().enumerate() {
        let posts_at_ns = worker.posts_at_ns(plan.measure.end_ns);
        acts.extend(posts_at_ns.map(|at_ns| (at_ns, Act::Post(number))));
    }
    acts.push((plan.ends_at_ns, Act::Report));
    // A stable sort keeps the order of acts at the same time.
    acts.sort_by_key(|&(at_ns, _)| at_ns);
    acts
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn connections_come_before_data_and_the_report_is_last() {
        let plan = json!({
            "network": {
                "device": "eth0", "address": "10.77.0.1", "prefix_bits": 16, "neighbours": [],
                "tso": true,
            },
            "sysctls": [], "listeners": [], "receives": [],
            "sends": [{
                "flow": 4, "to": "10.77.0.2:5001", "from_port": 20_000, "seed": 1,
                "congestion_control": "reno", "pattern": "bulk", "cwnd_clamp_segs": null,
                "connects_at_ns": 10, "joins_at_ns": 10, "leaves_at_ns": 30,
            }],
            "pings": [{ "number": 2, "to": "10.77.0.2", "times": { "at": { "at_ns": [40, 20] } } }],
            "measure": {
                "start_ns": 20, "end_ns": 40, "phases": 1, "windows_every_us": null,
                "received_every_us": null,
            },
            "ends_at_ns": 40,
        });
        let plan: GuestPlan = serde_json::from_value(plan).unwrap();
        let expected = [
            (10, Act::Connect(0)),
            (10, Act::Traffic(agenda::Act::Join(0))),
            (20, Act::Traffic(agenda::Act::StartMeasuring)),
            (20, Act::Traffic(agenda::Act::Bound)),
            (20, Act::Ping(0)),
            (30, Act::Traffic(agenda::Act::Leave(0))),
            (40, Act::Traffic(agenda::Act::Bound)),
            (40, Act::Traffic(agenda::Act::Finish)),
            (40, Act::Ping(0)),
            (40, Act::Report),
        ];
        assert_eq!(timeline(&plan), expected);
    }
}

//! Consistency checks of a plan.

use super::{FlowToSend, GuestPlan};
use crate::error::{Error, Result};
use crate::pattern::Pattern;
use std::collections::BTreeSet;

impl GuestPlan {
    /// # Errors
    /// The plan contradicts itself.
    pub fn check(&self) -> Result<()> {
        let problem = self.problem_of_times().or_else(|| self.problem_of_ports());
        let problem = problem.or_else(|| self.problem_of_workers());
        let pattern = |flow: usize| self.sends.get(flow).map(|flow| flow.pattern);
        let is_asking = |flow| matches!(pattern(flow), Some(Pattern::Requests(_)));
        let problem = problem.or_else(|| self.requests.problem(is_asking));
        problem.map_or(Ok(()), |problem| Err(Error::Plan(problem)))
    }

    fn problem_of_times(&self) -> Option<String> {
        let measure = &self.measure;
        if measure.phases == 0 {
            return Some("has no phase".into());
        }
        if measure.end_ns <= measure.start_ns || self.ends_at_ns < measure.end_ns {
            return Some("ends before it has measured".into());
        }
        if [measure.windows_every_us, measure.received_every_us].contains(&Some(0)) {
            return Some("samples every 0 us".into());
        }
        let ping_times = self.pings.iter().flat_map(|pings| pings.times.iter());
        if ping_times.max().is_some_and(|last_ns| last_ns > self.ends_at_ns) {
            return Some("has a ping after its end".into());
        }
        let disordered = self.sends.iter().find(|flow| {
            let leaves_at_ns = flow.leaves_at_ns.unwrap_or(measure.end_ns);
            flow.joins_at_ns < flow.connects_at_ns
                || leaves_at_ns <= flow.joins_at_ns
                || leaves_at_ns > measure.end_ns
        });
        disordered.map(|flow| {
            format!(
                "has flow {} connect, join, leave and the window end in another order than this",
                flow.flow
            )
        })
    }

    fn problem_of_workers(&self) -> Option<String> {
        for (number, worker) in self.workers.iter().enumerate() {
            if worker.flows.is_empty() {
                return Some(format!("has no flow for worker {number}"));
            }
            for &flow in &worker.flows {
                let takes_messages =
                    |flow: &FlowToSend| matches!(flow.pattern, Pattern::Messages(_));
                match self.sends.get(flow) {
                    Some(flow) if !takes_messages(flow) => {
                        let flow = flow.flow;
                        return Some(format!(
                            "has worker {number} send over flow {flow}, which takes no messages"
                        ));
                    }
                    Some(flow) if flow.connects_at_ns >= worker.starts_at_ns => {
                        let flow = flow.flow;
                        return Some(format!(
                            "has worker {number} start before its flow {flow} connects"
                        ));
                    }
                    Some(_) => {}
                    None => {
                        return Some(format!("has no flow in place {flow}, for worker {number}"));
                    }
                }
            }
        }
        None
    }

    fn problem_of_ports(&self) -> Option<String> {
        let mut listening = BTreeSet::new();
        for listener in &self.listeners {
            if !listening.insert(listener.port) {
                return Some(format!("has two listeners at port {}", listener.port));
            }
        }
        let mut known = BTreeSet::new();
        for flow in &self.receives {
            let (number, port) = (flow.flow, flow.port);
            if !listening.contains(&port) {
                return Some(format!("has no listener at port {port}, where flow {number} comes"));
            }
            if !known.insert((port, flow.from_port)) {
                let from = flow.from_port;
                return Some(format!("has two flows to port {port} from port {from}"));
            }
        }
        let mut own = BTreeSet::new();
        let twice = self.sends.iter().find(|flow| !own.insert((flow.from_port, flow.to)));
        twice.map(|flow| {
            format!("has two flows from port {} to the receiver of {}", flow.from_port, flow.flow)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FlowToReceive, Listener, Measure, Network, PingTimes, Pings};
    use super::*;
    use crate::pattern::Messages;
    use crate::pattern::{Order, Pace, Size};
    use crate::requests::RequestsPlan;
    use crate::workers::WorkerPlan;
    use std::net::{Ipv4Addr, SocketAddr};
    use std::num::{NonZeroU32, NonZeroU64};

    fn plan() -> GuestPlan {
        let address = Ipv4Addr::new(10, 77, 0, 1);
        GuestPlan {
            network: Network {
                device: "eth0".into(),
                address: address.into(),
                prefix_bits: 16,
                neighbours: Vec::new(),
                tso: false,
                initial_window_segs: None,
            },
            sysctls: Vec::new(),
            listeners: vec![Listener { port: 5001, congestion_control: "reno".into() }],
            sends: vec![FlowToSend {
                flow: 0,
                to: SocketAddr::from((address, 5001)),
                from_port: 40_000,
                congestion_control: "reno".into(),
                pattern: Pattern::Bulk,
                cwnd_clamp_segs: None,
                seed: 1,
                connects_at_ns: 1,
                joins_at_ns: 2,
                leaves_at_ns: None,
            }],
            workers: Vec::new(),
            requests: RequestsPlan::default(),
            receives: vec![FlowToReceive {
                flow: 0,
                port: 5001,
                from_port: 40_000,
                is_introduced: false,
                pattern: Pattern::Bulk,
                seed: 1,
            }],
            pings: Vec::new(),
            measure: Measure {
                start_ns: 3,
                end_ns: 5,
                phases: 1,
                windows_every_us: None,
                received_every_us: None,
            },
            ends_at_ns: 5,
        }
    }

    #[test]
    fn a_plan_is_read_as_it_was_written() {
        let text = serde_json::to_string(&plan()).unwrap();
        assert_eq!(serde_json::from_str::<GuestPlan>(&text).unwrap(), plan());
        assert!(plan().check().is_ok());
    }

    #[test]
    fn contradictions_are_reported() {
        let problem = |change: fn(&mut GuestPlan)| {
            let mut plan = plan();
            change(&mut plan);
            plan.check().unwrap_err().to_string()
        };
        assert!(problem(|plan| plan.measure.phases = 0).contains("no phase"));
        assert!(problem(|plan| plan.ends_at_ns = 4).contains("before it has measured"));
        assert!(problem(|plan| plan.measure.windows_every_us = Some(0)).contains("every 0 us"));
        assert!(problem(|plan| plan.sends[0].connects_at_ns = 3).contains("flow 0 connect"));
        assert!(problem(|plan| plan.sends[0].leaves_at_ns = Some(6)).contains("flow 0 connect"));
        let late_ping = |plan: &mut GuestPlan| {
            let (to, times) = (Ipv4Addr::LOCALHOST, PingTimes::At { at_ns: vec![1, 6] });
            plan.pings = vec![Pings { number: 0, to, times }];
        };
        assert!(problem(late_ping).contains("a ping after its end"));
        let with_worker = |plan: &mut GuestPlan, flow: usize, starts_at_ns: u64| {
            let size = Size::Bytes(NonZeroU64::MIN);
            let pace = Pace::AtOnce(NonZeroU32::MIN);
            let messages = Messages { size, order: Order::InTurn, pace };
            plan.sends[0].pattern = Pattern::Messages(messages);
            plan.workers = vec![WorkerPlan { flows: vec![flow], messages, starts_at_ns, seed: 1 }];
        };
        let mut whole = plan();
        with_worker(&mut whole, 0, 2);
        assert!(whole.check().is_ok());
        whole.sends[0].pattern = Pattern::Bulk;
        assert!(whole.check().unwrap_err().to_string().contains("flow 0, which takes no messages"));
        with_worker(&mut whole, 1, 2);
        assert!(whole.check().unwrap_err().to_string().contains("no flow in place 1"));
        with_worker(&mut whole, 0, 1);
        assert!(whole.check().unwrap_err().to_string().contains("before its flow 0 connects"));
        assert!(problem(|plan| plan.listeners.clear()).contains("no listener at port 5001"));
        assert!(problem(|plan| plan.receives.extend_from_within(..)).contains("from port 40000"));
        assert!(problem(|plan| plan.sends.extend_from_within(..)).contains("from port 40000"));
    }

    #[test]
    fn pings_may_be_listed_or_counted() {
        let every = PingTimes::Every { first_at_ns: 5, interval_ns: 10, count: 3 };
        assert!(every.iter().eq([5, 15, 25]));
        assert!(PingTimes::At { at_ns: vec![1, 9] }.iter().eq([1, 9]));
    }
}

//! The flows of a run and their times.

use vcc_fabric::HostId;
use vcc_traffic::Pattern;
use vcc_traffic::agenda::{Act, Presence, agenda};
use vcc_traffic::plan::Measure;

#[derive(Debug, Clone)]
pub struct Plan {
    pub flows: Vec<FlowSpec>,
    pub warm_up_ns: u64,
    pub measured_ns: u64,
    /// Equal parts of the measured time.
    pub phases: u32,
    /// Sampling interval of the senders' windows.
    pub windows_every_us: Option<u64>,
    /// Sampling interval of the received bytes.
    pub received_every_us: Option<u64>,
    pub seed: u64,
}

/// One flow to be made. Times are since the start of the window of measurement.
#[derive(Debug, Clone)]
pub struct FlowSpec {
    pub sender: HostId,
    pub receiver: HostId,
    pub pattern: Pattern,
    pub congestion_control: String,
    /// That of the receiver's listener.
    pub congestion_control_at_receiver: String,
    /// A TCP proxy stands in its way.
    pub is_proxied: bool,
    /// The sender's route says how large cwnd may become.
    pub has_route_cwnd: bool,
    /// Before the window of measurement, with the others, if left out.
    pub joins_at_ns: Option<u64>,
    pub leaves_at_ns: Option<u64>,
}

/// Port of a receiver's first listener; each further one has the next.
const PORT: u16 = 5001;

impl Plan {
    /// The port on which each flow's receiver listens. A receiver has one listener per congestion
    /// control, because accepted connections inherit the listener's, and some, such as DCTCP,
    /// acknowledge differently. A flow of many connections has a listener of its own, which
    /// identifies the flow, because every connection has another source port.
    pub fn ports(&self) -> Vec<u16> {
        let mut known: Vec<(HostId, &str, Option<usize>)> = Vec::new();
        let mut ports = Vec::new();
        for (number, flow) in self.flows.iter().enumerate() {
            let own = flow.pattern.has_many_connections().then_some(number);
            let place = (flow.receiver, flow.congestion_control_at_receiver.as_str(), own);
            if !known.contains(&place) {
                known.push(place);
            }
            let mut listeners = known.iter().filter(|(host, ..)| *host == flow.receiver);
            let number = listeners.position(|listener| *listener == place).unwrap_or(0);
            ports.push(PORT + number as u16);
        }
        ports
    }

    /// End of the `phases`th phase, since the start of the window.
    pub fn bound_ns(&self, phases: u64) -> u64 {
        self.measure().bound_ns(phases)
    }

    /// The acts of a run, with times since the traffic began.
    pub fn agenda(&self) -> Vec<(u64, Act)> {
        let since_begin_ns = |at_ns| self.warm_up_ns + at_ns;
        let presences = self.flows.iter().map(|flow| Presence {
            joins_at_ns: flow.joins_at_ns.map_or(0, since_begin_ns),
            leaves_at_ns: flow.leaves_at_ns.map(since_begin_ns),
        });
        agenda(&self.measure(), presences)
    }

    fn measure(&self) -> Measure {
        Measure {
            start_ns: self.warm_up_ns,
            end_ns: self.warm_up_ns + self.measured_ns,
            phases: self.phases,
            windows_every_us: self.windows_every_us,
            received_every_us: self.received_every_us,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(joins_at_ns: Option<u64>, leaves_at_ns: Option<u64>) -> FlowSpec {
        FlowSpec {
            sender: 0,
            receiver: 1,
            pattern: Pattern::Bulk,
            congestion_control: "reno".into(),
            congestion_control_at_receiver: "reno".into(),
            is_proxied: false,
            has_route_cwnd: false,
            joins_at_ns,
            leaves_at_ns,
        }
    }

    #[test]
    fn flows_join_at_once_unless_they_join_within_the_window() {
        let plan = Plan {
            flows: vec![flow(None, None), flow(Some(10), Some(20))],
            warm_up_ns: 5,
            measured_ns: 30,
            phases: 3,
            windows_every_us: None,
            received_every_us: None,
            seed: 1,
        };
        let mut agenda = plan.agenda();
        agenda.retain(|(_, act)| matches!(act, Act::Join(_) | Act::Leave(_) | Act::Finish));
        let expected =
            [(0, Act::Join(0)), (15, Act::Join(1)), (25, Act::Leave(1)), (35, Act::Finish)];
        assert_eq!(agenda, expected);
        assert_eq!(plan.bound_ns(2), 20);
    }
}

//! Measures reduce a run's data to numbers. Each is a function in one of these files and a line in
//! [`MEASURES`]; an experiment file gives it a name and groups of flows.

mod ack_gaps;
mod buffer;
mod delays;
mod goodput;
mod metric;
mod overlay;
mod pings;
mod pools;
mod queue;
mod response;
mod retransmission;
mod rto;
mod rtt;
mod shadow;
mod tcp;
mod transfers;
mod validity;
mod window;

pub use metric::MetricSpec;
pub use validity::{Validity, validate};

use crate::result::{FlowFacts, FlowResult, Observation, RunData, RunFacts};
use std::ops::Range;
use vcc_fabric::HostId;

const MEASURES: &[Measure] = &[
    goodput::RATIO,
    goodput::JAIN,
    goodput::TOTAL_MBPS,
    goodput::MEAN_MBPS,
    goodput::SHARE,
    retransmission::SEGMENTS,
    retransmission::SHARE,
    tcp::TIMEOUTS,
    tcp::SPURIOUS_TIMEOUTS,
    tcp::LOSS_PROBES,
    tcp::RETRANSMITTED_SEGS,
    tcp::DUPLICATE_ACKS,
    tcp::STALLS,
    tcp::POSTPONED_TIMERS,
    tcp::REPLACED_SAMPLES,
    window::MEAN_SEGS,
    window::PERIOD_S,
    window::PEER_LIMITS,
    rto::SRTT_MAX_US,
    rto::RTO_MIN_US,
    rto::RTO_MAX_US,
    queue::MEAN_BYTES,
    queue::MARKS,
    queue::DROPS,
    queue::DROPS_ECT,
    queue::DROP_SHARE,
    queue::DROPS_EVERYWHERE,
    queue::DROP_SHARE_EVERYWHERE,
    rtt::P50_US,
    rtt::P99_US,
    rtt::P999_US,
    rtt::LOST,
    response::PER_S,
    response::MIN_US,
    response::P50_US,
    response::P90_US,
    response::P99_US,
    response::P999_US,
    response::MAX_US,
    transfers::COUNT,
    transfers::FCT_P10_US,
    transfers::FCT_P50_US,
    transfers::FCT_P90_US,
    transfers::FCT_P99_US,
    transfers::FCT_P999_US,
    transfers::P50_MBPS,
    pings::MIN_US,
    pings::P50_US,
    pings::P99_US,
    pings::P999_US,
    pings::MAX_US,
    pings::LOST,
    pools::MOST_HELD_SHARE,
    pools::OVERDRAWN,
    buffer::MEAN_BYTES,
    buffer::ABOVE_SHARE,
    buffer::RATIO,
    ack_gaps::COUNT,
    shadow::REDUCTIONS_OVER_CWRS,
    shadow::CWND_ERROR,
    shadow::TRACKING_ERROR,
    shadow::TRACKING_ERROR_100_MS,
    overlay::RIGHT,
    overlay::WRONG,
    overlay::UNKNOWN,
    delays::BY_GUEST,
    delays::BY_FABRIC,
    delays::BY_BOTH,
    delays::BY_NEITHER,
    delays::GUEST_US,
    delays::FABRIC_US,
];

pub(crate) struct Measure {
    name: &'static str,
    /// Its definition, for experiments/README.md.
    text: &'static str,
    needs: Needs,
    takes: Takes,
    /// Whether it can be had for one phase alone.
    by_phase: bool,
    /// None where the run has nothing to measure it by.
    compute: fn(&View) -> Option<f64>,
}

#[derive(PartialEq)]
enum Needs {
    Nothing,
    /// One group, for it is not about bulk flows.
    Of,
    /// Two groups.
    Over,
    /// A range of lengths of gaps.
    Gaps,
}

/// What a run must have besides counters of its flows and links, or it has no such measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    Nothing,
    Probes,
    Windows,
    AckGaps,
    Pings,
    /// Ping-pongs or requests.
    Responses,
    /// Transfers or messages.
    Transfers,
    Pools,
    /// A port at an end of the flows.
    Port,
    /// A port in shadow mode at the senders.
    Shadow,
}

impl Measure {
    /// A measure of the whole measured time, for any guests.
    const fn plain(
        name: &'static str,
        text: &'static str,
        compute: fn(&View) -> Option<f64>,
    ) -> Self {
        Self { name, text, needs: Needs::Nothing, takes: Takes::Nothing, by_phase: false, compute }
    }

    const fn by_phase(self) -> Self {
        Self { by_phase: true, ..self }
    }

    const fn needing(self, needs: Needs) -> Self {
        Self { needs, ..self }
    }

    const fn taking(self, takes: Takes) -> Self {
        Self { takes, ..self }
    }
}

/// The part of a run that a metric is about.
pub(crate) struct View<'a> {
    data: &'a RunData,
    facts: &'a RunFacts,
    of: Vec<usize>,
    over: Vec<usize>,
    gaps_ms: Range<u32>,
    /// For transfers and messages: larger ones are left out.
    most_bytes: u64,
    phases: Range<u32>,
}

impl View<'_> {
    fn flows<'a>(&'a self, numbers: &'a [usize]) -> impl Iterator<Item = &'a FlowResult> {
        numbers.iter().map(|&number| &self.data.flows[number])
    }

    /// The host that sends a flow.
    fn sender(&self, flow: usize) -> HostId {
        self.facts.flows[flow].sender
    }

    /// Whether a host sends one of the flows that it is about.
    fn is_of(&self, host: HostId) -> bool {
        self.of.iter().any(|&flow| self.sender(flow) == host)
    }

    /// What the ports saw of the hosts at either end.
    fn translated_at_ends(&self) -> impl Iterator<Item = &Observation> {
        let is_end =
            |host: HostId| self.of.iter().any(|&flow| self.facts.flows[flow].data.contains(&host));
        self.data.translated.iter().filter(move |seen| is_end(seen.guest))
    }

    /// What the ports saw of the hosts that send them.
    fn translated(&self) -> impl Iterator<Item = &Observation> {
        self.data.translated.iter().filter(|seen| self.is_of(seen.guest))
    }

    fn seconds(&self) -> f64 {
        self.phases.len() as f64 * self.facts.phase_s()
    }

    fn contains(&self, at_us: u64) -> bool {
        let at_s = at_us as f64 / 1e6;
        let phase = (at_s / self.facts.phase_s()) as u32;
        self.phases.contains(&phase)
    }
}

/// Name and definition of every measure, and whether it can be had for one phase.
pub fn definitions() -> impl Iterator<Item = (&'static str, &'static str, bool)> {
    MEASURES.iter().map(|measure| (measure.name, measure.text, measure.by_phase))
}

/// `Err` names the field that is wrong or missing.
pub fn check(metric: &MetricSpec) -> Result<(), (&'static str, String)> {
    let Some(measure) = find(&metric.measure) else {
        let known: Vec<&str> = MEASURES.iter().map(|measure| measure.name).collect();
        let text =
            format!("there is no measure '{}': there are {}", metric.measure, known.join(", "));
        return Err(("measure", text));
    };
    if measure.needs == Needs::Over && (metric.of.is_none() || metric.over.is_none()) {
        return Err(("measure", format!("'{}' needs 'of' and 'over'", measure.name)));
    }
    if measure.needs == Needs::Of && metric.of.is_none() {
        return Err(("measure", format!("'{}' needs 'of'", measure.name)));
    }
    if metric.phase.is_some() && !measure.by_phase {
        return Err(("phase", format!("'{}' cannot be restricted to a phase", measure.name)));
    }
    match (metric.gap_from_ms, metric.gap_to_ms) {
        (Some(from), Some(to)) if from >= to => {
            Err(("gap_to_ms", format!("{to} is not above {from}")))
        }
        (Some(_), Some(_)) => Ok(()),
        _ if measure.needs == Needs::Gaps => {
            let text = format!("'{}' needs 'gap_from_ms' and 'gap_to_ms'", measure.name);
            Err(("measure", text))
        }
        _ => Ok(()),
    }
}

/// What the runs of a case must have for the metric.
pub fn takes(metric: &MetricSpec) -> Takes {
    find(&metric.measure).map_or(Takes::Nothing, |measure| measure.takes)
}

/// The metric's value in one run; none where the case has no flows of its groups. Without a group
/// it is about all bulk flows; of one phase, only about those that are there in it.
pub fn value(metric: &MetricSpec, facts: &RunFacts, data: &RunData) -> Option<f64> {
    let phases = metric.phase.map_or(0..facts.phases, |phase| phase - 1..phase);
    let members = |name: &Option<String>| -> Vec<usize> {
        let counts = |flow: &FlowFacts| {
            name.as_deref().map_or(flow.is_bulk, |name| flow.group == name)
                && flow.phases.start < phases.end
                && flow.phases.end > phases.start
        };
        (0..facts.flows.len()).filter(|&i| counts(&facts.flows[i])).collect()
    };
    let of = members(&metric.of);
    let over = if metric.over.is_some() { members(&metric.over) } else { Vec::new() };
    if of.is_empty() || metric.over.is_some() && over.is_empty() {
        return None;
    }
    let gaps_ms = metric.gap_from_ms.unwrap_or(0)..metric.gap_to_ms.unwrap_or(u32::MAX);
    let most_bytes = metric.most_bytes.unwrap_or(u64::MAX);
    let view = View { data, facts, of, over, gaps_ms, most_bytes, phases };
    (find(&metric.measure)?.compute)(&view).filter(|value| value.is_finite())
}

fn find(name: &str) -> Option<&'static Measure> {
    MEASURES.iter().find(|measure| measure.name == name)
}

/// The share of all items for which `holds` is true; none without items.
fn share<T>(all: impl Iterator<Item = T>, holds: impl Fn(&T) -> bool) -> Option<f64> {
    let (held, all) = all.fold((0, 0), |(held, all), one| (held + i32::from(holds(&one)), all + 1));
    (all > 0).then(|| f64::from(held) / f64::from(all))
}

#[cfg(test)]
mod tests;

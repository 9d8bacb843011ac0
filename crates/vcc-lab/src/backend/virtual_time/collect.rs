//! Collects the reports of guests and ports after a run.

use super::overlay;
use crate::base::error::{Error, Result};
use crate::scenario::{Scenario, address};
use std::collections::{BTreeMap, BTreeSet};
use vcc_domain::{Port, TracedAck};
use vcc_engine::FlowKey;
use vcc_engine::FlowState;
use vcc_fabric::{HostId, RttSample, Window};
use vcc_results::result::{
    Buffered, Delayed, FlowResult, Observation, Pings, SenderState, Tracking,
};
use vcc_traffic::report::{PREFIX, PingReport, Report};
use vcc_traffic::{Sample, TcpCounters};
use vcc_uml::{World, last_lines};

/// A connection with fewer waits may be too short to show what it waits for.
const WAITS_MIN: u16 = 20;

/// The guests' reports, merged.
pub(super) struct Collected {
    pub flows: Vec<FlowResult>,
    pub pings: Vec<Pings>,
    /// By host.
    pub tcp: BTreeMap<HostId, TcpCounters>,
}

/// Merges the reports of both ends of each flow.
pub(super) fn reports(flows: usize, window: Window, consoles: &[String]) -> Result<Collected> {
    let (mut senders, mut receivers) = (vec![None; flows], vec![None; flows]);
    let (mut pings, mut tcp) = (Vec::new(), BTreeMap::new());
    for (host, console) in consoles.iter().enumerate() {
        for report in of_host(host, console)? {
            match report {
                Report::Sender(half) => put(&mut senders, host, half.flow, half)?,
                Report::Receiver(half) => put(&mut receivers, host, half.flow, half)?,
                Report::Pings(report) => pings.push(since_start(&report, window)),
                Report::Tcp(counters) => drop(tcp.insert(host, counters)),
                Report::Error { problem } => {
                    return Err(Error::VirtualGuests(format!("host {}: {problem}", host + 1)));
                }
                Report::Whole { .. } => {}
            }
        }
    }
    let whole = senders.into_iter().zip(receivers).enumerate().map(|(flow, ends)| match ends {
        (Some(sender), Some(receiver)) => Ok(FlowResult::from_halves(sender, receiver)),
        _ => Err(Error::VirtualGuests(format!("no guest reported an end of flow {flow}"))),
    });
    Ok(Collected { flows: whole.collect::<Result<_>>()?, pings, tcp })
}

/// Pings have the numbers of their guests.
fn since_start(report: &PingReport, window: Window) -> Pings {
    let samples = report.answers.iter().map(|answer| RttSample {
        at_us: answer.sent_at_ns.saturating_sub(window.start_ns) / 1000,
        rtt_ns: answer.rtt_ns,
    });
    Pings { guest: report.number, sent: report.sent, samples: samples.collect() }
}

/// Stores a host's report of one end of a flow.
fn put<T>(ends: &mut [Option<T>], host: usize, flow: usize, half: T) -> Result<()> {
    let flows = ends.len();
    let none = || format!("host {} reported flow {flow} of {flows}", host + 1);
    *ends.get_mut(flow).ok_or_else(|| Error::VirtualGuests(none()))? = Some(half);
    Ok(())
}

/// A guest's report, if it is complete.
fn of_host(host: usize, console: &str) -> Result<Vec<Report>> {
    let failed = |why: String| {
        let last = last_lines(console.lines().filter(|line| !line.starts_with(PREFIX)));
        Error::VirtualGuests(format!("host {}: {why}; its console ends with:\n{last}", host + 1))
    };
    let reports = console.lines().filter_map(Report::from_line);
    let reports: Vec<Report> = reports
        .collect::<std::result::Result<_, _>>()
        .map_err(|error| failed(format!("its report cannot be parsed: {error}")))?;
    match reports.last() {
        Some(Report::Whole { lines }) if *lines + 1 == reports.len() => Ok(reports),
        Some(Report::Error { .. }) => Ok(reports),
        _ => Err(failed("it ended without a complete report".into())),
    }
}

/// The ports' view of their guests' flows, one entry per guest with vcc.
pub(super) fn observations(
    scenario: &Scenario,
    world: &World,
    window: Window,
    results: &[FlowResult],
) -> Vec<Observation> {
    let guests = 0..scenario.guests.len();
    let flows = guests.filter_map(|guest| {
        let port = world.port(guest)?;
        let (key, flow) = port.flows().max_by_key(|(_, flow)| flow.last_seen_ms)?;
        // A guest that only receives has no samples of its own.
        let samples = scenario.first_flow_of(guest).map_or(&[][..], |flow| &results[flow].samples);
        Some(Observation {
            guest,
            marks: flow.marks,
            reductions: flow.reductions,
            guest_cwrs: flow.guest_cwrs,
            retransmissions: flow.retransmissions,
            drops: flow.drops.into(),
            cwnd_errors: cwnd_errors(port, key, window),
            tracking: tracking(port, key, window, samples),
            overlay: overlay::guess(&scenario.guests[guest], acks(port, key)),
            delays: delays(port),
            buffered: buffered(scenario, port),
        })
    });
    flows.collect()
}

/// What the connections waited for, without those that were too short to show it.
fn delays(port: &Port) -> Vec<Delayed> {
    let long = port.flows().filter(|(_, flow)| flow.waits > WAITS_MIN);
    let delayed = |flow: &FlowState| {
        Some(Delayed {
            by: flow.delayed_by()?.name().into(),
            guest_us: flow.guest_delay_us(),
            fabric_us: flow.fabric_delay_us(),
        })
    };
    long.filter_map(|(_, flow)| delayed(flow)).collect()
}

/// What each peer's connections have had of the port's buffer.
fn buffered(scenario: &Scenario, port: &Port) -> Vec<Buffered> {
    let peers = scenario.flows.iter().map(|flow| flow.receiver);
    let of_peer = |peer: HostId| {
        let mut sum = Buffered { peer, ..Buffered::default() };
        let is_peers = |key: &FlowKey| key.peer().ip() == address(scenario.family, peer);
        for (_, occupancy) in port.occupancies().filter(|(key, _)| is_peers(key)) {
            sum.byte_s += occupancy.byte_ns as f64 / 1e9;
            sum.held_s += occupancy.held_ns as f64 / 1e9;
            sum.above_share_s += occupancy.above_share_ns as f64 / 1e9;
        }
        sum
    };
    let all = peers.collect::<BTreeSet<_>>().into_iter().map(of_peer);
    all.filter(|peer| peer.held_s > 0.0).collect()
}

fn acks<'a>(port: &'a Port, key: &'a FlowKey) -> impl Iterator<Item = &'a TracedAck> {
    port.traced().iter().filter(move |ack| ack.key == *key)
}

/// |cwnd - flight| / flight before each interrupt: until then the guest has sent what it may.
/// Between the acknowledgements of one it sends nothing.
fn cwnd_errors(port: &Port, key: &FlowKey, window: Window) -> Vec<f64> {
    let mut last_ns = None;
    let first = acks(port, key).filter(|ack| last_ns.replace(ack.at_ns) != Some(ack.at_ns));
    let measured = first.filter(|ack| window.contains(ack.at_ns) && ack.before.flight_bytes > 0);
    let error = |ack: &TracedAck| {
        let flight_bytes = f64::from(ack.before.flight_bytes);
        (ack.before.cwnd_bytes() as f64 - flight_bytes).abs() / flight_bytes
    };
    measured.map(error).collect()
}

/// The port's window after each acknowledgement, next to the guest's own samples.
fn tracking(port: &Port, key: &FlowKey, window: Window, samples: &[Sample]) -> Tracking {
    // The first acknowledges the SYN.
    let Some(first) = acks(port, key).next() else { return Tracking::default() };
    let mut tracking = Tracking::since(first.after.snd_una.wrapping_sub(1));
    for ack in acks(port, key).filter(|ack| window.contains(ack.at_ns)) {
        let at_us = (ack.at_ns - window.start_ns) / 1000;
        tracking.note_ours(at_us, ack.after.snd_una, ack.after.cwnd_segs);
    }
    for sample in samples {
        let state = SenderState { acked_bytes: sample.acked_bytes, cwnd_segs: sample.cwnd_segs };
        tracking.note_native(sample.at_us, state);
    }
    tracking
}

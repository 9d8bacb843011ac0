//! What the guests and the ports have to say when a run is over.

use crate::error::{Error, Result};
use crate::run::Scenario;
use crate::traffic::FlowResult;
use crate::translate::Observation;
use vcc_traffic::report::{PREFIX, Report};
use vcc_uml::{World, last_lines};

/// The flows' results, put together from what both ends have printed.
pub(super) fn flows(flows: usize, consoles: &[String]) -> Result<Vec<FlowResult>> {
    let (mut senders, mut receivers) = (vec![None; flows], vec![None; flows]);
    for (host, console) in consoles.iter().enumerate() {
        for report in reports(host, console)? {
            match report {
                Report::Sender(half) => put(&mut senders, host, half.flow, half)?,
                Report::Receiver(half) => put(&mut receivers, host, half.flow, half)?,
                Report::Error { problem } => {
                    return Err(Error::VirtualGuests(format!("host {}: {problem}", host + 1)));
                }
                Report::Pings(_) | Report::Whole { .. } => {}
            }
        }
    }
    let whole = senders.into_iter().zip(receivers).enumerate().map(|(flow, ends)| match ends {
        (Some(sender), Some(receiver)) => Ok(FlowResult::of(sender, receiver)),
        _ => Err(Error::VirtualGuests(format!("nobody reports of an end of flow {flow}"))),
    });
    whole.collect()
}

/// What a host reports of an end of this flow.
fn put<T>(ends: &mut [Option<T>], host: usize, flow: usize, half: T) -> Result<()> {
    let flows = ends.len();
    let none = || format!("host {} reports of flow {flow} of {flows}", host + 1);
    *ends.get_mut(flow).ok_or_else(|| Error::VirtualGuests(none()))? = Some(half);
    Ok(())
}

/// All that a guest reports, if it is whole.
fn reports(host: usize, console: &str) -> Result<Vec<Report>> {
    let failed = |why: String| {
        let last = last_lines(console.lines().filter(|line| !line.starts_with(PREFIX)));
        Error::VirtualGuests(format!("host {}: {why}; its console ends with:\n{last}", host + 1))
    };
    let reports = console.lines().filter_map(Report::from_line);
    let reports: Vec<Report> = reports
        .collect::<std::result::Result<_, _>>()
        .map_err(|error| failed(format!("it reports what cannot be read: {error}")))?;
    match reports.last() {
        Some(Report::Whole { lines }) if *lines + 1 == reports.len() => Ok(reports),
        Some(Report::Error { .. }) => Ok(reports),
        _ => Err(failed("it ended without a whole report".into())),
    }
}

/// What the ports of the guests know of their flows, one entry for each guest that has vcc.
pub(super) fn observations(scenario: &Scenario, world: &World) -> Vec<Observation> {
    let guests = 0..scenario.guests.len();
    let flows = guests.filter_map(|guest| {
        let flows = world.port(guest)?.flows();
        let (_, flow) = flows.max_by_key(|(_, flow)| flow.last_seen_ms)?;
        Some(Observation {
            guest,
            marks: flow.marks,
            reductions: flow.reductions,
            guest_cwrs: flow.guest_cwrs,
            retransmissions: flow.retransmissions,
            drops: flow.drops,
            ..Observation::default()
        })
    });
    flows.collect()
}

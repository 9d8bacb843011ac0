//! Whether a run may count. One that may not is reported with its reasons and never averaged in.

use super::{Flow, RunData, Scenario};
use crate::fabric::Ect;
use crate::traffic::FlowResult;
use crate::translate::Translation;

/// Later than this, deliveries distort acknowledgement clocks and with them the windows.
const LATENESS_P99_US: u64 = 500;

pub(super) struct Judgement {
    /// Why the run does not count.
    pub reasons: Vec<String>,
    /// What may have disturbed it all the same.
    pub warnings: Vec<String>,
}

pub(super) fn judge(scenario: &Scenario, data: &RunData) -> Judgement {
    let mut reasons = Vec::new();
    let ceiling_bps = scenario.goodput_ceiling_bps();
    let topology = scenario.topology();
    let through = scenario.flows.iter().zip(&data.flows);
    let through = through.filter(|(it, _)| topology.crosses_bottleneck(it.sender, it.receiver));
    let bytes: u64 = through.map(|(_, flow)| flow.received_bytes()).sum();
    let share = bytes as f64 * 8.0 / scenario.measured_s() / ceiling_bps;
    if share < scenario.goodput_floor {
        reasons.push(format!(
            "goodput is {:.1} % of what the bottleneck can carry, below {:.1} %",
            share * 100.0,
            scenario.goodput_floor * 100.0
        ));
    }
    if data.emulator.failures > 0 {
        let failures = data.emulator.failures;
        reasons.push(format!("{failures} frames were lost between emulator and TAP"));
    }
    if data.lost_frames > 0 {
        let lost = data.lost_frames;
        reasons.push(match data.frame_log {
            // Virtual time's devices lose nothing else.
            Some(_) => {
                format!("{lost} frames found no place in the ring of a guest that did not run")
            }
            None => format!("{lost} frames were lost by devices, outside the emulated queues"),
        });
    }
    let p99_us = data.emulator.lateness.percentile_us(0.99);
    if p99_us > LATENESS_P99_US {
        reasons.push(format!(
            "one delivery in a hundred was {p99_us} us late, above {LATENESS_P99_US} us: the \
             machine is too busy"
        ));
    }
    reasons.extend(flow_reasons(scenario, data));
    let warnings = data
        .emulator
        .not_realtime
        .iter()
        .map(|why| format!("no real-time priority ({why}): expect more spread between runs"));
    Judgement { reasons, warnings: warnings.collect() }
}

fn flow_reasons(scenario: &Scenario, data: &RunData) -> Vec<String> {
    let mut reasons = Vec::new();
    for (number, (ends, flow)) in scenario.flows.iter().zip(&data.flows).enumerate() {
        let number = number + 1;
        let guest = &scenario.guests[ends.sender];
        let fabric =
            data.emulator.ect.get(ends.sender).filter(|ect| ect.capable + ect.not_capable > 0);
        let judged = [
            ("the guest runs", guest.ecn, Some(flow.guest_has_ecn)),
            (
                "its peer runs",
                guest.fabric_ecn() && scenario.ecn_of(ends.receiver),
                peer_ecn(scenario, ends, flow),
            ),
            ("its data crosses the fabric", guest.fabric_ecn(), fabric.map(Ect::is_capable)),
        ];
        for (what, expected, found) in judged {
            if let Some(is) = found.filter(|&is| is != expected) {
                let (is, expected) = (with(is), with(expected));
                reasons.push(format!("flow {number}: {what} {is} ECN, not {expected}"));
            }
        }
        if !flow.payload_ok {
            reasons.push(format!("flow {number}: payload arrived changed"));
        }
    }
    reasons
}

/// What the peer's own TCP believes; behind vcc that is vcc's affair, and the fabric's view counts.
fn peer_ecn(scenario: &Scenario, ends: &Flow, flow: &FlowResult) -> Option<bool> {
    let enforced = scenario.translation_of(ends.receiver).is_some_and(Translation::enforces);
    (!enforced).then_some(flow.peer_has_ecn)
}

fn with(ecn: bool) -> &'static str {
    if ecn { "with" } else { "without" }
}

#[cfg(test)]
mod tests;

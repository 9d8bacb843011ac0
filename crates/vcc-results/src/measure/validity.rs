//! Whether a run is valid. One that is not is reported with its reasons and left out of all
//! figures.

use crate::result::{FlowFacts, FlowResult, RunData, RunFacts};
use vcc_fabric::Ect;

/// Later than this, deliveries distort acknowledgement clocks and with them the windows.
const LATENESS_P99_US: u64 = 500;

pub struct Validity {
    /// Why the run is not valid.
    pub reasons: Vec<String>,
    /// Conditions that may have disturbed a valid run.
    pub warnings: Vec<String>,
}

pub fn validate(facts: &RunFacts, data: &RunData) -> Validity {
    let mut reasons = Vec::new();
    let through = facts.flows.iter().zip(&data.flows).filter(|(flow, _)| flow.crosses_bottleneck);
    let bytes: u64 = through.map(|(_, flow)| flow.received_bytes()).sum();
    let share = bytes as f64 * 8.0 / facts.measured_s / facts.goodput_ceiling_bps;
    if share < facts.goodput_floor {
        reasons.push(format!(
            "goodput is {:.1} % of what the bottleneck can carry, below {:.1} %",
            share * 100.0,
            facts.goodput_floor * 100.0
        ));
    }
    if data.emulator.failures > 0 {
        let failures = data.emulator.failures;
        reasons.push(format!("{failures} frames were lost between emulator and TAP"));
    }
    // Virtual time's devices lose nothing else.
    let overflows = facts.ring_overflows && data.frame_log.is_some();
    if data.lost_frames > 0 && !overflows {
        let lost = data.lost_frames;
        reasons.push(match data.frame_log {
            Some(_) => {
                format!("{lost} frames found no room in the ring of a guest that did not run")
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
    reasons.extend(flow_reasons(facts, data));
    let warnings = data
        .emulator
        .not_realtime
        .iter()
        .map(|why| format!("no real-time priority ({why}): expect more spread between runs"));
    Validity { reasons, warnings: warnings.collect() }
}

fn flow_reasons(facts: &RunFacts, data: &RunData) -> Vec<String> {
    let mut reasons = Vec::new();
    for (number, (flow, result)) in facts.flows.iter().zip(&data.flows).enumerate() {
        let number = number + 1;
        let seen = data.emulator.ect.get(flow.sender);
        reasons.extend(ecn_reasons(number, flow, result, seen));
        if !result.payload_ok {
            reasons.push(format!("flow {number}: payload arrived changed"));
        }
    }
    reasons
}

fn ecn_reasons(
    number: usize,
    flow: &FlowFacts,
    result: &FlowResult,
    seen: Option<&Ect>,
) -> Vec<String> {
    let fabric = seen.filter(|ect| ect.capable + ect.not_capable > 0).map(Ect::is_capable);
    let judged = [
        ("the guest runs", Some(flow.ecn.guest), Some(result.guest_has_ecn)),
        ("its peer runs", flow.ecn.peer, Some(result.peer_has_ecn)),
        ("its data crosses the fabric", flow.ecn.fabric, fabric),
    ];
    let wrong = judged.into_iter().filter_map(|(what, expected, found)| {
        let (expected, found) =
            expected.zip(found).filter(|(expected, found)| expected != found)?;
        Some(format!("flow {number}: {what} {} ECN, not {}", with(found), with(expected)))
    });
    wrong.collect()
}

fn with(ecn: bool) -> &'static str {
    if ecn { "with" } else { "without" }
}

#[cfg(test)]
mod tests;

//! Time between acknowledgements: a retransmission timeout shows as a gap of its length
//! (vCC, figure 8).

use super::{Measure, Needs, Takes, View};

/// Gaps within the range, for each flow and minute.
pub(super) const COUNT: Measure = Measure::plain(
    "ack_gaps",
    "times between acknowledgements from `gap_from_ms` to `gap_to_ms`, per flow and minute",
    count,
)
.needing(Needs::Gaps)
.taking(Takes::AckGaps);

fn count(view: &View) -> Option<f64> {
    let range_us = view.gaps_ms.start * 1000..view.gaps_ms.end.saturating_mul(1000);
    let gaps: usize = view
        .of
        .iter()
        .map(|&flow| view.data.emulator.ack_gaps_us.get(view.sender(flow)))
        .collect::<Option<Vec<_>>>()?
        .into_iter()
        .map(|gaps| gaps.iter().filter(|gap| range_us.contains(gap)).count())
        .sum();
    let flow_minutes = view.of.len() as f64 * view.facts.measured_s / 60.0;
    Some(gaps as f64 / flow_minutes)
}

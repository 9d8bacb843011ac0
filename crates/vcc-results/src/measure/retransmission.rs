//! Retransmissions.

use super::{Measure, View};

pub(super) const SEGMENTS: Measure =
    Measure::plain("retransmitted_segs", "retransmitted segments", segments);

/// Retransmitted payload as a share of what the bottleneck can carry (vCC, 3.2).
pub(super) const SHARE: Measure = Measure::plain(
    "retransmitted_share",
    "retransmitted payload as a share of the bottleneck's capacity",
    share,
);

fn segments(view: &View) -> Option<f64> {
    Some(view.flows(&view.of).map(|flow| flow.retransmitted_segs as f64).sum())
}

fn share(view: &View) -> Option<f64> {
    let bytes: f64 = view.flows(&view.of).map(|flow| flow.retransmitted_bytes as f64).sum();
    let rate_bps = bytes * 8.0 / view.facts.measured_s;
    Some(rate_bps / view.facts.goodput_ceiling_bps)
}

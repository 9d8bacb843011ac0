//! Payload that reached the receiving application, by flow.

use super::{Measure, Needs, View};
use crate::result::statistics::mean;

/// Mean goodput of one group over that of another.
pub(super) const RATIO: Measure =
    Measure::plain("goodput_ratio", "mean goodput of `of` over that of `over`", ratio)
        .needing(Needs::Over)
        .by_phase();

/// Jain's fairness index of the goodputs: 1 when all are equal, 1/n when one has all.
pub(super) const JAIN: Measure =
    Measure::plain("jain", "Jain's index of the goodputs", jain).by_phase();

pub(super) const TOTAL_MBPS: Measure =
    Measure::plain("goodput_mbps", "sum of the goodputs", total_mbps).by_phase();

/// Mean goodput of a flow.
pub(super) const MEAN_MBPS: Measure =
    Measure::plain("goodput_mean_mbps", "mean of the goodputs", mean_mbps).by_phase();

/// Goodput as a share of what full frames can carry through the bottleneck.
pub(super) const SHARE: Measure = Measure::plain(
    "goodput_share",
    "sum of the goodputs as a share of what full frames can carry through the bottleneck",
    share,
)
.by_phase();

fn bytes(view: &View, flows: &[usize]) -> Vec<f64> {
    view.flows(flows).map(|flow| flow.received_bytes_in(&view.phases) as f64).collect()
}

fn ratio(view: &View) -> Option<f64> {
    let of = mean(bytes(view, &view.of).into_iter())?;
    Some(of / mean(bytes(view, &view.over).into_iter())?)
}

fn jain(view: &View) -> Option<f64> {
    Some(jain_index(&bytes(view, &view.of)))
}

fn total_mbps(view: &View) -> Option<f64> {
    let bytes: f64 = bytes(view, &view.of).iter().sum();
    Some(bytes * 8.0 / view.seconds() / 1e6)
}

fn mean_mbps(view: &View) -> Option<f64> {
    Some(total_mbps(view)? / view.of.len() as f64)
}

fn share(view: &View) -> Option<f64> {
    Some(total_mbps(view)? * 1e6 / view.facts.goodput_ceiling_bps)
}

fn jain_index(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    sum * sum / (shares.len() as f64 * squares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_of_known_shares() {
        assert_eq!(jain_index(&[2.0, 2.0, 2.0]), 1.0);
        assert_eq!(jain_index(&[1.0, 0.0, 0.0, 0.0]), 0.25);
        // One at 0.142 of nine equal others, which is vCC's figure 11(a).
        let shares: Vec<f64> = [1.0; 9].into_iter().chain([0.142]).collect();
        assert!((jain_index(&shares) - 0.921).abs() < 0.02);
    }
}

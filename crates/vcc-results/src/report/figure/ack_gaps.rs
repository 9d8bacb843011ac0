//! Times between acknowledgements, as a histogram (vCC, figure 8).

use super::{BarPanel, CaseReport, Figure, Placed, Series, bar};
use std::collections::BTreeMap;

/// Widths of the bins.
const GAP_BIN_MS: u32 = 100;
const GAP_BINS: usize = 10;

/// Label of the vertical axis.
pub(super) const GAPS: &str = "gaps between acknowledgements";

/// How many gaps fell into each bin but the first, which holds nearly all, for each group's
/// median flow.
pub(super) fn histogram(
    cases: &[CaseReport],
    placed: &BTreeMap<String, Placed>,
    series: &BTreeMap<String, Series>,
) -> Figure {
    let mut panels = Vec::new();
    for report in cases {
        let both = placed.get(&report.name).zip(series.get(&report.name));
        let Some((placed, series)) = both else { continue };
        let mut bars = Vec::new();
        for bin in 1..GAP_BINS as u32 {
            let range_us = bin * GAP_BIN_MS * 1000..(bin + 1) * GAP_BIN_MS * 1000;
            for (group, senders) in &placed.senders {
                let counts: Vec<f64> = senders
                    .iter()
                    .filter_map(|&sender| series.ack_gaps_us.get(sender))
                    .map(|gaps| gaps.iter().filter(|gap| range_us.contains(gap)).count() as f64)
                    .collect();
                if !counts.is_empty() {
                    bars.push(bar((bin * GAP_BIN_MS).to_string(), group.clone(), &counts));
                }
            }
        }
        panels.push(BarPanel {
            title: format!("{}: gaps by length in ms (shortest omitted)", report.name),
            bars,
        });
    }
    Figure::Bars { y: GAPS.into(), panels }
}

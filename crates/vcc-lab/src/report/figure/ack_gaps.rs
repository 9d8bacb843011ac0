//! Times between acknowledgements, as a histogram (vCC, figure 8).

use super::{BarPanel, CaseReport, Figure, Series, bar};
use crate::experiment::Experiment;
use std::collections::BTreeMap;

/// Widths of the bins.
const GAP_BIN_MS: u32 = 100;
const GAP_BINS: usize = 10;

/// How many gaps fell into each bin but the first, which holds nearly all, for each group's
/// median flow.
pub(super) fn histogram(
    experiment: &Experiment,
    cases: &[CaseReport],
    series: &BTreeMap<String, Series>,
) -> Figure {
    let mut panels = Vec::new();
    for report in cases {
        let case = experiment.cases().iter().find(|case| case.name == report.name);
        let (Some(case), Some(series)) = (case, series.get(&report.name)) else { continue };
        let mut bars = Vec::new();
        for bin in 1..GAP_BINS as u32 {
            let range_us = bin * GAP_BIN_MS * 1000..(bin + 1) * GAP_BIN_MS * 1000;
            for (number, group) in experiment.groups().into_iter().enumerate() {
                let flows = case.flows.iter().filter(|flow| flow.group == number);
                let counts: Vec<f64> = flows
                    .filter_map(|flow| series.ack_gaps_us.get(flow.sender))
                    .map(|gaps| gaps.iter().filter(|gap| range_us.contains(gap)).count() as f64)
                    .collect();
                if !counts.is_empty() {
                    bars.push(bar((bin * GAP_BIN_MS).to_string(), group.into(), &counts));
                }
            }
        }
        panels.push(BarPanel {
            title: format!("{}: from so many ms on (0 is left out)", report.name),
            bars,
        });
    }
    Figure::Bars { y: "gaps between acknowledgements".into(), panels }
}

//! Throughputs of single transfers as a cumulative distribution (vFlood, figure 6).

use super::rtt::points;
use super::{CaseReport, Figure, Line, LinePanel, Scale, Series};
use std::collections::BTreeMap;

pub(super) fn distribution(cases: &[CaseReport], series: &BTreeMap<String, Series>) -> Figure {
    let lines = cases.iter().filter_map(|case| {
        let points = points(&series.get(&case.name)?.transfers_mbps);
        Some(Line { name: case.name.clone(), points })
    });
    let panel = LinePanel { title: String::new(), lines: lines.collect() };
    Figure::Lines {
        x: "throughput of a transfer (Mbit/s)".into(),
        x_scale: Scale::Logarithmic,
        y: "share of transfers".into(),
        panels: vec![panel],
    }
}

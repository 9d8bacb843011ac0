//! The experiment's figure as data.

mod ack_gaps;
mod over_time;
mod plot;
mod recorded;
mod rtt;
mod transfers;

pub use plot::{Placed, Plot, PlotKind};
pub(super) use recorded::recorded;

use super::{CaseReport, Series};
use crate::result::statistics::median;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use vcc_plot::{Line, LinePanel, Scale};

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Figure {
    Bars { y: String, panels: Vec<BarPanel> },
    Lines { x: String, x_scale: Scale, y: String, panels: Vec<LinePanel> },
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BarPanel {
    pub title: String,
    pub bars: Vec<Bar>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Bar {
    pub label: String,
    /// Bars of one series have one colour.
    pub series: String,
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Figure {
    /// `placed` and `series` have an entry for each case, by its name: where the case stands, and
    /// what one valid run of it recorded.
    pub fn build(
        plot: &Plot,
        cases: &[CaseReport],
        placed: &BTreeMap<String, Placed>,
        series: &BTreeMap<String, Series>,
    ) -> Self {
        let metric = plot.metric.clone().unwrap_or_default();
        match plot.kind {
            PlotKind::Goodput => goodput(cases),
            PlotKind::Metric => Self::by_case(cases, &metric),
            PlotKind::Curve => curve(cases, placed, metric, plot.x.clone().unwrap_or_default()),
            PlotKind::GoodputOverTime => over_time::goodput(cases, series),
            PlotKind::Windows => over_time::windows(cases, series),
            PlotKind::BothWindows => over_time::both_windows(cases, series),
            PlotKind::Rto => over_time::rto(cases, series),
            PlotKind::Tracking => over_time::tracking(cases, series),
            PlotKind::Queue => over_time::queue(cases, series),
            PlotKind::Rtt => rtt::distribution(cases, series),
            PlotKind::Transfers => transfers::distribution(cases, series),
            PlotKind::AckGaps => ack_gaps::histogram(cases, placed, series),
        }
    }

    /// Label of its vertical axis.
    pub(super) fn y(&self) -> &str {
        match self {
            Self::Bars { y, .. } | Self::Lines { y, .. } => y,
        }
    }

    /// What its shapes are. `is_metric`: its values are those of a metric of each case, of so many runs.
    pub(super) fn explanation(&self, is_metric: bool, runs: u32) -> String {
        let median =
            if runs == 1 { "the only run".into() } else { format!("median of {runs} runs") };
        match self {
            Self::Bars { y, .. } if y == ack_gaps::GAPS => {
                "bar: median of the group's flows in one run; line: least to greatest".into()
            }
            Self::Bars { .. } if runs == 1 => format!("bar: {median}"),
            Self::Bars { .. } => format!("bar: {median}; line: least to greatest"),
            Self::Lines { .. } if is_metric => format!("point: {median}"),
            Self::Lines { .. } => "of one run of each case".into(),
        }
    }

    pub(super) fn panel_count(&self) -> usize {
        match self {
            Self::Bars { panels, .. } => panels.len(),
            Self::Lines { panels, .. } => panels.len(),
        }
    }

    /// A bar for each case that has the metric.
    pub fn by_case(cases: &[CaseReport], metric: &str) -> Self {
        let bars = cases.iter().filter_map(|case| {
            let report = case.metrics.get(metric)?;
            Some(Bar {
                label: case.name.clone(),
                series: case.name.clone(),
                median: report.median,
                min: report.min,
                max: report.max,
            })
        });
        let panels = vec![BarPanel { title: String::new(), bars: bars.collect() }];
        Self::Bars { y: metric.into(), panels }
    }
}

fn goodput(cases: &[CaseReport]) -> Figure {
    let panels = cases.iter().map(|case| {
        let runs: Vec<_> = case.valid_runs().collect();
        let flows = runs.first().map_or(0, |run| run.flows.len());
        let bars = (0..flows).map(|flow| {
            let mbps: Vec<f64> = runs.iter().map(|run| run.flows[flow].goodput_bps / 1e6).collect();
            bar((flow + 1).to_string(), runs[0].flows[flow].group.clone(), &mbps)
        });
        BarPanel { title: case.name.clone(), bars: bars.collect() }
    });
    Figure::Bars { y: "goodput (Mbit/s)".into(), panels: panels.collect() }
}

fn curve(
    cases: &[CaseReport],
    placed: &BTreeMap<String, Placed>,
    metric: String,
    x: String,
) -> Figure {
    let mut panels: Vec<LinePanel> = Vec::new();
    for report in cases {
        let place = placed.get(&report.name);
        let (Some(place), Some(value)) = (place, report.metrics.get(&metric)) else { continue };
        let panel = found_or_new(
            &mut panels,
            |panel| panel.title == place.panel,
            || LinePanel { title: place.panel.clone(), lines: Vec::new() },
        );
        let line = found_or_new(
            &mut panel.lines,
            |line| line.name == place.series,
            || Line { name: place.series.clone(), points: Vec::new() },
        );
        line.points.push((place.x, value.median));
    }
    for line in panels.iter_mut().flat_map(|panel| &mut panel.lines) {
        line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    Figure::Lines { x, x_scale: Scale::Linear, y: metric, panels }
}

fn found_or_new<T>(
    all: &mut Vec<T>,
    is_it: impl FnMut(&T) -> bool,
    new: impl FnOnce() -> T,
) -> &mut T {
    let index = all.iter().position(is_it).unwrap_or_else(|| {
        all.push(new());
        all.len() - 1
    });
    &mut all[index]
}

fn bar(label: String, series: String, values: &[f64]) -> Bar {
    Bar {
        label,
        series,
        median: median(values).unwrap_or_default(),
        min: values.iter().copied().fold(f64::INFINITY, f64::min),
        max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    }
}

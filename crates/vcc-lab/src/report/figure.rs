//! What the experiment's figure shows, before it is drawn.

use super::{CaseReport, Series};
use crate::experiment::{Experiment, PlotKind};
use crate::measure::median;
use serde::Serialize;
use std::collections::BTreeMap;

/// Widths of the bins of acknowledgement gaps (vCC, figure 8).
const GAP_BIN_MS: u32 = 100;
const GAP_BINS: usize = 10;

#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Figure {
    Bars { y: String, panels: Vec<BarPanel> },
    Lines { x: String, y: String, panels: Vec<LinePanel> },
}

#[derive(Debug, Clone, Serialize)]
pub struct BarPanel {
    pub title: String,
    pub bars: Vec<Bar>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Bar {
    pub label: String,
    /// Bars of one series have one colour.
    pub series: String,
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

#[derive(Debug, Clone, Serialize)]
pub struct LinePanel {
    pub title: String,
    pub lines: Vec<Line>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Line {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

impl Figure {
    /// `series` holds what one valid run of each case recorded, by the case's name.
    pub(crate) fn build(
        experiment: &Experiment,
        cases: &[CaseReport],
        series: &BTreeMap<String, Series>,
    ) -> Self {
        let plot = experiment.plot();
        let metric = plot.metric.unwrap_or_default();
        match plot.kind {
            PlotKind::Goodput => goodput(cases),
            PlotKind::Metric => by_case(cases, metric),
            PlotKind::Curve => curve(experiment, cases, metric, plot.x.unwrap_or_default()),
            PlotKind::Windows => over_time("send window (segments)", cases, series, |series| {
                let flows = series.windows_segs.iter().enumerate();
                flows.map(|(i, points)| (format!("flow {}", i + 1), points.clone())).collect()
            }),
            PlotKind::Queue => over_time("queue (bytes)", cases, series, |series| {
                vec![("bottleneck".into(), series.queue_bytes.clone())]
            }),
            PlotKind::AckGaps => ack_gaps(experiment, cases, series),
        }
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

fn by_case(cases: &[CaseReport], metric: String) -> Figure {
    let bars = cases.iter().filter_map(|case| {
        let report = case.metrics.get(&metric)?;
        Some(Bar {
            label: case.name.clone(),
            series: case.name.clone(),
            median: report.median,
            min: report.min,
            max: report.max,
        })
    });
    let panels = vec![BarPanel { title: String::new(), bars: bars.collect() }];
    Figure::Bars { y: metric, panels }
}

fn curve(experiment: &Experiment, cases: &[CaseReport], metric: String, x: String) -> Figure {
    let mut lines: Vec<Line> = Vec::new();
    for report in cases {
        let place = experiment.cases().iter().find(|case| case.name == report.name);
        let (Some(place), Some(value)) = (place, report.metrics.get(&metric)) else { continue };
        let point = (place.x, value.median);
        match lines.iter_mut().find(|line| line.name == place.series) {
            Some(line) => line.points.push(point),
            None => lines.push(Line { name: place.series.clone(), points: vec![point] }),
        }
    }
    for line in &mut lines {
        line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    Figure::Lines { x, y: metric, panels: vec![LinePanel { title: String::new(), lines }] }
}

type NamedPoints = Vec<(String, Vec<(f64, f64)>)>;

fn over_time(
    y: &str,
    cases: &[CaseReport],
    series: &BTreeMap<String, Series>,
    lines: impl Fn(&Series) -> NamedPoints,
) -> Figure {
    let panels = cases.iter().filter_map(|case| {
        let lines = lines(series.get(&case.name)?).into_iter();
        let lines = lines.map(|(name, points)| Line { name, points }).collect();
        Some(LinePanel { title: case.name.clone(), lines })
    });
    Figure::Lines { x: "time (s)".into(), y: y.into(), panels: panels.collect() }
}

/// How many gaps fell into each bin but the first, which holds nearly all, for each group's
/// median flow.
fn ack_gaps(
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
                let flows = case.guests.iter().zip(&series.ack_gaps_us);
                let counts: Vec<f64> = flows
                    .filter(|(guest, _)| guest.group == number)
                    .map(|(_, gaps)| {
                        gaps.iter().filter(|gap| range_us.contains(gap)).count() as f64
                    })
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

fn bar(label: String, series: String, values: &[f64]) -> Bar {
    Bar {
        label,
        series,
        median: median(values).unwrap_or_default(),
        min: values.iter().copied().fold(f64::INFINITY, f64::min),
        max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    }
}

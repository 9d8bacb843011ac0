//! Recordings of one run of each case, over time.

use super::{CaseReport, Figure, Line, LinePanel, Scale, Series};
use crate::result::{Pair, averaged};
use std::collections::BTreeMap;

const AVERAGED_US: u64 = 100_000;

type AllSeries = BTreeMap<String, Series>;
type Points = Vec<(f64, f64)>;
type NamedPoints = Vec<(String, Points)>;

pub(super) fn goodput(cases: &[CaseReport], series: &AllSeries) -> Figure {
    over_time("goodput (Mbit/s)", cases, series, |series| by_flow(&series.goodput_mbps))
}

/// Send windows.
pub(super) fn windows(cases: &[CaseReport], series: &AllSeries) -> Figure {
    over_time("send window (segments)", cases, series, |series| by_flow(&series.windows_segs))
}

/// Plots the guest's cwnd and the send window in force, for the first flow.
pub(super) fn both_windows(cases: &[CaseReport], series: &AllSeries) -> Figure {
    over_time("window (segments)", cases, series, |series| {
        of_first([("the guest's cwnd", &series.cwnds_segs), ("in force", &series.windows_segs)])
    })
}

/// Plots the guest's smoothed RTT and its RTO, for the first flow (PVTCP, figure 9).
pub(super) fn rto(cases: &[CaseReport], series: &AllSeries) -> Figure {
    over_time("RTT and RTO (ms)", cases, series, |series| {
        of_first([("RTO", &series.rtos_ms), ("smoothed RTT", &series.srtts_ms)])
    })
}

fn of_first(lines: [(&str, &Vec<Points>); 2]) -> NamedPoints {
    let first = lines.map(|(name, flows)| Some((name.into(), flows.first()?.clone())));
    first.into_iter().flatten().collect()
}

/// Plots the guest's cwnd and vcc's for the first flow that vcc watches (AC/DC, figure 9): ACK by
/// ACK at first, then as averages over the whole run.
pub(super) fn tracking(cases: &[CaseReport], series: &AllSeries) -> Figure {
    let mut panels = Vec::new();
    for case in cases {
        let Some(Series { tracking, .. }) = series.get(&case.name) else { continue };
        let begin: Vec<Pair> =
            tracking.iter().copied().take_while(|pair| pair.at_us < AVERAGED_US).collect();
        for (what, pairs) in
            [("at first", begin), ("100 ms means", averaged(tracking, AVERAGED_US))]
        {
            let points = |segs: fn(&Pair) -> f64| {
                pairs.iter().map(|pair| (pair.at_us as f64 / 1e6, segs(pair))).collect()
            };
            let lines = vec![
                Line { name: "the guest's".into(), points: points(|pair| pair.native_segs) },
                Line { name: "vcc's".into(), points: points(|pair| pair.ours_segs) },
            ];
            panels.push(LinePanel { title: format!("{}: {what}", case.name), lines });
        }
    }
    figure("cwnd (segments)", panels)
}

pub(super) fn queue(cases: &[CaseReport], series: &AllSeries) -> Figure {
    over_time("queue (bytes)", cases, series, |series| {
        vec![("bottleneck".into(), series.queue_bytes.clone())]
    })
}

fn by_flow(flows: &[Points]) -> NamedPoints {
    let flows = flows.iter().enumerate();
    flows.map(|(i, points)| (format!("flow {}", i + 1), points.clone())).collect()
}

fn over_time(
    y: &str,
    cases: &[CaseReport],
    series: &AllSeries,
    lines: impl Fn(&Series) -> NamedPoints,
) -> Figure {
    let panels = cases.iter().filter_map(|case| {
        let lines = lines(series.get(&case.name)?).into_iter();
        let lines = lines.map(|(name, points)| Line { name, points }).collect();
        Some(LinePanel { title: case.name.clone(), lines })
    });
    figure(y, panels.collect())
}

fn figure(y: &str, panels: Vec<LinePanel>) -> Figure {
    Figure::Lines { x: "time (s)".into(), x_scale: Scale::Linear, y: y.into(), panels }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_flows_the_first_ones_rtt_and_rto_are_drawn() {
        let case = crate::report::tests::report(true, true).cases.remove(0);
        let flows = |ms: f64| vec![vec![(0.5, ms)], vec![(0.5, 9.0)]];
        let recorded = Series { srtts_ms: flows(2.0), rtos_ms: flows(203.0), ..Series::default() };
        let series = [(case.name.clone(), recorded)].into();
        let Figure::Lines { panels, .. } = rto(&[case], &series) else { panic!("lines") };
        let lines: Vec<(&str, &[(f64, f64)])> =
            panels[0].lines.iter().map(|line| (line.name.as_str(), &line.points[..])).collect();
        assert_eq!(lines, [("RTO", &[(0.5, 203.0)][..]), ("smoothed RTT", &[(0.5, 2.0)][..])]);
    }
}

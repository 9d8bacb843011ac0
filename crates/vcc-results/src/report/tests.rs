use super::*;
use crate::result::{Pair, Reach, Schedule};
use figure::{Bar, BarPanel};
use std::slice;

pub(super) fn run(valid: bool) -> RunReport {
    RunReport {
        seed: 1,
        valid,
        reasons: if valid { vec![] } else { vec!["too late".into()] },
        warnings: vec![],
        metrics: BTreeMap::from([("ratio".into(), 0.094)]),
        flows: vec![],
        links: vec![],
        lateness: LatenessSummary::default(),
        vcc: vec![],
        tcp: BTreeMap::new(),
        frame_log: None,
        series: None,
    }
}

/// A report of three runs, one of which is included.
pub(super) fn report(valid: bool, reproduced: bool) -> Report {
    let reach = Reach { low: 0.09, high: 0.1, certainty: 0.75 };
    let metric =
        MetricReport { median: 0.094, min: 0.09, max: 0.1, runs: 3, reach, paper: Some(0.142) };
    let judgement = match (valid, reproduced) {
        (false, _) => Judgement::NotJudged,
        (true, false) => Judgement::Fails,
        (true, true) => Judgement::Holds,
    };
    let verdict = Verdict {
        metric: "ratio".into(),
        judgement,
        value: Some(0.094),
        reach: Some(reach),
        min: None,
        max: Some(0.2),
        relative_to: None,
        paper_quotient: None,
        spread: None,
    };
    let case = CaseReport {
        name: "without".into(),
        valid,
        metrics: BTreeMap::from([("ratio".into(), metric)]),
        verdicts: vec![verdict],
        runs: vec![run(valid)],
    };
    let bar = |series: &str, median| Bar {
        label: "1".into(),
        series: series.into(),
        median,
        min: median,
        max: median * 1.1,
    };
    let panel = BarPanel { title: "a < b".into(), bars: vec![bar("ecn", 1.0), bar("legacy", 0.1)] };
    Report {
        format_version: FORMAT_VERSION,
        experiment: "vcc-fig11".into(),
        title: "starvation".into(),
        paper: String::new(),
        scale: None,
        stack: Stack::NewReno,
        backend: Backend::Live,
        quick: false,
        seed: 1,
        valid,
        complete: true,
        outcome: Outcome::from_cases(slice::from_ref(&case)),
        schedule: Schedule { warm_up_s: 5.0, measured_s: 30.0, runs: 3 },
        verdict_takes: Schedule { warm_up_s: 5.0, measured_s: 30.0, runs: 3 },
        in_short: Some("What was 9.4 % is 100 %.".into()),
        cases: vec![case],
        figure: Figure::Bars { y: "goodput".into(), panels: vec![panel] },
        machine: Machine { kernel: "6.18".into(), cpu: "x".into(), cpus: 2 },
        vcc_version: Some("0.1.0 (2b0d7f4)".into()),
        sources: [("engine", "0123456789ab")].into_iter().collect(),
        wall_s: Some(200.04),
        command: "vcc-lab run vcc-fig11".into(),
        finished_unix_s: 1_709_164_800,
        definitions: BTreeMap::new(),
    }
}

#[test]
fn json_has_the_fields_that_others_read() {
    let json = serde_json::to_value(report(true, true)).unwrap();
    assert_eq!(json["experiment"], "vcc-fig11");
    assert_eq!((&json["valid"], &json["outcome"]), (&true.into(), &"reproduced".into()));
    let case = &json["cases"][0];
    assert_eq!(case["name"], "without");
    let ratio = &case["metrics"]["ratio"];
    let expected = serde_json::json!({
        "median": 0.094, "min": 0.09, "max": 0.1, "runs": 3, "paper": 0.142,
        "reach": {"low": 0.09, "high": 0.1, "certainty": 0.75},
    });
    assert_eq!(*ratio, expected);
    assert_eq!(case["verdicts"][0]["judgement"], "holds");
    assert_eq!(case["runs"].as_array().unwrap().len(), 1);
    assert_eq!(json["stack"], "newreno");
}

/// With all fields that are left out when they are empty.
#[test]
fn json_is_read_back_as_it_was_written() {
    let mut full = report(false, false);
    full.scale = Some("s".into());
    let run = &mut full.cases[0].runs[0];
    run.frame_log = Some(FrameLog { frames: 12, hash: "0f".into() });
    let mut link = LinkReport {
        name: "bottleneck".into(),
        rate_bps: 10,
        counters: Default::default(),
        queue_mean_bytes: 0.1 + 0.2,
        queue_max_bytes: 9,
        queue_series: vec![],
    };
    link.counters.drops_ect = 3;
    run.links.push(link);
    run.vcc.push(Observation { marks: 7, ..Observation::default() });
    let pair = Pair { at_us: 1, native_segs: 2.5, ours_segs: 1.0 / 3.0 };
    run.series = Some(Series {
        windows_segs: vec![vec![(0.1, 2.0)]],
        tracking: vec![pair],
        ack_gaps_us: vec![vec![4]],
        ..Series::default()
    });
    for written in [report(true, true), full] {
        let json = serde_json::to_string(&written).unwrap();
        let read: Report = serde_json::from_str(&json).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), json);
    }
}

#[test]
fn each_run_has_its_own_seed() {
    let mut three = report(true, true);
    assert_eq!(three.seeds(), "seed 1");
    for seed in [2, 3] {
        three.cases[0].runs.push(RunReport { seed, ..run(true) });
    }
    assert_eq!(three.seeds(), "seeds 1 to 3");
    assert!(render_table(&three).contains("stack newreno, seeds 1 to 3\n"));
}

#[test]
fn the_table_ends_with_the_judgement() {
    let good = render_table(&report(true, true));
    assert!(good.contains("0.09400"), "{good}");
    assert!(good.ends_with("vcc-fig11: valid, reproduced\n"), "{good}");
    assert!(good.contains("holds, 75 %") && good.contains("by 3 runs"), "{good}");
    let bad = render_table(&report(true, false));
    let sentence = "ratio = 0.09400, median of all possible runs 0.09000 to 0.100 (75 %), required at most 0.2";
    assert!(bad.contains("FAILS, 75 %") && bad.contains(sentence), "{bad}");
    assert!(bad.ends_with("vcc-fig11: valid, NOT reproduced\n"), "{bad}");
    let doubtful = render_table(&report(false, false));
    let remark = "without: 1 of 1 runs not valid, and too few others: too late\n";
    assert!(doubtful.contains(remark), "{doubtful}");
    let end = "vcc-fig11: NOT valid, so there is no verdict: the reasons are above; run it again \
               while the machine has nothing else to do\n";
    assert!(doubtful.ends_with(end), "{doubtful}");
    let mut repeated = report(true, true);
    let runs = [false, true, true, true].map(run);
    repeated.cases[0].runs = runs.into();
    let repeated = render_table(&repeated);
    assert!(repeated.contains("1 of 4 runs not valid, and repeated: too late\n"), "{repeated}");
}

#[test]
fn the_table_defines_each_of_its_metrics_once() {
    let mut report = report(true, true);
    assert!(!render_table(&report).contains("Metrics:"), "no definitions");
    for (name, text) in [("ratio", "one over the other"), ("absent", "of no case")] {
        report.definitions.insert(name.into(), text.into());
    }
    let metrics = &mut report.cases[0].metrics;
    metrics.insert("a".into(), metrics["ratio"]);
    report.definitions.insert("a".into(), "another".into());
    report.cases.push(report.cases[0].clone());
    let table = render_table(&report);
    assert!(table.contains("\nMetrics:\na      another\nratio  one over the other\n\n"), "{table}");
    assert_eq!(table.matches("one over the other").count(), 1, "{table}");
    assert!(!table.contains("of no case"), "{table}");
}

#[test]
fn the_table_claims_no_more_than_the_runs_tell() {
    let judged = |judgement, complete| {
        let mut report = report(true, true);
        report.complete = complete;
        report.cases[0].verdicts[0].judgement = judgement;
        report.outcome = Outcome::from_cases(&report.cases);
        report
    };
    let open = render_table(&judged(Judgement::Undecided, true));
    assert!(open.contains("--runs 7 may decide"), "{open}");
    assert!(open.ends_with("vcc-fig11: valid, undecided\n"), "{open}");
    let part = render_table(&judged(Judgement::Holds, false));
    assert!(part.ends_with("vcc-fig11: valid, selected cases reproduced\n"), "{part}");

    let mut quick = judged(Judgement::NotJudged, true);
    quick.schedule.runs = 1;
    let one = render_table(&quick);
    assert!(!one.contains("FAILS") && !one.contains("NOT") && !one.contains('%'), "{one}");
    let end = "figures only: a verdict needs 3 runs of 30 s per case, and there was 1\n";
    assert!(one.ends_with(end), "{one}");
    (quick.schedule.measured_s, quick.backend) = (2.5, Backend::Virtual);
    let virtual_time = render_table(&quick);
    assert!(virtual_time.contains("there was 1 of 2.5 s; a seed gives"), "{virtual_time}");
    quick.schedule = quick.verdict_takes;
    let nothing = render_table(&quick);
    assert!(nothing.ends_with("figures only: the cases that were run have no expectations\n"));
}

#[test]
fn the_figure_is_whole_and_names_its_series() {
    let svg = render_svg(&report(true, true));
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    for text in [">ecn<", ">legacy<", ">a &lt; b<", ">goodput<", "vcc-fig11: starvation"] {
        assert!(svg.contains(text), "{text}");
    }
    assert_eq!(svg.matches("fill=\"#0072b2\"").count(), 2, "one in the legend, one bar");
}

#[test]
fn the_figure_says_what_its_shapes_are() {
    let mut report = report(true, true);
    let svg = render_svg(&report);
    assert!(svg.contains(">bar: median of 3 runs; line: least to greatest<"), "{svg}");
    report.schedule.runs = 1;
    assert!(render_svg(&report).contains(">bar: the only run<"));
    let y = String::from("ratio");
    let x_scale = vcc_plot::Scale::Linear;
    report.figure = Figure::Lines { x: "guests".into(), x_scale, y, panels: vec![] };
    assert!(render_svg(&report).contains(">of one run of each case<"));
    (report.schedule.runs, report.definitions) = (3, [("ratio".into(), "r".into())].into());
    assert!(render_svg(&report).contains(">point: median of 3 runs<"));
}

/// A difference can be either; SVG has no rectangles of negative height.
#[test]
fn a_bar_below_zero_hangs_from_zero() {
    let bar = |label: &str, median: f64| Bar {
        label: label.into(),
        series: label.into(),
        median,
        min: median - 1.0,
        max: median + 1.0,
    };
    let mut below = report(true, true);
    let panel = BarPanel { title: String::new(), bars: vec![bar("a", -2.0), bar("b", 2.0)] };
    below.figure = Figure::Bars { y: "points".into(), panels: vec![panel] };
    let svg = render_svg(&below);
    assert!(!svg.contains("height=\"-"), "{svg}");
    let bars: Vec<f64> = svg
        .lines()
        .filter(|line| line.starts_with("<rect x") && !line.contains("width=\"12.0\""))
        .filter_map(|line| line.split("y=\"").nth(1)?.split('"').next()?.parse().ok())
        .collect();
    assert!(bars[0] > bars[1], "the one below begins lower: {bars:?}");
}

#[test]
fn a_metric_counts_only_what_it_is_given() {
    let values = MetricReport::over(&[0.9, 1.2, 1.0], None).unwrap();
    assert_eq!((values.median, values.min, values.max), (1.0, 0.9, 1.2));
    assert_eq!(MetricReport::over(&[], None), None);
}

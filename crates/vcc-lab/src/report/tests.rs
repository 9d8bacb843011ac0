use super::*;
use figure::{Bar, BarPanel};

fn report(valid: bool, reproduced: bool) -> Report {
    let metric = MetricReport { median: 0.094, min: 0.09, max: 0.1, paper: Some(0.142) };
    let run = RunReport {
        seed: 1,
        valid,
        reasons: if valid { vec![] } else { vec!["too late".into()] },
        warnings: vec![],
        metrics: BTreeMap::from([("ratio".into(), 0.094)]),
        flows: vec![],
        links: vec![],
        lateness: LatenessSummary::default(),
        vcc: vec![],
        frame_log: None,
        series: None,
    };
    let verdict = Verdict {
        metric: "ratio".into(),
        holds: reproduced,
        value: Some(0.094),
        min: None,
        max: Some(0.2),
        relative_to: None,
    };
    let case = CaseReport {
        name: "without".into(),
        valid,
        reproduced,
        metrics: BTreeMap::from([("ratio".into(), metric)]),
        verdicts: vec![verdict],
        runs: vec![run],
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
        experiment: "vcc-fig11".into(),
        title: "starvation".into(),
        paper: String::new(),
        scale: None,
        stack: Stack::NewReno,
        backend: Backend::Live,
        quick: false,
        seed: 1,
        valid,
        reproduced,
        complete: true,
        cases: vec![case],
        figure: Figure::Bars { y: "goodput".into(), panels: vec![panel] },
        machine: Machine { kernel: "6.18".into(), cpu: "x".into(), cpus: 2 },
        command: "vcc lab run vcc-fig11".into(),
        definitions: BTreeMap::new(),
    }
}

#[test]
fn json_has_the_fields_that_others_read() {
    let json = serde_json::to_value(report(true, true)).unwrap();
    assert_eq!(json["experiment"], "vcc-fig11");
    assert_eq!((&json["valid"], &json["reproduced"]), (&true.into(), &true.into()));
    let case = &json["cases"][0];
    assert_eq!(case["name"], "without");
    let ratio = &case["metrics"]["ratio"];
    let expected = serde_json::json!({"median": 0.094, "min": 0.09, "max": 0.1, "paper": 0.142});
    assert_eq!(*ratio, expected);
    assert_eq!(case["runs"].as_array().unwrap().len(), 1);
    assert_eq!(json["stack"], "newreno");
}

#[test]
fn the_table_ends_with_the_judgement() {
    let good = render_table(&report(true, true));
    assert!(good.contains("0.09400"), "{good}");
    assert!(good.ends_with("vcc-fig11: valid, reproduced\n"), "{good}");
    let bad = render_table(&report(false, false));
    assert!(bad.contains("without: 1 of 1 runs not valid: too late"), "{bad}");
    assert!(bad.contains("ratio = 0.09400, wanted at most 0.2"), "{bad}");
    assert!(bad.ends_with("vcc-fig11: NOT valid, NOT reproduced\n"), "{bad}");
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
fn a_metric_counts_only_what_it_is_given() {
    let values = MetricReport::over(&[0.9, 1.2, 1.0], None).unwrap();
    assert_eq!((values.median, values.min, values.max), (1.0, 0.9, 1.2));
    assert_eq!(MetricReport::over(&[], None), None);
}

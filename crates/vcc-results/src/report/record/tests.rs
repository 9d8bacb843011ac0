use super::*;
use crate::report::tests::report;
use crate::report::{ResultFile, Results};
use crate::result::FrameLog;

pub(in crate::report) fn results(reports: Vec<Report>) -> Results {
    let files = reports.into_iter().map(|report| ResultFile { path: "x.json".into(), report });
    Results { files: files.collect(), ..Results::default() }
}

fn under(backend: Backend, seed: u64) -> Report {
    Report { backend, seed, ..report(true, true) }
}

#[test]
fn a_record_is_read_back_as_it_was_written() {
    let mut full = report(true, true);
    full.scale = Some("s".into());
    full.definitions.insert("ratio".into(), "one over the other".into());
    let (x, y) = ("servers".into(), "ratio".into());
    let lines = vec![vcc_plot::Line { name: "a".into(), points: vec![(1.0, 0.123_456_789)] }];
    let panels = vec![LinePanel { title: "t".into(), lines }];
    full.figure = Figure::Lines { x, x_scale: vcc_plot::Scale::Linear, y, panels };
    let text = json::text(&Record::from_report(&full));
    let again = json::parse(text.as_bytes()).unwrap();
    assert_eq!(json::text(&again), text);
    let row = r#"    {"case":"without","figures":{"greatest":0.1,"least":0.09,"median":0.094},"judged":{"confidence":75,"max":0.2,"verdict":"holds"},"metric":"ratio","paper":0.142,"runs":3}"#;
    assert!(text.lines().any(|line| line == row), "{text}");
    assert!(text.contains("[[1.0,0.123457]]"), "{text}");
    let names: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("  \"")?.split_once('"').map(|(name, _)| name))
        .collect();
    assert!(names.is_sorted() && names.len() > 15, "{names:?}");
    assert!(text.contains("\"engine\": \"0123456789ab\"") && text.contains("\"wall_s\": 200.0"));
    let older: String = json::text(&Record::from_report(&Report {
        sources: Sources::default(),
        wall_s: None,
        ..full
    }));
    assert!(!older.contains("sources") && !older.contains("wall_s"), "{older}");
    let older = json::parse(older.as_bytes()).unwrap();
    assert!(older.sources.are_unknown() && older.wall_s.is_none());
    let newer = text.replace("\"format_version\": 1", "\"format_version\": 2");
    assert!(json::parse(newer.as_bytes()).unwrap_err().contains("has format_version 2"));
}

#[test]
fn figures_have_six_digits_or_all_before_the_point() {
    let kept = [0.0, 0.000_251_234_56, 1.0, 123.456_789, 1_234_567.8].map(rounded);
    assert_eq!(kept, [0.0, 0.000_251_235, 1.0, 123.457, 1_234_568.0]);
    assert!(rounded(f64::NAN).is_nan());
}

#[test]
fn the_first_conditions_have_the_experiments_name() {
    let mut folder = Folder::default();
    let add = |folder: &mut Folder, report| folder.add(&results(vec![report])).0;
    assert_eq!(add(&mut folder, under(Backend::Virtual, 1)), ["vcc-fig11"]);
    assert_eq!(add(&mut folder, under(Backend::Live, 2)), ["vcc-fig11-live-newreno"]);
    assert_eq!(add(&mut folder, under(Backend::Virtual, 3)), ["vcc-fig11"]);
    let seeds: Vec<u64> = folder.records().iter().map(|(_, it)| it.first_seed).collect();
    assert_eq!(seeds, [3, 2]);
}

#[test]
fn of_several_results_the_newest_is_recorded_and_a_part_is_not() {
    let at = |finished_unix_s, seed| Report { finished_unix_s, seed, ..report(true, true) };
    let mut folder = Folder::default();
    folder.add(&results(vec![at(1, 1), at(100, 2), at(50, 3)]));
    assert_eq!(folder.records()[0].1.first_seed, 2);
    for (part, why) in [
        (Report { quick: true, ..at(200, 4) }, "x.json: not recorded: the run is quick"),
        (Report { complete: false, ..at(200, 5) }, "the run is of selected cases"),
    ] {
        let (names, left_out) = folder.add(&results(vec![part]));
        assert!(names.is_empty() && left_out[0].contains(why), "{left_out:?}");
    }
    assert_eq!(folder.records()[0].1.first_seed, 2);
}

/// One case, whose first valid run has this seed, these frames and this figure.
fn ran(seed: u64, hash: &str, ratio: f64) -> Report {
    let mut report = under(Backend::Virtual, 1);
    let run = &mut report.cases[0].runs[0];
    run.seed = seed;
    run.frame_log = Some(FrameLog { frames: 7, hash: hash.into() });
    run.metrics.insert("ratio".into(), ratio);
    report
}

#[test]
fn a_repetition_differs_by_seed_frames_or_figures() {
    let record = Record::from_report(&ran(1, "ab", 0.1));
    assert!(record.has_fingerprints());
    let differing = |report: &Report| record.differing_cases(report);
    assert!(differing(&ran(1, "ab", 0.1)).is_empty());
    assert!(differing(&ran(1, "ab", 0.100_000_04)).is_empty(), "beyond the digits of a record");
    for other in [ran(2, "ab", 0.1), ran(1, "ac", 0.1), ran(1, "ab", 0.100_01)] {
        assert_eq!(differing(&other), ["without"]);
    }
    let mut more = ran(1, "ab", 0.1);
    more.cases.push(more.cases[0].clone());
    more.cases[1].name = "with".into();
    assert_eq!(differing(&more), ["with"]);
    let mut none = ran(1, "ab", 0.1);
    none.cases[0].runs[0].valid = false;
    assert_eq!(differing(&none), ["without"]);
}

#[test]
fn runs_in_real_time_have_no_fingerprints() {
    let live = Report { backend: Backend::Live, ..ran(1, "ab", 0.1) };
    assert!(!Record::from_report(&live).has_fingerprints());
}

#[test]
fn a_confirmed_record_has_the_sources_of_the_repetition() {
    let mut folder = Folder::default();
    folder.add(&results(vec![ran(1, "ab", 0.1)]));
    let mut again = ran(1, "ab", 0.1);
    again.sources = [("engine", "another")].into_iter().collect();
    again.vcc_version = Some("0.1.0 (abc)".into());
    folder.confirm("vcc-fig11", &again);
    let record = folder.record("vcc-fig11").unwrap();
    assert_eq!(record.sources, again.sources);
    assert_eq!(record.vcc_version.as_deref(), Some("0.1.0 (2b0d7f4)"), "what measured it");
    let text = json::text(record);
    assert!(text.contains("\"confirmed\": {\n    \"measured\": "), "{text}");
    assert_eq!(json::text(&json::parse(text.as_bytes()).unwrap()), text);
}

mod markup;

use super::render_page;
use crate::report::tests::report;
use crate::report::{Judgement, Outcome, Report, ResultFile, Series, Sources};
use crate::result::Backend;
use crate::result::FrameLog;
use markup::Markup;
use std::collections::BTreeSet;

fn page(reports: Vec<Report>) -> String {
    let files: Vec<ResultFile> = reports
        .into_iter()
        .enumerate()
        .map(|(number, report)| ResultFile { path: format!("{number}.json").into(), report })
        .collect();
    render_page(&files, &|_| None)
}

/// In virtual time, with a run that does not count, what was recorded, and other metrics.
fn full() -> Report {
    let mut report = report(true, false);
    report.backend = Backend::Virtual;
    report.scale = Some("a tenth".into());
    report.paper = "It starves.\n\nAnd then it does not.".into();
    report.definitions.insert("ratio".into(), "one over the other".into());
    let case = &mut report.cases[0];
    let metric = case.metrics["ratio"];
    case.metrics.insert("marks".into(), crate::report::MetricReport { paper: None, ..metric });
    case.runs[0].frame_log = Some(FrameLog { frames: 4711, hash: "c0ffee".into() });
    let windows_segs = vec![vec![(0.0, 1.0), (1.0, 2.0)]];
    case.runs[0].series = Some(Series { windows_segs, ..Series::default() });
    let mut late = case.runs[0].clone();
    (late.seed, late.valid, late.reasons) = (2, false, vec!["frames were late".into()]);
    late.warnings.push("not in real time".into());
    case.runs.push(late);
    report
}

#[track_caller]
fn check(page: &str) -> Markup {
    let markup = Markup::parse(page);
    let ids = markup.values("id");
    let distinct: BTreeSet<&String> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len(), "an id twice: {ids:?}");
    for target in markup.values("href") {
        let anchor = target.strip_prefix('#').unwrap_or_else(|| panic!("leads away: {target}"));
        assert!(ids.iter().any(|id| id == anchor), "leads nowhere: {target}");
    }
    for loading in ["src", "srcset", "data", "action", "background"] {
        assert!(markup.values(loading).is_empty(), "{loading}");
    }
    assert!(!markup.tags().iter().any(|tag| ["script", "link", "iframe", "img"].contains(tag)));
    for part in ["http://", "https://", "url(", "@import"] {
        assert!(!page.contains(part), "{part}");
    }
    markup
}

#[test]
fn a_page_is_well_formed_and_needs_nothing_else() {
    check(&page(vec![report(true, true)]));
    check(&page(vec![full(), report(false, false), report(true, true)]));
}

#[test]
fn what_a_result_says_is_on_the_page() {
    let page = page(vec![full()]);
    for text in [
        "Not reproduced",
        "What was 9.4 % is 100 %.",
        "virtual, newreno",
        "It starves.",
        "And then it does not.",
        "a tenth",
        "one over the other",
        "0.09400",
        "0.142",
        "at most 0.2",
        "✗ fails",
        "0.09000 to 0.100 (75 %)",
        "1 run not valid: frames were late",
        "not in real time",
        "c0ffee",
        "4711",
        "vcc-lab run vcc-fig11",
        "Linux 6.18",
        "2024-02-29 00:00 UTC",
        "send window (segments)",
        "Other metrics (1)",
        "1 of 2",
    ] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn a_page_names_the_parts_that_have_changed_since() {
    let file = || ResultFile { path: "x.json".into(), report: report(true, true) };
    let page = |digest: &str| {
        let now: Sources = [("engine", digest)].into_iter().collect();
        render_page(&[file(), file()], &|_| Some(now.clone()))
    };
    let current = page("0123456789ab");
    check(&current);
    assert!(current.contains("<span>current</span>") && !current.contains("are stale"));
    let stale = page("ba9876543210");
    assert_eq!(stale.matches("stale (engine)").count(), 4, "a row and a section of each");
    assert!(stale.contains("2 results: 2 reproduced. 2 are stale."));
}

#[test]
fn each_verdict_is_distinguished_from_the_others() {
    let mut part = report(true, true);
    part.complete = false;
    let judged = |judgement| {
        let mut report = report(true, true);
        report.cases[0].verdicts[0].judgement = judgement;
        report.outcome = Outcome::from_cases(&report.cases);
        report
    };
    let mut quick = judged(Judgement::NotJudged);
    quick.schedule.runs = 1;
    for (report, expected, counted) in [
        (report(true, true), "Reproduced", "1 result: 1 reproduced."),
        (report(true, false), "Not reproduced", "1 result: 1 not reproduced."),
        (report(false, false), "Not valid", "1 result: 1 not valid."),
        (part, "Selected cases reproduced", "1 result: 1 reproduced."),
        (judged(Judgement::Undecided), "Undecided", "1 result: 1 undecided."),
        (quick, "Figures only", "1 result: 1 with figures only."),
    ] {
        let page = page(vec![report]);
        assert!(page.contains(&format!("</span>{expected}</span>")), "{expected}");
        assert!(page.contains(counted), "{counted}");
    }
}

#[test]
fn a_case_without_a_valid_run_is_not_silent() {
    let mut report = report(false, false);
    report.cases[0].metrics.clear();
    report.cases[0].verdicts[0].value = None;
    let page = page(vec![report]);
    check(&page);
    assert!(page.contains("no valid run"));
    assert!(page.contains("has 0 valid runs of 1, fewer than requested"));
}

#[test]
fn a_result_without_cases_or_flows_is_a_page() {
    let mut report = report(true, true);
    report.cases.clear();
    check(&page(vec![report]));
}

#[test]
fn results_of_one_experiment_stand_beside_each_other() {
    let mut modern = report(true, true);
    modern.stack = crate::result::Stack::Modern;
    let markup = check(&page(vec![modern, report(true, true)]));
    let ids = markup.values("id");
    assert!(ids.contains(&"vcc-fig11".into()) && ids.contains(&"vcc-fig11-2".into()), "{ids:?}");
    let page = page(vec![full(), report(true, true)]);
    for name in ["vcc-fig11 (virtual, newreno)", "vcc-fig11 (live, newreno)"] {
        assert!(page.contains(name), "{name}");
    }
}

#[test]
fn results_that_were_run_alike_are_named_by_their_files() {
    let page = page(vec![report(true, true), report(true, false)]);
    for name in ["vcc-fig11 (0.json)", "vcc-fig11 (1.json)"] {
        assert!(page.contains(name), "{name}");
    }
}

#[test]
fn doubts_that_differ_in_figures_alone_are_one() {
    let mut report = report(false, false);
    let case = &mut report.cases[0];
    case.runs.push(case.runs[0].clone());
    case.runs[0].reasons = vec!["96.1 % were late".into()];
    case.runs[1].reasons = vec!["7.3 % were late".into(), "3 frames were lost".into()];
    let page = page(vec![report]);
    for text in ["2 runs not valid: such as 96.1 % were late", "1 run not valid: 3 frames"] {
        assert!(page.contains(text), "{text}");
    }
}

/// A report's elements and attributes do not depend on its words.
#[test]
fn no_word_of_a_result_becomes_markup() {
    const HOSTILE: &str = "</title></style></svg>\"' onload='x'><script>alert(1)</script>&amp;<!--";
    let with = |word: &str| {
        let mut report = full();
        for text in [
            &mut report.experiment,
            &mut report.title,
            &mut report.paper,
            &mut report.command,
            &mut report.machine.kernel,
            &mut report.machine.cpu,
        ] {
            *text = word.into();
        }
        report.scale = Some(word.into());
        let case = &mut report.cases[0];
        let metric = case.metrics["ratio"];
        case.name = word.into();
        case.metrics = [(word.to_owned(), metric), ("other".to_owned(), metric)].into();
        case.verdicts[0].metric = word.into();
        case.verdicts[0].relative_to = Some(word.into());
        report.definitions = [(word.to_owned(), word.to_owned())].into();
        for run in &mut case.runs {
            run.reasons = vec![word.into()];
            run.warnings = vec![word.into()];
            run.frame_log = Some(FrameLog { frames: 1, hash: word.into() });
        }
        if let crate::report::Figure::Bars { y, panels } = &mut report.figure {
            *y = word.into();
            for panel in panels {
                panel.title = word.into();
                panel.bars[0].label = word.into();
                panel.bars[0].series = word.into();
            }
        }
        render_page(&[ResultFile { path: word.into(), report }], &|_| None)
    };
    let (plain, hostile) = (with(&"x".repeat(HOSTILE.len())), with(HOSTILE));
    assert_eq!(check(&plain).shape(), check(&hostile).shape());
    assert!(!hostile.contains("<script"));
}

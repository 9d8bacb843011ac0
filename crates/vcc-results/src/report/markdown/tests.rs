use super::{Problem, fill_markdown, page};
use crate::report::bench::{Cost, Figures, Measurements, SegmentCost, Spread, Throughput};
use crate::report::tests::report;
use crate::report::{
    BenchReport, CaseReport, Figure, Folder, Headline, Known, Machine, Record, Report, ResultFile,
    Results, Sources,
};
use crate::result::{Backend, Stack};
use vcc_plot::{Line, LinePanel, Scale};

fn results(reports: Vec<Report>) -> Results {
    let files = reports.into_iter().enumerate();
    let files = files.map(|(n, report)| ResultFile { path: format!("{n}.json").into(), report });
    Results { files: files.collect(), ..Results::default() }
}

fn report_of(experiment: &str) -> Report {
    let definitions = [("ratio".to_owned(), "one over the other".to_owned())].into();
    Report { experiment: experiment.into(), definitions, ..report(true, true) }
}

fn known(id: &str) -> Option<Known> {
    let (backend, stack) = (Backend::Live, Stack::NewReno);
    let known = Known { backend, stack, claim: None, headline: None };
    ["vcc-fig2", "vcc-fig11", "acdc-fig15"].contains(&id).then_some(known)
}

fn fill(text: &str, results: &Results) -> Result<String, Problem> {
    let mut folder = Folder::default();
    folder.add(results);
    fill_markdown(text, &folder, &known)
}

#[track_caller]
fn filled(text: &str, results: &Results) -> String {
    let once = fill(text, results).unwrap_or_else(|it| panic!("{it:?}"));
    let again = fill(&once, results).unwrap_or_else(|it| panic!("{it:?}"));
    assert_eq!(again, once, "a second time changes nothing");
    once
}

fn modern(seed: u64) -> Report {
    Report { stack: Stack::Modern, seed, ..report_of("vcc-fig11") }
}

#[test]
fn a_page_has_figures_bounds_verdicts_and_where_they_come_from() {
    let mut full = report_of("vcc-fig11");
    full.scale = Some("a tenth\nof it".into());
    full.paper = "it starves".into();
    full.machine.kernel = "6.18-local".into();
    full.definitions.insert("ratio".into(), "one | over the other".into());
    full.command = "/home/somebody/vcc-lab run vcc-fig11 --json /tmp/x.json".into();
    let text = page("vcc-fig11", &Record::from_report(&full));
    for part in [
        "# `vcc-fig11`: starvation\n\nReproduced. [All results](../results.md)\n",
        "| `ratio` | `without` | 0.09400 (0.09000 to 0.100) | 3 | 0.142 | at most 0.2 | holds, 75 % |",
        "`ratio`: one \\| over the other.",
        "*Paper:* it starves",
        "*Scale:* a tenth of it",
        "Measured on 2024-02-29 00:00 UTC with vcc 0.1.0 (2b0d7f4): 3 runs of 30 s per case, live, stack \
         newreno, seed 1; Linux 6.18, 2 CPUs. `vcc-lab run vcc-fig11`",
    ] {
        assert!(text.replace('\n', " ").contains(&part.replace('\n', " ")), "{part}: {text}");
    }
    assert!(!text.contains("somebody") && !text.contains("/tmp"), "{text}");
}

#[test]
fn a_curve_is_a_table_and_only_its_judged_cases_have_rows() {
    let mut full = report_of("vcc-fig11");
    let mut other = full.cases[0].clone();
    other.name = "with".into();
    other.verdicts.clear();
    other.metrics.get_mut("ratio").unwrap().paper = None;
    let base = CaseReport { name: "base".into(), ..other.clone() };
    full.cases[0].verdicts[0].relative_to = Some("base".into());
    full.cases.extend([other, base]);
    let line =
        |name: &str, points: &[(f64, f64)]| Line { name: name.into(), points: points.into() };
    let lines = vec![line("without", &[(1.0, 0.25), (20.0, 0.5)]), line("with", &[(4.0, 2.0)])];
    let panels = vec![LinePanel { title: "1 MB".into(), lines }];
    let (x, y) = ("servers".into(), "ratio".into());
    full.figure = Figure::Lines { x, x_scale: Scale::Linear, y, panels };
    let text = page("vcc-fig11", &Record::from_report(&full));
    for part in [
        "Medians of `ratio` by servers:\n\n| 1 MB | 1 | 4 | 20 |\n|---|---|---|---|\n",
        "\n| `without` | 0.250 |  | 0.500 |\n| `with` |  | 2.000 |  |\n",
        "| `ratio` | `without` |",
        "| `ratio` | `base` |",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("| `ratio` | `with` |"), "{text}");
}

const ALL: &str = "before\n\n<!-- measured: experiments vcc-* acdc-fig15 -->\nstale\n<!-- /measured -->\n\
                   after\n";

#[test]
fn the_table_of_all_results_has_a_row_for_each_that_matches() {
    let mut failed = Report { finished_unix_s: 2_000_000_000, ..report(true, false) };
    failed.experiment = "vcc-fig2".into();
    let all = vec![
        report_of("vcc-fig11"),
        report_of("acdc-fig15"),
        failed,
        report_of("acdc-fig1"),
        modern(3),
    ];
    let text = filled(ALL, &results(all));
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| [")).collect();
    let row = "| [`vcc-fig11`](results/vcc-fig11.md) | starvation | `ratio` `without` | 0.142 | \
               0.09400 (0.09000 to 0.100) | reproduced | 2024-02-29 | 0.1.0 (2b0d7f4) |";
    assert_eq!(rows[1], row);
    let begins = |row: &str, name: &str| row.starts_with(&format!("| [`{name}`]("));
    for (row, name) in
        rows.iter().zip(["vcc-fig2", "vcc-fig11", "vcc-fig11-live-modern", "acdc-fig15"])
    {
        assert!(begins(row, name), "{name}: {row}");
    }
    assert_eq!(rows.len(), 4, "{text}");
    assert!(rows[0].contains("| **not reproduced** | 2033-05-18 |"), "{}", rows[0]);
    assert!(text.starts_with("before\n\n<!-- measured: experiments vcc-* acdc-fig15 -->\n\n|"));
    assert!(text.ends_with("|\n\n<!-- /measured -->\nafter\n") && !text.contains("stale"));
}

#[test]
fn an_experiments_file_chooses_the_row_and_its_words() {
    let mut report = report_of("vcc-fig11");
    let mut with = report.cases[0].clone();
    with.name = "with".into();
    with.metrics.get_mut("ratio").unwrap().median = 0.095;
    with.verdicts[0].relative_to = Some("without".into());
    with.verdicts[0].value = Some(1.5);
    report.cases.push(with);
    let mut folder = Folder::default();
    folder.add(&results(vec![report]));
    let row = |headline: Option<&str>| {
        let headline = headline.map(|it| Headline::try_from(it.to_owned()).unwrap());
        let named = Known { headline, claim: Some("it starves".into()), ..known("vcc-fig11")? };
        Some(fill_markdown(ALL, &folder, &|_| Some(named.clone())))
    };
    let by_itself = row(None).unwrap().unwrap();
    let part = "| it starves | `ratio` `with` | 0.142 | 0.09500 (0.09000 to 0.100), 1.500 times `without` |";
    assert!(by_itself.contains(part), "a case with vcc goes before others: {by_itself}");
    let named = row(Some("ratio without")).unwrap().unwrap();
    assert!(
        named.contains("| `ratio` `without` | 0.142 | 0.09400 (0.09000 to 0.100) |"),
        "{named}"
    );
    let none = row(Some("ratio native")).unwrap().unwrap();
    assert!(none.contains("| it starves | `ratio` `native` |  | no valid run |"), "{none}");
}

#[test]
fn other_text_stays() {
    let none = results(vec![]);
    assert_eq!(filled("no marker\n", &results(vec![report_of("vcc-fig11")])), "no marker\n");
    let code = "```\n<!-- measured: nothing -->\n```\n";
    assert_eq!(filled(code, &none), code, "an example is no marker");
    let kept = "<!-- measured: bench host -->\nkept\n<!-- /measured -->\n";
    assert_eq!(filled(kept, &none), kept, "there is no record of it");
}

const TABLE: &str = "<!-- measured: table\n\
    columns: what | without vcc | with vcc\n\
    A legacy flow | vcc-fig11 | ratio | without | -\n\
    Two at once | acdc-fig15 live | ratio | - | without\n\
    -->\n<!-- /measured -->\n";

#[test]
fn a_table_has_rows_of_several_experiments() {
    let text = filled(TABLE, &results(vec![report_of("acdc-fig15")]));
    let row = "| Two at once |  | 0.09400 (0.09000 to 0.100) | 0.142 | at most 0.2 | holds, 75 % | \
               `acdc-fig15`, 2024-02-29, vcc 0.1.0 (2b0d7f4) |\n";
    assert!(text.contains(row), "{text}");
    assert!(text.contains("| what | without vcc | with vcc | paper | required |"), "{text}");
    let both = filled(&text, &results(vec![report_of("vcc-fig11")]));
    assert!(both.contains(row), "a row without a record is kept: {both}");
    let legacy = both.find("| A legacy flow | 0.09400 (").expect("the other row");
    assert!(legacy < both.find(row).unwrap(), "rows are in the marker's order: {both}");
}

/// Figures that a reader compares with the paper's are of the paper's stack, and on the backend that
/// the experiment is made for.
#[test]
fn a_row_without_conditions_means_the_experiments_defaults() {
    let newer = |report: Report| Report { finished_unix_s: 2_000_000_000, ..report };
    let in_virtual_time = || Report { backend: Backend::Virtual, ..report_of("vcc-fig11") };
    for other in [modern(9), in_virtual_time()] {
        let both = results(vec![newer(other), report_of("vcc-fig11")]);
        let rows = filled(TABLE, &both);
        assert!(rows.contains("`vcc-fig11`, 2024-02-29,"), "not the newer one: {rows}");
    }
    let text = filled(TABLE, &results(vec![modern(9)]));
    assert!(!text.contains("| A legacy flow |"), "it is not what the row is of: {text}");
    let text = filled(&TABLE.replace("vcc-fig11", "vcc-fig11 modern"), &results(vec![modern(9)]));
    assert!(text.contains("| A legacy flow | 0.09400"), "{text}");
}

/// Nothing says which stack is the default of an experiment that is not built in.
#[test]
fn conditions_of_an_experiment_of_ones_own_are_to_be_named() {
    let own = TABLE.replace("vcc-fig11", "mine");
    let of_stack = |stack| Report { stack, ..report_of("mine") };
    let text = filled(&own, &results(vec![of_stack(Stack::Modern)]));
    assert!(text.contains("| A legacy flow | 0.09400"), "{text}");
    let both = results(vec![of_stack(Stack::NewReno), of_stack(Stack::Modern)]);
    let problem = fill(&own, &both).unwrap_err();
    assert_eq!(problem.line, 3);
    assert!(problem.text.contains("'mine live modern'"), "{}", problem.text);
}

#[test]
fn benchmarks_have_blocks_of_their_own() {
    let spread = |median| Spread { median, p10: median - 1.0, p90: median + 1.0, samples: 10 };
    let bench = |measurements| BenchReport {
        format_version: 1,
        measurements,
        vcc_version: None,
        sources: Sources::default(),
        wall_s: None,
        machine: Machine { kernel: "6.18".into(), cpu: "x".into(), cpus: 1 },
        command: "vcc-lab bench datapath --json b.json".into(),
        finished_unix_s: 1_709_164_800,
    };
    let cost = Cost {
        name: "n".into(),
        what: "data from a guest".into(),
        gross_ns: spread(150.0),
        ns: spread(120.0),
    };
    let rewriter = Cost { name: "rewriter".into(), ns: spread(80.0), ..cost.clone() };
    let held = SegmentCost {
        name: "n".into(),
        what: "data that is held".into(),
        ns: spread(130.0),
        gbit_s: None,
    };
    let bulk = SegmentCost { what: "bulk".into(), gbit_s: Some(spread(34.0)), ..held.clone() };
    let throughput = Throughput {
        attached_gbit_s: spread(38.0),
        parsed_gbit_s: spread(39.0),
        detour_gbit_s: spread(20.0),
        detached_gbit_s: spread(40.0),
        ratio: spread(0.95),
        parsed_ratio: spread(0.99),
        detour_ratio: spread(0.5),
    };
    let figure = |what: &str, value, unit: &str| crate::report::bench::Figure {
        name: "n".into(),
        what: what.into(),
        value,
        unit: unit.into(),
    };
    let costs = vec![
        bench(Measurements::Datapath(vec![cost, rewriter])),
        bench(Measurements::Domain(vec![held, bulk])),
        bench(Measurements::Flood(vec![Figures {
            name: "n".into(),
            what: "goodput".into(),
            value: spread(0.99),
            unit: "of it".into(),
        }])),
        bench(Measurements::Ports(vec![
            figure("a port", 1.607, "ms"),
            figure("missed", 3.0, "devices"),
        ])),
        bench(Measurements::Throughput(throughput)),
    ];
    let results = Results { benches: costs, ..Results::default() };
    let json = serde_json::to_string(&results.benches).unwrap();
    assert_eq!(serde_json::from_str::<Vec<BenchReport>>(&json).unwrap(), results.benches);
    let text = filled(
        "<!-- measured: bench datapath -->\n<!-- /measured -->\n<!-- measured: bench domain -->\n\
         <!-- /measured -->\n<!-- measured: bench flood -->\n<!-- /measured -->\n<!-- measured: bench throughput -->\n\
         <!-- /measured -->\n<!-- measured: bench ports -->\n<!-- /measured -->\n<!-- measured: bench virtual -->\nnone\n<!-- /measured -->\n",
        &results,
    );
    for part in [
        "| data from a guest | 120 (119 to 121) | 150 (149 to 151) | 1.50 |",
        "of 10 turns of 10,000 runs each. Measured on 2024-02-29 00:00 UTC with an unrecorded build of \
         vcc; Linux 6.18, 1 CPU. `vcc-lab bench datapath`",
        "| data that is held | 130 (129 to 131) |  |\n| bulk | 130 (129 to 131) | 34.0 (33.0 to 35.0) |",
        "| goodput | 0.990 (-0.010 to 1.990) of it |",
        "| a port | 1.61 ms |\n| missed | 3 devices |",
        "One run. Measured on 2024-02-29",
        "| attached over detached | 0.950 (-0.050 to 1.950) |",
        "<!-- measured: bench virtual -->\nnone\n",
    ] {
        assert!(text.replace('\n', " ").contains(&part.replace('\n', " ")), "{part}: {text}");
    }
}

#[test]
fn what_cannot_be_understood_is_refused_with_its_line() {
    let results = results(vec![report_of("vcc-fig11")]);
    for (text, line, expected) in [
        ("a\n<!-- measured: experiments vcc-* -->\nb\n", 2, "has no '<!-- /measured -->' after it"),
        ("a\n<!-- /measured -->\n", 2, "unmatched '<!-- /measured -->': no block is open"),
        (&ALL.replace("/measured -->\n", "/measured\n"), 3, "has no '<!-- /measured -->'"),
        (&format!("<!-- measured: bench host -->\n{ALL}"), 1, "has no '<!-- /measured -->'"),
        ("<!-- measured: table\n", 1, "the comment has no '-->'"),
        (&ALL.replace("experiments vcc-* acdc-fig15", "experiments"), 3, "is none of 'experiments"),
        (&ALL.replace("experiments vcc-*", "bench disk"), 3, "is none of 'experiments"),
        (&ALL.replace("experiments vcc-* acdc-fig15", "bench disk"), 3, "no benchmark 'disk'"),
        (&ALL.replace(" -->\nstale", " --> b\nstale"), 3, "a marker must be alone on its line"),
        (&TABLE.replace("columns: what | without vcc | with vcc\n", ""), 1, "needs 'columns:"),
        (
            &TABLE.replace("| without | -", "| without"),
            3,
            "names 1 cases, and the columns are of 2",
        ),
        (&TABLE.replace("A legacy flow | vcc-fig11 | ratio | without | -", "A | b"), 3, "a row is"),
        (&TABLE.replace("| vcc-fig11", "|"), 3, "names no experiment"),
        (&TABLE.replace("vcc-fig11", "vcc-fig0"), 3, "there is no experiment 'vcc-fig0'"),
        (
            &TABLE.replace("vcc-fig11", "vcc-fig11 fast"),
            3,
            "'fast' is neither a backend nor a stack",
        ),
        (&TABLE.replace("vcc-fig11 | ratio", "vcc-fig11 | jane"), 3, "has no metric 'jane'"),
        (&TABLE.replace("ratio | without", "ratio | wihtout"), 3, "has no case 'wihtout'"),
    ] {
        let problem = fill(text, &results).expect_err(text);
        assert!(problem.text.contains(expected), "{}: {text}", problem.text);
        assert_eq!(problem.line, line, "{}: {text}", problem.text);
    }
}

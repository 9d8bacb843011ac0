//! Results on one page: `vcc-lab report`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use vcc_testing::can_attach;

use crate::browser::{Browser, Screen};
use crate::runs::{EXPERIMENT, folder, written};
use crate::{CommandOutput, command, lab};

/// A result with many cases of long names, some of which fail and some of which do not count.
fn result(id: &str, backend: &str) -> Value {
    let cases: Vec<Value> = (1..=12).map(|number| case(number, backend)).collect();
    let bars = (1..=12).map(|number| {
        json!({
            "label": name_of(number), "series": name_of(number),
            "median": number, "min": number - 1, "max": number + 1,
        })
    });
    let panel = json!({"title": "", "bars": bars.collect::<Vec<_>>()});
    json!({
        "format_version": 2,
        "experiment": id,
        "title": "What a title of some length says about five equal flows, <b>not</b> in bold",
        "paper": "It was shown. ".repeat(30),
        "scale": "A hundredth of it. ".repeat(20),
        "stack": "modern", "backend": backend, "quick": false, "seed": 1,
        "valid": true, "outcome": "not-reproduced", "complete": true,
        "schedule": {"warm_up_s": 5.0, "measured_s": 30.0, "runs": 5},
        "verdict_takes": {"warm_up_s": 5.0, "measured_s": 30.0, "runs": 5},
        "in_short": "What was 9.5 % of a fair share is now 101 %. ".repeat(3),
        "cases": cases,
        "figure": {"kind": "bars", "y": "rtt_p50_us", "panels": [panel]},
        "machine": {"kernel": "6.12.0-a-long-local-version", "cpu": "A processor", "cpus": 2},
        "command": format!("/usr/local/bin/vcc-lab run {id} --json results/{}.json", "x".repeat(90)),
        "finished_unix_s": 1_709_164_800,
        "definitions": {"rtt_p50_us": "round-trip time of the median probe in us"},
    })
}

fn name_of(number: u32) -> String {
    format!("with-congestion-control-{number}")
}

fn case(number: u32, backend: &str) -> Value {
    let judgement = ["holds", "fails", "undecided", "not-judged"][number as usize % 4];
    let run = |seed: u32, valid: bool| {
        let mut run = json!({
            "seed": seed, "valid": valid, "warnings": [], "metrics": {"rtt_p50_us": 2564.25},
            "reasons": if valid { vec![] } else { vec!["10.4 % of the frames were late"] },
            "flows": [], "links": [], "vcc": [],
            "lateness": {"p50_us": 0, "p99_us": 0, "max_us": 0},
        });
        if backend == "virtual" {
            run["frame_log_frames"] = 123_456.into();
            run["frame_log_hash"] = "0123456789abcdef".repeat(4).into();
        }
        run
    };
    json!({
        "name": name_of(number),
        "valid": true,
        "metrics": {
            "rtt_p50_us": {
                "median": 2564.25, "min": 2550.5, "max": 67653.1, "runs": 5, "paper": 127.0,
                "reach": {"low": 2550.5, "high": 67653.1, "certainty": 0.9375},
            },
            "queue_mean_bytes": {
                "median": 61960.2, "min": 61950.0, "max": 63360.0, "runs": 5, "paper": null,
                "reach": {"low": 61950.0, "high": 63360.0, "certainty": 0.9375},
            },
        },
        "verdicts": [{
            "metric": "rtt_p50_us", "judgement": judgement, "value": 1.01, "min": 0.85,
            "max": 1.15, "reach": {"low": 0.84, "high": 1.16, "certainty": 0.8789},
            "relative_to": "native-of-the-same-mix",
        }],
        "runs": [run(1, true), run(2, number > 1)],
    })
}

/// A folder with results of both backends, and their page.
fn made(name: &str) -> (PathBuf, PathBuf) {
    let folder = folder(name);
    for (id, backend) in [("acdc-tab1", "live"), ("vcc-fig5", "virtual")] {
        let text = result(id, backend).to_string();
        fs::write(folder.join(format!("{id}.json")), text).expect("written");
    }
    let page = folder.join("page.html");
    let command = format!("report {} --output {}", folder.display(), page.display());
    assert_eq!(lab(&command).well(), format!("page: {}\n", page.display()));
    (folder, page)
}

#[test]
fn a_directory_becomes_a_page() {
    let (_, page) = made("page");
    let page = fs::read_to_string(page).expect("a page");
    for text in ["2 results: 2 not reproduced.", "id=\"acdc-tab1\"", "id=\"vcc-fig5\"", "abcdef"] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn what_a_run_writes_is_read() {
    if !can_attach() {
        return;
    }
    let folder = folder("run-and-report");
    let file = written(&folder, EXPERIMENT);
    let (json, page) = (folder.join("short.json"), folder.join("page.html"));
    lab(&format!("run {file} --series --json {}", json.display()));
    lab(&format!("report {} --output {}", json.display(), page.display())).well();
    let page = fs::read_to_string(page).expect("a page");
    let report: Value = serde_json::from_slice(&fs::read(&json).expect("figures")).expect("JSON");
    // A machine too busy for a valid run reports it, and gives no figures.
    let is_there = report["valid"] == true;
    assert!(page.contains("goodput (Mbit/s)") || !is_there, "{report}");
    for text in ["A legacy guest beside one with ECN", &file] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn a_file_that_is_no_result_is_reported_and_no_page_is_made() {
    let (folder, page) = made("no-page");
    fs::remove_file(&page).expect("removed");
    let short = folder.join("short.json");
    fs::write(&short, "{\"experiment\": ").expect("written");
    let (folder, page) = (folder.display(), page.display());
    let complaint = lab(&format!("report {folder} --output {page}")).complaint(1);
    assert!(complaint.contains("short.json is truncated in line 1"), "{complaint}");
    assert!(!Path::new(&page.to_string()).exists());
    let complaint = lab(&format!("report {folder}/none.json")).complaint(1);
    assert!(complaint.contains("none.json"), "{complaint}");
    let complaint = lab(&format!("report {folder} --output /nowhere/page.html")).complaint(1);
    assert!(complaint.contains("there is no directory /nowhere"), "{complaint}");
    assert!(lab("report").complaint(2).contains("<RESULT>"));
}

/// A folder with what the command needs of a checkout.
fn checkout(name: &str) -> PathBuf {
    let folder = folder(name);
    for part in ["results/data", "docs/results"] {
        fs::create_dir_all(folder.join(part)).expect("a folder");
    }
    let table = "<!-- measured: experiments * -->\n<!-- /measured -->\n";
    fs::write(folder.join("docs/results.md"), table).expect("written");
    fs::write(folder.join("README.md"), "no table\n").expect("written");
    folder
}

fn at(folder: &Path, arguments: &str) -> CommandOutput {
    let mut command = command();
    command.current_dir(folder).args(arguments.split_whitespace());
    command.output().expect("the command").into()
}

#[test]
fn a_result_is_recorded() {
    let folder = checkout("recording");
    let text = result("mine", "virtual").to_string();
    fs::write(folder.join("result.json"), text).expect("written");
    let files = ["results/data/mine.json", "docs/results/mine.md", "docs/results.md"];
    let listed: String = files.iter().map(|file| format!("recorded: {file}\n")).collect();
    assert_eq!(at(&folder, "report result.json --record").well(), listed);
    assert_eq!(at(&folder, "report result.json --record").well(), "", "nothing is new");
    let table = fs::read_to_string(folder.join("docs/results.md")).expect("UTF-8");
    assert!(table.contains("| [`mine`](results/mine.md) |"), "{table}");
    assert!(!folder.join("report.html").exists(), "a page is made only on request");
}

#[test]
fn a_run_is_recorded() {
    if !can_attach() {
        return;
    }
    let folder = checkout("run-and-record");
    let file = written(&folder, EXPERIMENT);
    at(&folder, &format!("run {file} --record"));
    let table = fs::read_to_string(folder.join("docs/results.md")).expect("UTF-8");
    assert!(table.contains("A legacy guest beside one with ECN"), "{table}");
    let recorded = fs::read_dir(folder.join("results/data")).expect("data").count();
    assert_eq!(recorded, 1);
}

#[test]
fn what_cannot_be_recorded_is_refused_before_the_run() {
    let folder = folder("no-checkout");
    for command in ["report --record", "run vcc-fig11 --record"] {
        let complaint = at(&folder, command).complaint(1);
        assert!(complaint.contains("cannot record: there is no results/data here"), "{complaint}");
    }
    let complaint = at(&folder, "run vcc-fig11 --record --quick").complaint(2);
    assert!(complaint.contains("--quick"), "{complaint}");
}

/// A phone makes room for what is too wide and shows all of it smaller; other screens scroll.
#[track_caller]
fn assert_fits(browser: &mut Browser, screen: &Screen) {
    let of_page = |what| format!("document.documentElement.{what}");
    let [content, view] = ["scrollWidth", "clientWidth"]
        .map(|what| browser.evaluate(&of_page(what)).as_u64().expect("a width"));
    assert!(content <= view && view <= screen.width.into(), "{content} in {view}");
}

/// Nothing is fetched, nobody complains, and nothing is wider than the screen, folded out or not.
#[test]
fn a_browser_shows_it_on_any_screen() {
    let (folder, page) = made("browser");
    let Some(mut browser) = Browser::start(&folder.join("profile")) else { return };
    let url = format!("file://{}", page.display());
    let mut grounds = Vec::new();
    for screen in [
        Screen { width: 1440, height: 900, is_phone: false },
        Screen { width: 820, height: 1180, is_phone: true },
        Screen { width: 360, height: 740, is_phone: true },
    ] {
        for scheme in ["light", "dark"] {
            browser.open(&url, &screen, scheme);
            assert_fits(&mut browser, &screen);
            browser.evaluate("document.querySelectorAll('details').forEach(it => it.open = true)");
            assert_fits(&mut browser, &screen);
            let drawn = "[...document.querySelectorAll('figure svg')]\
                         .every(it => it.getBoundingClientRect().width > 200)";
            assert_eq!(browser.evaluate(drawn), true);
            grounds.push(browser.evaluate("getComputedStyle(document.body).backgroundColor"));
            assert_eq!(browser.requested(), [url.as_str()]);
            assert_eq!(browser.complaints(), Vec::<&Value>::new());
        }
    }
    assert!(grounds.chunks(2).all(|pair| pair[0] != pair[1]), "dark is as light: {grounds:?}");
}

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use vcc_testing::{can_attach, skip};

use crate::{CommandOutput, command, lab};

pub const EXPERIMENT: &str = r#"
id = "short"
title = "A legacy guest beside one with ECN"
paper = "None."
scale = "as short as it can be"

[network]
topology = "star"
rate_mbps = 20
delay_us = 250
queue = "marking"

[queues.marking]
kind = "threshold"
threshold_bytes = 30000
limit_bytes = 200000

[duration]
warm_up_s = 0.5
measured_s = 1.0
runs = 1
quick = { warm_up_s = 0.5, measured_s = 1.0, runs = 1 }

[[guests]]
name = "ecn"
count = 1
ecn = true

[[guests]]
name = "legacy"
count = 1
ecn = false

[[metrics]]
name = "ratio"
measure = "goodput_ratio"
of = "legacy"
over = "ecn"
text = "goodput of one over that of the other"

[[cases]]
name = "with"
guests.legacy.vcc.mode = "enforce"
goodput_floor = 0.5
expect.ratio = { min = 0.2, max = 5.0 }

[plot]
kind = "goodput"
"#;

/// A folder of its own for what a test writes.
pub fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

pub fn written(folder: &Path, text: &str) -> String {
    let path = folder.join("short.toml");
    fs::write(&path, text).expect("written");
    path.display().to_string()
}

fn can_run() -> bool {
    if !Path::new("/dev/net/tun").exists() {
        skip("no /dev/net/tun");
        return false;
    }
    can_attach()
}

#[test]
fn a_short_run_end_to_end() {
    if !can_run() {
        return;
    }
    let folder = folder("short-run");
    let file = written(&folder, EXPERIMENT);
    let (json, plot) = (folder.join("out.json"), folder.join("out.svg"));
    let run = format!("run {file} --json {} --plot {}", json.display(), plot.display());
    let printed = lab(&run);
    let report: Value = serde_json::from_slice(&fs::read(&json).expect("figures")).expect("JSON");
    assert_eq!(report["experiment"], "short");
    assert_eq!(printed.code, i32::from(report["valid"] != true), "{report}");
    // One run is no sample, even if the file asks for one.
    let outcome = if report["valid"] == true { "figures-only" } else { "not-valid" };
    assert_eq!(report["outcome"], outcome);
    let case = &report["cases"][0];
    assert_eq!(case["name"], "with");
    // A machine too busy for a valid run reports it, and gives no figures.
    if report["valid"] == true {
        let definition = "Metrics:\nratio  goodput of one over that of the other\n";
        assert!(printed.stdout.contains(definition), "{}{}", printed.stdout, printed.stderr);
        let ratio = &case["metrics"]["ratio"];
        for field in ["median", "min", "max"] {
            assert!(ratio[field].as_f64() > Some(0.0), "{ratio}");
        }
        assert!(ratio.get("paper").is_some(), "{ratio}");
    }
    for run in case["runs"].as_array().expect("runs") {
        for flow in run["flows"].as_array().expect("flows") {
            assert_eq!(flow["payload_ok"], true, "{flow}");
        }
    }
    assert!(fs::read_to_string(&plot).expect("a plot").starts_with("<svg"));
}

/// Bounds that no run keeps.
fn impossible() -> String {
    EXPERIMENT.replace("min = 0.2, max = 5.0", "min = 700, max = 900")
}

/// An invalid run is due to the machine, and is reported as such.
#[track_caller]
fn is_valid(printed: &CommandOutput) -> bool {
    let is_valid = !printed.stdout.contains("NOT valid");
    assert_eq!(printed.code == 1, !is_valid, "{}{}", printed.stdout, printed.stderr);
    if !is_valid {
        skip("the machine is too busy for a valid run");
    }
    is_valid
}

#[test]
fn short_runs_give_figures_and_no_verdict() {
    if !can_run() {
        return;
    }
    let folder = folder("no-verdict");
    let file =
        written(&folder, &impossible().replace("measured_s = 1.0\nruns", "measured_s = 2.0\nruns"));
    let printed = lab(&format!("run {file} --quick --runs 3"));
    if !is_valid(&printed) {
        return;
    }
    assert_eq!(printed.code, 0, "{}", printed.stdout);
    assert!(
        !printed.stdout.contains("FAILS") && !printed.stdout.contains("NOT"),
        "{}",
        printed.stdout
    );
    let end = "short: valid, figures only: a verdict needs 3 runs of 2 s per case, and there were 3 of 1 s\n";
    assert!(printed.stdout.ends_with(end), "{}", printed.stdout);
}

#[test]
fn what_is_not_reproduced_fails_with_a_code_of_its_own() {
    if !can_run() {
        return;
    }
    let folder = folder("not-reproduced");
    let file = written(&folder, &impossible());
    let json = folder.join("out.json");
    let printed = lab(&format!("run {file} --runs 3 --json {}", json.display()));
    if !is_valid(&printed) {
        return;
    }
    assert_eq!(printed.code, 3, "{}", printed.stdout);
    assert!(printed.stdout.contains("FAILS, 75 %"), "{}", printed.stdout);
    assert!(printed.stdout.contains("short: valid, NOT reproduced\n"), "{}", printed.stdout);
    let report: Value = serde_json::from_slice(&fs::read(&json).expect("figures")).expect("JSON");
    assert_eq!(report["outcome"], "not-reproduced");
    assert_eq!(report["cases"][0]["verdicts"][0]["judgement"], "fails");
    assert_eq!(report["cases"][0]["metrics"]["ratio"]["reach"]["certainty"], 0.75);
}

#[test]
fn a_run_ends_with_what_it_shows_in_short() {
    if !can_run() {
        return;
    }
    let folder = folder("in-short");
    let more = "[[cases]]\nname = \"without\"\ngoodput_floor = 0.5\n[in_short]\nmetric = \"ratio\"\n\
                text = \"It was {problem}, it is {cure}.\"\nproblem = { case = \"without\" }\n\
                cure = { case = \"with\", min = 700 }\n[plot]";
    let file = written(&folder, &EXPERIMENT.replace("[plot]", more));
    let printed = lab(&format!("run {file} --quick"));
    if !is_valid(&printed) {
        return;
    }
    let last = printed.stdout.lines().last().expect("a line");
    let [was, is] = ["without", "with"].map(|case| {
        let mut rows =
            printed.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let row = rows.find(|row| row.first() == Some(&case)).expect("a row");
        row[2].parse::<f64>().expect("a median") * 100.0
    });
    let figures: Vec<f64> = last
        .split(" %")
        .filter_map(|part| part.rsplit(' ').next().and_then(|word| word.parse().ok()))
        .collect();
    assert!((figures[0] - was).abs() < 0.6 && (figures[1] - is).abs() < 0.6, "{}", printed.stdout);
    let end = "The cure did NOT show: 'with' should be at least 70000 %.";
    assert!(last.starts_with("It was ") && last.ends_with(end), "{last}");
    let one = lab(&format!("run {file} --quick --case with"));
    assert!(!one.stdout.contains("It was "), "{}", one.stdout);
}

/// With a command that only prints what a run could print.
#[test]
fn verifying_distinguishes_outcomes() {
    let folder = folder("verify");
    let verify = |part: &str, outcome: &str, status: u8| {
        let printed = format!(
            "#!/bin/sh\ncase $1 in\nrenew) echo \"$@\"; exit {status} ;;\nrun)\n\
             while [ \"$1\" != --json ]; do shift; done\n\
             [ -z '{outcome}' ] || printf '{{\\n  \"outcome\": \"{outcome}\",\\n}}\\n' > \"$2\"\n\
             exit {status} ;;\nesac\n"
        );
        let stub = folder.join("vcc-lab");
        fs::write(&stub, printed).expect("written");
        fs::set_permissions(&stub, fs::Permissions::from_mode(0o755)).expect("allowed");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/verify.sh");
        let run = Command::new("bash")
            // What else it runs has tests of its own.
            .args([script.as_os_str(), part.as_ref()])
            .env("VCC_LAB", &stub)
            .env("RESULTS", folder.join("results"))
            .env("DATA", folder.join("data"))
            .env("MINUTES", "90")
            .output();
        CommandOutput::from(run.expect("a shell"))
    };
    for (outcome, status, code, expected) in [
        ("reproduced", 0, 0, "vcc-fig11-modern: reproduced\n"),
        ("undecided", 0, 0, "modern: undecided: repeat with more runs: `vcc-lab run vcc-fig11 "),
        ("not-reproduced", 3, 1, "vcc-fig11-modern: NOT reproduced\n"),
        ("not-valid", 1, 1, "vcc-fig11-modern: NOT valid\n"),
        ("", 1, 1, "vcc-fig11-modern: NOT completed\n"),
        ("", 0, 1, "vcc-fig11-modern: NOT completed\n"),
    ] {
        let printed = verify("experiments", outcome, status);
        assert_eq!(printed.code, code, "{outcome}: {}{}", printed.stdout, printed.stderr);
        assert!(printed.stdout.contains(expected), "{outcome}: {}", printed.stdout);
        assert!(printed.stdout.contains("--minutes 90 --except bench-*\n"), "{}", printed.stdout);
    }
    for status in [0, 1, 3] {
        let printed = verify("bench", "", status);
        assert_eq!(printed.code, i32::from(status != 0), "{}{}", printed.stdout, printed.stderr);
        assert!(printed.stdout.contains("--minutes 90 --only bench-*\n"), "{}", printed.stdout);
    }
}

#[test]
fn a_malformed_file_is_named_with_line_and_field() {
    let folder = folder("malformed");
    let file = written(&folder, &EXPERIMENT.replace("delay_us = 250", "dealy_us = 250"));
    let complaint = lab(&format!("run {file}")).complaint(1);
    let line = 1 + EXPERIMENT.lines().position(|line| line.starts_with("delay_us")).unwrap();
    assert!(complaint.contains("short.toml") && complaint.contains("dealy_us"), "{complaint}");
    assert!(complaint.contains(&format!(":{line}")), "{complaint}");
}

#[test]
fn an_interrupted_run_ends_and_leaves_nothing() {
    if !can_run() {
        return;
    }
    let folder = folder("interrupted");
    let file = written(&folder, &EXPERIMENT.replace("measured_s = 1.0", "measured_s = 600.0"));
    let child = command()
        .args(["run", &file])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let pid = child.id();
    // Threads with names of their own: the run is under way.
    let running = || threads(pid).iter().any(|name| name == "traffic");
    for _ in 0..2000 {
        if running() {
            break;
        }
        sleep(Duration::from_millis(10));
    }
    assert!(running(), "the run did not begin");
    // SAFETY: a plain system call, at a child that has not been waited for.
    assert_eq!(unsafe { libc::kill(pid as libc::pid_t, libc::SIGINT) }, 0);
    let printed = CommandOutput::from(child.wait_with_output().expect("ended"));
    assert_eq!(printed.code, 1, "{}", printed.stderr);
    assert!(printed.stderr.contains("interrupted"), "{}", printed.stderr);
    // The namespaces end with this process, which alone held them.
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
}

fn threads(pid: u32) -> Vec<String> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    tasks
        .filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok())
        .map(|name| name.trim().to_owned())
        .collect()
}

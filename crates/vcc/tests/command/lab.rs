use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use vcc_port::testing::{can_attach, skip};

use crate::{Said, command, vcc};

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
    let run = format!("lab run {file} --json {} --plot {}", json.display(), plot.display());
    let said = vcc(&run);
    assert!(said.stdout.contains("ratio"), "{}{}", said.stdout, said.stderr);

    let report: Value = serde_json::from_slice(&fs::read(&json).expect("figures")).expect("JSON");
    assert_eq!(report["experiment"], "short");
    assert_eq!(said.code, i32::from(report["valid"] != true), "{report}");
    assert!(report["reproduced"].is_boolean());
    let case = &report["cases"][0];
    assert_eq!(case["name"], "with");
    // A machine too busy for a valid run says so, and gives no figures.
    if report["valid"] == true {
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

#[test]
fn a_malformed_file_is_named_with_line_and_field() {
    let folder = folder("malformed");
    let file = written(&folder, &EXPERIMENT.replace("delay_us = 250", "dealy_us = 250"));
    let complaint = vcc(&format!("lab run {file}")).complaint(1);
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
        .args(["lab", "run", &file])
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
    let said = Said::from(child.wait_with_output().expect("ended"));
    assert_eq!(said.code, 1, "{}", said.stderr);
    assert!(said.stderr.contains("interrupted"), "{}", said.stderr);
    // Its namespaces, and all in them, were held by nobody but itself.
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
}

fn threads(pid: u32) -> Vec<String> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    tasks
        .filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok())
        .map(|name| name.trim().to_owned())
        .collect()
}

//! `vcc-lab run` with virtual machines that take turns.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use vcc_qemu::{Image, Kernel};
use vcc_testing::{can_attach, eventually, skip};

use crate::command;

const SLICE: &str = "/proc/sys/kernel/sched_rr_timeslice_ms";

/// What the experiments here have in common.
const HEAD: &str = r#"
id = "small"
title = "t"
paper = "p"
[duration]
measured_s = 1
runs = 1
quick = { measured_s = 1, runs = 1 }
"#;

const EXPERIMENT: &str = r#"
[machines]
slice_ms = 20
neighbours = 1
rate_mbps = 1000
rtt_us = 2000
sizes = [20000]
plot = "to_20k_mbps"
[[cases]]
name = "tap"
card = "tap"
[[cases]]
name = "hold"
card = "domain"
options = "--act hold --receive ring"
congestion_control = "flood"
against = "tap"
"#;

const VERDICTS: &str = r#"
[machines]
slice_ms = 20
neighbours = 1
rate_mbps = 100
rtt_us = 200
# Short waits are sampled: fewer bytes have hardly the waits that a verdict needs.
sizes = [1000000]
plot = "ask_6k_by_guest"
[machines.verdicts]
asks = 30
ask_bytes = 6000
peer_window_bytes = 8000
[[cases]]
name = "turns"
card = "tap"
busy = 1
queue_ms = 5
[[cases]]
name = "domain-turns"
card = "domain"
[[cases]]
name = "domain-queue"
card = "domain"
alone = true
queue_ms = 40
"#;

/// With a peer that drops nothing, a guest alone has no timeout.
const COUNTERS: &str = r#"
[machines]
slice_ms = 20
neighbours = 1
rate_mbps = 1000
rtt_us = 200
sizes = [20000]
tcp_counters = true
plot = "from_20k_mbps"
[[cases]]
name = "alone"
card = "tap"
alone = true
tcp = { frto = false, tail_loss_probes = false }
"#;

fn write(directory: &Path, file: &str, tables: &str) {
    fs::write(directory.join(file), [HEAD, tables].concat()).expect("written");
}

fn lab(directory: &Path, file: &str) -> Command {
    let mut command = command();
    command.args(["run", file, "--quick", "--json", "result.json"]);
    command.current_dir(directory).stdin(Stdio::null());
    command
}

fn result(directory: &Path, file: &str) -> Value {
    let output = lab(directory, file).output().expect("the command");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    let result = fs::read(directory.join("result.json")).expect("a result");
    serde_json::from_slice(&result).expect("JSON")
}

/// The processes that it has started.
fn children(process: &Child) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{}/task", process.id())).expect("its threads");
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let lists = tasks.flatten().map(|task| read(task.path().join("children")));
    lists.flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[test]
fn virtual_machines_take_turns_and_leave_nothing_behind() {
    if !can_attach() {
        return;
    }
    if !vcc_qemu::has_qemu() {
        return skip("QEMU is not installed");
    }
    if Image::cached(Kernel::Debian).expect("the script").is_none() {
        return skip("guest/live/build.sh has not been run");
    }
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path(), "small.toml", EXPERIMENT);
    let slice = fs::read_to_string(SLICE).expect("a length");

    let result = self::result(directory.path(), "small.toml");
    for (case, metric) in [(0, "from_20k_mbps"), (1, "from_20k_gain"), (1, "to_20k_gain")] {
        let value = &result["cases"][case]["metrics"][metric]["median"];
        assert!(value.as_f64() > Some(0.0), "{metric}: {result}");
    }
    assert_eq!(fs::read_to_string(SLICE).expect("a length"), slice);
    assert_judged(directory.path());
    write(directory.path(), "counters.toml", COUNTERS);
    let counted = self::result(directory.path(), "counters.toml");
    let metrics = &counted["cases"][0]["metrics"];
    for count in ["timeouts", "spurious", "retransmitted_segs", "stalls", "postponed_timers"] {
        let value = &metrics[format!("from_20k_{count}")]["median"];
        assert!(value.as_f64().is_some_and(|count| count < 1.0), "{count}: {counted}");
    }

    let mut run =
        lab(directory.path(), "small.toml").stdout(Stdio::null()).spawn().expect("the command");
    eventually("a virtual machine boots", || {
        let is_qemu = |process: &String| {
            let name = fs::read_to_string(format!("/proc/{process}/comm"));
            name.is_ok_and(|name| name.starts_with("qemu"))
        };
        let is_set = fs::read_to_string(SLICE).expect("a length").trim() == "20";
        is_set && children(&run).iter().any(is_qemu)
    });
    let started = children(&run);
    // SAFETY: the call takes no pointers, and the process has not been waited for.
    unsafe { libc::kill(run.id() as libc::pid_t, libc::SIGTERM) };
    assert!(!run.wait().expect("its end").success());
    // The kernel ends those that the run was starting with it, a moment later.
    eventually("its processes are gone", || {
        started.iter().all(|process| !Path::new("/proc").join(process).exists())
    });
    assert_eq!(fs::read_to_string(SLICE).expect("a length"), slice);
}

/// Each connection is reported to wait for one of four, and the guest's CPU to do one of three.
fn assert_judged(directory: &Path) {
    write(directory, "verdicts.toml", VERDICTS);
    let result = result(directory, "verdicts.toml");
    for case in [0, 1, 2] {
        assert_complete(&result["cases"][case]["metrics"]);
    }
    // Behind `vcc domain`, a guest takes turns, and one of its own core is beside a queue. On a busy
    // machine the other may have its part in it.
    for (case, by) in [(1, "guest"), (2, "fabric")] {
        for kind in ["ask_6k", "from_1m"] {
            let share =
                |by| result["cases"][case]["metrics"][format!("{kind}_by_{by}")]["median"].as_f64();
            let shares = share(by).zip(share("both"));
            assert!(shares.is_some_and(|(by, both)| by + both > 0.5), "{kind} by {by}: {result}");
        }
    }
}

fn assert_complete(metrics: &Value) {
    let of = |name: &str| {
        metrics[name]["median"].as_f64().unwrap_or_else(|| panic!("{name}: {metrics}"))
    };
    let by = |kind: &str| {
        let names = ["guest", "fabric", "both", "neither"].map(|by| format!("{kind}_by_{by}"));
        names.iter().map(|name| of(name)).sum::<f64>()
    };
    let cpu: f64 = ["cpu_waiting", "cpu_running", "cpu_idle"].map(of).iter().sum();
    for (what, sum) in [("from", by("from_1m")), ("ask", by("ask_6k")), ("cpu", cpu)] {
        assert!((sum - 1.0).abs() < 1e-9, "{what}: {sum}");
    }
    assert!(of("ask_6k_guest_us") > 0.0 && of("ask_6k_fabric_us") > 0.0, "{metrics}");
}

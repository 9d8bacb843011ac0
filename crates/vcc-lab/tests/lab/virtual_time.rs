//! The lab's second backend: guests that are kernels of their own, in virtual time.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use vcc_testing::can_attach;

use crate::runs::{EXPERIMENT, folder, written};
use crate::{CommandOutput, command, lab};

/// The report of a run of the short experiment.
fn run(folder: &Path, file: &str, arguments: &str) -> Value {
    let json = folder.join("out.json");
    let json = json.display();
    let printed = lab(&format!("run {file} --backend virtual {arguments} --json {json}"));
    assert_eq!(printed.code, 0, "{}{}", printed.stdout, printed.stderr);
    serde_json::from_slice(&fs::read(json.to_string()).expect("figures")).expect("JSON")
}

fn frame_log(report: &Value) -> [&Value; 2] {
    let run = &report["cases"][0]["runs"][0];
    [&run["frame_log_frames"], &run["frame_log_hash"]]
}

#[test]
fn equal_seeds_give_equal_frames() {
    if !can_attach() {
        return;
    }
    let folder = folder("virtual");
    let file = written(&folder, EXPERIMENT);
    let report = run(&folder, &file, "");
    // One seed is no sample of others.
    assert_eq!((&report["valid"], &report["outcome"]), (&true.into(), &"figures-only".into()));
    assert_eq!(report["backend"], "virtual");
    let vcc = &report["cases"][0]["runs"][0]["vcc"][0];
    assert!(vcc["reductions"].as_u64() > Some(0), "{vcc}");
    let [frames, hash] = frame_log(&report);
    assert!(frames.as_u64() > Some(1000) && hash.is_string(), "{frames} {hash}");
    assert_eq!([frames, hash], frame_log(&run(&folder, &file, "")));
    assert_ne!(hash, frame_log(&run(&folder, &file, "--seed 2"))[1]);
}

#[test]
fn runs_at_once_give_the_frames_of_runs_one_by_one() {
    if !can_attach() {
        return;
    }
    let folder = folder("virtual-jobs");
    let file = written(&folder, EXPERIMENT);
    let frames = |jobs: u32| -> Vec<(u64, String)> {
        let report = run(&folder, &file, &format!("--runs 3 --jobs {jobs}"));
        let runs = report["cases"][0]["runs"].as_array().expect("runs");
        let frames = runs.iter().map(|run| {
            let hash = run["frame_log_hash"].as_str().expect("a hash");
            (run["seed"].as_u64().expect("a seed"), hash.to_owned())
        });
        frames.collect()
    };
    let one_by_one = frames(1);
    assert!(one_by_one.iter().map(|(seed, _)| *seed).eq(1..=3));
    assert_eq!(one_by_one, frames(2));
}

#[test]
fn guests_of_ipv6_with_jumbo_frames_send_as_those_of_ipv4() {
    if !can_attach() {
        return;
    }
    let folder = folder("virtual-ipv6");
    let jumbo = EXPERIMENT.replace("rate_mbps = 20", "rate_mbps = 1000\nmtu_bytes = 9000");
    let jumbo = jumbo.replace("delay_us = 250", "delay_us = 25");
    let file = written(&folder, &jumbo.replace("[network]", "family = \"ipv6\"\n[network]"));
    let report = run(&folder, &file, "");
    assert_eq!(report["valid"], true, "{report}");
    let link = &report["cases"][0]["runs"][0]["links"];
    let link = link.as_array().expect("links").iter().find(|link| link["name"] == "bottleneck");
    let [packets, bytes] = ["packets", "bytes"].map(|name| link.expect("one")[name].as_f64());
    assert!(bytes.zip(packets).is_some_and(|(bytes, packets)| bytes / packets > 8000.0));
}

/// The hypervisor limits one guest, and its own route another, like in the live lab.
#[test]
fn guests_are_held_to_their_limits() {
    if !can_attach() {
        return;
    }
    let folder = folder("virtual-limits");
    let limited = EXPERIMENT
        .replace("ecn = true", "ecn = true\nrate_limit_mbps = 2")
        .replace("ecn = false", "ecn = false\ncwnd_clamp_segs = 4");
    let observed = "[observe]\nwindows_every_us = 10000\n[[metrics]]\nname = \"window\"\n\
        measure = \"window_mean_segs\"\nof = \"legacy\"\ntext = \"w\"\n[[cases]]";
    let file = written(&folder, &limited.replacen("[[cases]]", observed, 1));
    let report = run(&folder, &file, "");
    let run = &report["cases"][0]["runs"][0];
    let window_segs = run["metrics"]["window"].as_f64();
    assert!(window_segs.is_some_and(|segs| segs > 1.0 && segs <= 4.0), "{window_segs:?}");
    let goodput_bps = run["flows"][0]["goodput_bps"].as_f64();
    assert!(goodput_bps.is_some_and(|bps| bps > 1.8e6 && bps < 2.0e6), "{goodput_bps:?}");
}

#[test]
fn missing_abilities_of_a_backend_are_reported_before_anything_runs() {
    if !can_attach() {
        return;
    }
    let folder = folder("backends");
    let proxied = EXPERIMENT.replace("guests.legacy.vcc.mode", "guests.legacy.proxy = \"reno\"\n#");
    let file = written(&folder, &proxied);
    let complaint = lab(&format!("run {file} --backend virtual")).complaint(1);
    assert!(complaint.contains("virtual backend does not support TCP proxies"), "{complaint}");
    let file = written(&folder, &EXPERIMENT.replace("rate_mbps = 20", "rate_mbps = 10000"));
    let complaint = lab(&format!("run {file}")).complaint(1);
    assert!(complaint.contains("run it with --backend virtual"), "{complaint}");
    let cores = "[cores.c]\nscheduler = \"credit\"\n[receivers]\nvcpu.core = \"c\"\n[duration]";
    let file = written(&folder, &EXPERIMENT.replace("[duration]", cores));
    let complaint = lab(&format!("run {file}")).complaint(1);
    assert!(complaint.contains("cores that guests share need virtual time"), "{complaint}");
    let file = written(&folder, EXPERIMENT);
    let complaint = lab(&format!("run {file} --jobs 2")).complaint(1);
    assert!(complaint.contains("several runs at once need virtual time"), "{complaint}");
    let complaint = lab("run acdc-fig11 --backend virtual").complaint(1);
    assert!(complaint.contains("wire without a network"), "{complaint}");
}

#[test]
fn a_temporary_folder_that_is_too_deep_is_reported() {
    if !can_attach() {
        return;
    }
    let folder = folder("virtual-deep");
    let deep = folder.join("d".repeat(100));
    fs::create_dir_all(&deep).expect("a folder");
    let file = written(&folder, EXPERIMENT);
    let run = command().args(["run", &file, "--backend", "virtual"]).env("TMPDIR", &deep).output();
    let printed = CommandOutput::from(run.expect("the command"));
    assert_eq!(printed.code, 1);
    assert!(printed.stderr.contains("set TMPDIR to a shorter one"), "{}", printed.stderr);
    let left = fs::read_dir(&deep).expect("a folder").count();
    assert_eq!(left, 0, "files that outlive the run");
}

/// The soft limit is raised; the hard one is the operator's.
#[test]
fn as_many_files_as_guests_need_are_made_room_for() {
    if !can_attach() {
        return;
    }
    let folder = folder("virtual-files");
    let file = written(&folder, EXPERIMENT);
    let limited = |limit: &str| {
        let run = format!("ulimit {limit}; exec \"$0\" run {file} --backend virtual");
        let run = Command::new("sh").arg("-c").arg(run).arg(env!("CARGO_BIN_EXE_vcc-lab")).output();
        CommandOutput::from(run.expect("a shell"))
    };
    let printed = limited("-S -n 40");
    assert_eq!(printed.code, 0, "{}", printed.stderr);
    let printed = limited("-n 40");
    assert_eq!(printed.code, 1, "{}", printed.stdout);
    assert!(printed.stderr.contains("3 guests need 88 open files"), "{}", printed.stderr);
}

/// Ended with the test, however that ends.
struct LongRun(Option<Child>);

impl LongRun {
    fn take(mut self) -> Child {
        self.0.take().expect("a run")
    }
}

impl Drop for LongRun {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Two long runs at once, with their temporary files in a folder of their own.
fn long_run(folder: &Path) -> Child {
    let file = written(folder, &EXPERIMENT.replace("measured_s = 1.0", "measured_s = 600.0"));
    let child = command()
        .args(["run", &file, "--backend", "virtual", "--runs", "2", "--jobs", "2"])
        .env("TMPDIR", folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let run = LongRun(Some(child));
    // Three guests each, and each has a process before it that waits for its end.
    assert!(eventually(|| guests_in(folder) >= 12), "the guests did not start");
    run.take()
}

fn eventually(condition: impl Fn() -> bool) -> bool {
    // A kernel may have to be built first.
    (0..60_000).any(|_| {
        sleep(Duration::from_millis(10));
        condition()
    })
}

/// Processes that run in a folder or below it.
fn guests_in(folder: &Path) -> usize {
    let processes = fs::read_dir("/proc").expect("processes").flatten();
    let directories =
        processes.filter_map(|process| fs::read_link(process.path().join("cwd")).ok());
    directories.filter(|directory| directory.starts_with(folder)).count()
}

#[test]
fn an_interrupted_run_leaves_no_guest_and_no_file() {
    if !can_attach() {
        return;
    }
    let folder = folder("virtual-interrupted");
    let child = long_run(&folder);
    // SAFETY: a plain system call, at a child that has not been waited for.
    assert_eq!(unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) }, 0);
    let printed = CommandOutput::from(child.wait_with_output().expect("ended"));
    assert_eq!(printed.code, 1, "{}", printed.stderr);
    assert!(printed.stderr.contains("interrupted"), "{}", printed.stderr);
    assert!(eventually(|| guests_in(&folder) == 0), "guests that outlive their run");
    let left: Vec<_> = fs::read_dir(&folder).expect("a folder").flatten().collect();
    let names: Vec<_> = left.iter().map(|entry| entry.file_name()).collect();
    assert_eq!(names, ["short.toml"]);
}

#[test]
fn guests_do_not_outlive_a_run_that_is_killed() {
    if !can_attach() {
        return;
    }
    let folder = folder("virtual-killed");
    let mut child = long_run(&folder);
    child.kill().expect("killed");
    child.wait().expect("ended");
    assert!(eventually(|| guests_in(&folder) == 0), "guests that outlive their run");
    let runs = || {
        let entries = fs::read_dir(&folder).expect("a folder").flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("vcc-guests.")).count()
    };
    assert_eq!(runs(), 2, "nobody could remove them");
    let file = written(&folder, EXPERIMENT);
    let mut next = command();
    next.args(["run", &file, "--backend", "virtual"]).env("TMPDIR", &folder);
    let printed = CommandOutput::from(next.output().expect("the command"));
    assert_eq!((printed.code, runs()), (0, 0), "{}", printed.stderr);
}

//! `vcc-lab renew`: benchmarks that run in memory, in a checkout that has only their records.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use vcc_testing::can_attach;

use crate::runs::folder;
use crate::{CommandOutput, command};

const DOMAIN: &str = "results/data/bench-domain.json";

fn in_checkout(root: &Path, arguments: &str) -> CommandOutput {
    let arguments = arguments.split_whitespace();
    command().current_dir(root).args(arguments).output().expect("the command").into()
}

/// A checkout without records, and with this README.
fn empty_checkout(name: &str, readme: &str) -> PathBuf {
    let root = folder(name);
    for directory in ["results/data", "docs/results"] {
        fs::create_dir_all(root.join(directory)).expect("a folder");
    }
    fs::write(root.join("README.md"), readme).expect("written");
    root
}

/// A checkout that has a short benchmark's record, whose JSON is changed.
fn checkout(name: &str, change: impl FnOnce(&mut Value)) -> PathBuf {
    let root = empty_checkout(name, "<!-- measured: bench domain -->\n<!-- /measured -->\n");
    in_checkout(&root, &format!("bench domain --repeat 1 --json {DOMAIN}")).well();
    let mut record = json(&root);
    change(&mut record);
    fs::write(root.join(DOMAIN), record.to_string()).expect("written");
    root
}

fn json(root: &Path) -> Value {
    serde_json::from_slice(&fs::read(root.join(DOMAIN)).expect("a record")).expect("JSON")
}

/// The row of the benchmark.
fn state(root: &Path) -> String {
    let list = in_checkout(root, "renew --list --only bench-domain").well();
    list.lines().nth(1).expect("a row").to_owned()
}

#[test]
fn what_is_stale_is_measured_again_and_then_current() {
    let root = checkout("renew", |record| {
        assert!(record["sources"]["vcc-domain"].is_string() && record["wall_s"].is_number());
        record["sources"]["vcc-domain"] = "0123456789ab".into();
        record["finished_unix_s"] = 1.into();
    });
    assert!(state(&root).ends_with(" stale (vcc-domain)"), "{}", state(&root));
    let printed = in_checkout(&root, "renew --only bench-domain").well();
    assert!(printed.contains("renewing: bench-domain: stale (vcc-domain);"), "{printed}");
    assert!(printed.ends_with("renewed: 1; left to renew: nothing\n"), "{printed}");
    assert!(state(&root).ends_with(" current"), "{}", state(&root));
    let record = json(&root);
    assert!(record["finished_unix_s"].as_u64() > Some(1), "{record}");
    let page = fs::read_to_string(root.join("README.md")).expect("a page");
    assert!(page.contains("`vcc-lab bench domain --repeat 1`"), "as it was measured: {page}");
    let printed = in_checkout(&root, "renew --only bench-domain").well();
    assert!(printed.ends_with("renewed: 0; left to renew: nothing\n"), "{printed}");
}

/// The standard output of a success; the other has the progress of runs.
fn ended(output: CommandOutput) -> String {
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    output.stdout
}

/// An experiment in virtual time whose runs are short.
const VIRTUAL: &str = "pvtcp-fig9";

#[test]
fn equal_first_runs_confirm_a_record_and_others_do_not() {
    if !can_attach() {
        return;
    }
    let root = empty_checkout("renew-confirmed", "");
    ended(in_checkout(&root, &format!("run {VIRTUAL} --runs 1 --record")));
    let path = root.join(format!("results/data/{VIRTUAL}.json"));
    let read =
        || -> Value { serde_json::from_slice(&fs::read(&path).expect("a record")).expect("JSON") };
    let renewed = |change: &dyn Fn(&mut Value)| {
        let mut record = read();
        change(&mut record);
        fs::write(&path, record.to_string()).expect("written");
        ended(in_checkout(&root, &format!("renew --only {VIRTUAL}")))
    };
    let measured = read();
    assert!(measured["fingerprints"].as_object().is_some_and(|all| all.len() == 5), "{measured}");

    let printed = renewed(&|record| record["sources"]["vcc-domain"] = "0123456789ab".into());
    assert!(printed.contains("repeating: pvtcp-fig9: stale (vcc-domain);"), "{printed}");
    assert!(printed.ends_with("renewed: 1; left to renew: nothing\n"), "{printed}");
    let mut confirmed = read();
    let by = confirmed.as_object_mut().expect("an object").remove("confirmed").expect("confirmed");
    assert_eq!(by["vcc_version"], measured["vcc_version"]);
    assert_eq!(confirmed, measured, "the rest is as it was measured");
    let page = fs::read_to_string(root.join(format!("docs/results/{VIRTUAL}.md"))).expect("a page");
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        page.contains("The first run of each case was the same, in its frames and figures,"),
        "{page}"
    );

    let printed = renewed(&|record| {
        record["sources"]["vcc-domain"] = "0123456789ab".into();
        record["fingerprints"]["tcp-1-1"] = "0123456789ab".into();
    });
    let why =
        "pvtcp-fig9: not confirmed, so all runs are measured: the first runs of tcp-1-1 differ\n";
    assert!(
        printed.contains(why) && printed.contains("\nrenewing: pvtcp-fig9: stale"),
        "{printed}"
    );
    let again = read();
    assert_eq!(again["fingerprints"], measured["fingerprints"]);
    assert!(again.get("confirmed").is_none(), "{again}");
}

#[test]
fn what_is_interrupted_is_measured_by_the_next_call() {
    let root = checkout("renew-interrupted", |record| {
        record["sources"]["engine"] = "0123456789ab".into();
        record["command"] = "vcc-lab bench domain --repeat 100000".into();
    });
    let renewal = command()
        .current_dir(&root)
        .args(["renew", "--only", "bench-domain"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let children = format!("/proc/{0}/task/{0}/children", renewal.id());
    let child = (0..1000).find_map(|_| {
        sleep(Duration::from_millis(10));
        let pid = fs::read_to_string(&children).ok()?.trim().to_owned();
        // Between fork and exec it has the command line of the renewal.
        let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
        command.contains("100000").then_some(pid)
    });
    let child = child.expect("a measurement under way");
    // SAFETY: a plain system call, at a child that has not been waited for.
    assert_eq!(unsafe { libc::kill(renewal.id() as libc::pid_t, libc::SIGTERM) }, 0);
    let printed = CommandOutput::from(renewal.wait_with_output().expect("ended"));
    assert_eq!(printed.code, 1, "{}", printed.stdout);
    let said = "interrupted: `vcc-lab renew` continues with bench-domain";
    assert!(printed.stderr.contains(said), "{}", printed.stderr);
    assert!(!Path::new(&format!("/proc/{child}")).exists(), "the measurement outlives its renewal");
    assert!(state(&root).ends_with(" stale (engine)"), "{}", state(&root));
    let shorter = fs::read_to_string(root.join(DOMAIN)).expect("a record").replace("100000", "1");
    fs::write(root.join(DOMAIN), shorter).expect("written");
    let printed = in_checkout(&root, "renew --only bench-domain").well();
    assert!(printed.ends_with("renewed: 1; left to renew: nothing\n"), "{printed}");
}

#[test]
fn what_does_not_fit_or_cannot_be_measured_is_left() {
    let root = checkout("renew-left", |record| {
        record.as_object_mut().expect("an object").remove("sources");
        record["wall_s"] = 120.into();
    });
    let row = state(&root);
    assert!(row.ends_with("2 min  stale (of an older version, without sources)"), "{row}");
    let printed = in_checkout(&root, "renew --only bench-domain --minutes 1").well();
    assert!(printed.ends_with("renewed: 0; left to renew: 1, in 2 min\n"), "{printed}");
    let mut record = json(&root);
    record["command"] = "vcc-lab bench domain --repeat 0".into();
    fs::write(root.join(DOMAIN), record.to_string()).expect("written");
    let printed = in_checkout(&root, "renew --only bench-domain");
    assert_eq!(printed.code, 1, "{}", printed.stdout);
    let why =
        "bench-domain: not renewed: `vcc-lab bench domain --repeat 0` ended with exit status: 2";
    assert!(printed.stderr.contains(why), "{}", printed.stderr);
}

#[test]
fn where_and_what_there_is_to_renew_is_checked() {
    let complaint = in_checkout(&folder("renew-nowhere"), "renew --list").complaint(1);
    assert!(complaint.contains("there is no results/data here"), "{complaint}");
    let root = checkout("renew-names", |_| {});
    let complaint = in_checkout(&root, "renew --only vcc-fig99").complaint(1);
    assert!(complaint.contains("no benchmark 'vcc-fig99'"), "{complaint}");
    let list = in_checkout(&root, "renew --list").well();
    let row = |name: &str| list.lines().find(|line| line.starts_with(name)).expect("a row");
    assert!(row("vcc-fig11 ").ends_with("never run") && row("vcc-fig11 ").contains("at least"));
    let list = in_checkout(&root, "renew --list --virtual --except vcc-fig11-*").well();
    assert!(list.contains("\nacdc-fig19 ") && !list.contains("bench-"), "{list}");
    assert!(!list.contains("\nvcc-fig11-1g ") && !list.contains("\nvcc-fig11 "), "{list}");
}

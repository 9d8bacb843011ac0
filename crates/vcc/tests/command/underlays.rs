//! `vcc underlay`, under connections of real TCP stacks.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;
use vcc_port::Port;
use vcc_testing::{guest, on_a_host};

use crate::daemon::Place;
use crate::wire::{connect, exchange};
use crate::{CommandOutput, command, vcc};

/// A directory with gentle.h, the example of docs/congestion-control.md.
struct Gentle(TempDir);

impl Gentle {
    fn new() -> Self {
        let directory = Self(tempfile::tempdir().expect("a directory"));
        directory.write(|it| it);
        directory
    }

    /// The example with a change in it.
    fn write(&self, change: impl Fn(String) -> String) {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/congestion-control.md");
        let page = fs::read_to_string(page).expect("the page");
        let example = page.split("```c\n").nth(1).expect("C").split("```").next().expect("its end");
        fs::write(self.path("gentle.h"), change(example.to_owned())).expect("a file");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn underlay(&self, arguments: &str) -> CommandOutput {
        let mut command = command();
        command.current_dir(self.0.path()).arg("underlay").args(arguments.split_whitespace());
        command.output().expect("the command").into()
    }

    fn build(&self) {
        self.underlay("build gentle.h").well();
    }
}

/// The underlay and the window of the only connection.
fn connection() -> (String, u64) {
    let flows: Value = serde_json::from_str(&vcc("flows --json").well()).expect("JSON");
    let [flow] = &flows.as_array().expect("an array")[..] else {
        panic!("one connection: {flows}")
    };
    let underlay = flow["underlay"].as_str().expect("a name").to_owned();
    (underlay, flow["cwnd_segs"].as_u64().expect("a window"))
}

#[test]
fn a_connection_continues_under_each_version_and_without_any() {
    on_a_host(|| {
        let guest = guest();
        let gentle = Gentle::new();
        let printed = gentle.underlay("build gentle.h").well();
        assert!(printed.starts_with("gentle: Reno with a reduction by an eighth ("), "{printed}");
        assert!(printed.contains("7 deliberate faults detected"), "{printed}");
        assert_eq!(gentle.underlay("load gentle.o").well(), "gentle: loaded\n");
        let again = gentle.underlay("load gentle.o").well();
        assert_eq!(again, "gentle: is loaded already, in this version\n");
        let listed = gentle.underlay("list").well();
        let line = listed.lines().last().expect("a line");
        assert_eq!(
            line.split_whitespace().take(3).collect::<Vec<_>>(),
            ["gentle", "loaded", "Reno"]
        );

        vcc("attach port --underlay gentle").well();
        let (mut one, mut other) = connect(&guest);
        exchange(&mut one, &mut other);
        let (underlay, cwnd_segs) = connection();
        assert_eq!(underlay, "gentle");

        gentle.write(|it| it.replace("cwnd_segs / 8", "cwnd_segs / 4"));
        gentle.build();
        let replaced = gentle.underlay("load gentle.o").well();
        assert_eq!(replaced, "gentle: replaced; 1 connection continues with this version\n");
        assert_eq!(connection(), ("gentle".to_owned(), cwnd_segs));
        exchange(&mut one, &mut other);

        let (_, cwnd_segs) = connection();
        let unloaded = gentle.underlay("unload gentle").well();
        let expected =
            "gentle: unloaded; 1 connection, 0 rules and 1 port continue with reno-ecn\n";
        assert_eq!(unloaded, expected);
        assert_eq!(connection(), ("reno-ecn".to_owned(), cwnd_segs));
        exchange(&mut one, &mut other);
        let ports = vcc("ports").well();
        assert!(ports.starts_with("port: reno-ecn, enforce, 1 of 65536 connections\n"), "{ports}");
        let refused = vcc("attach port --underlay gentle").complaint(2);
        assert!(refused.starts_with("invalid value 'gentle' for '--underlay <NAME>'"), "{refused}");
        vcc("detach --now port").well();
        assert!(!Path::new("/sys/fs/bpf/vcc/underlays").exists(), "nothing is left of it");
    });
}

/// While programs are replaced, some segments meet those before and some those behind.
#[test]
fn transfers_continue_while_underlays_come_and_go() {
    on_a_host(|| {
        let guest = guest();
        let gentle = Gentle::new();
        gentle.build();
        gentle.underlay("load gentle.o").well();
        vcc("attach port --underlay gentle").well();
        let (mut one, mut other) = connect(&guest);
        std::thread::scope(|scope| {
            let transfer = scope.spawn(|| {
                for _ in 0..100 {
                    exchange(&mut one, &mut other);
                }
            });
            for eighths in [2, 3] {
                gentle
                    .write(|it| it.replace("cwnd_segs / 8", &format!("cwnd_segs * {eighths} / 8")));
                gentle.build();
                gentle.underlay("load gentle.o").well();
            }
            gentle.underlay("unload gentle --to dctcp").well();
            transfer.join().expect("a transfer");
        });
        assert_eq!(connection().0, "dctcp");
        let port = Port::open("port").expect("open");
        assert_eq!(port.counters().expect("counters").get(vcc_port::counters::UNKNOWN), 0);
    });
}

#[test]
fn what_the_verifier_refuses_changes_nothing() {
    on_a_host(|| {
        let guest = guest();
        let gentle = Gentle::new();
        gentle.build();
        gentle.underlay("load gentle.o").well();
        vcc("attach port --underlay gentle").well();
        let (mut one, mut other) = connect(&guest);
        // No check meets this very moment; the verifier follows every path.
        gentle.write(|it| {
            let reach = "\tif (ack->now_us == 123456789 && ack->srtt_us == 987654321)\n\
                         \t\tcc->own[ack->mss_bytes] = 1;\n\treno_on_ack(cc, ack);";
            it.replace("\treno_on_ack(cc, ack);", reach)
        });
        gentle.build();
        let refused = gentle.underlay("load gentle.o").complaint(1);
        assert!(refused.starts_with("the verifier of Linux "), "{refused}");
        assert!(refused.contains("_guest with the underlay gentle: "), "{refused}");
        assert!(refused.contains("; the whole log is in /run/vcc/verifier.log"), "{refused}");
        exchange(&mut one, &mut other);
        assert_eq!(connection().0, "gentle");
    });
}

#[test]
fn there_is_room_for_four() {
    on_a_host(|| {
        let gentle = Gentle::new();
        for number in 0..5 {
            gentle.write(|it| it.replace("\"gentle\"", &format!("\"gentle-{number}\"")));
            gentle.build();
            let printed = gentle.underlay("load gentle.o");
            if number < 4 {
                assert_eq!(printed.well(), format!("gentle-{number}: loaded\n"));
            } else {
                let complaint = printed.complaint(1);
                assert!(complaint.starts_with("4 underlays are loaded already"), "{complaint}");
            }
        }
        gentle.underlay("unload gentle-2").well();
        gentle.underlay("load gentle.o").well();
        let complaint = gentle.underlay("unload gentle-2").complaint(1);
        let there = "gentle-0, gentle-1, gentle-4, gentle-3";
        assert_eq!(
            complaint,
            format!("no underlay `gentle-2` is loaded on this host; there are: {there}")
        );
        let complaint = gentle.underlay("unload gentle-1 --to reno").complaint(1);
        assert!(
            complaint.starts_with("connections of `gentle-1` cannot continue under `reno`"),
            "{complaint}"
        );
        assert!(complaint.contains("and has ECN"), "{complaint}");
    });
}

#[test]
fn files_that_are_no_underlay() {
    let gentle = Gentle::new();
    let complaint = gentle.underlay("load gentle.h").complaint(1);
    assert_eq!(complaint, "gentle.h is not an underlay: make one with `vcc underlay build FILE.h`");
    let complaint = gentle.underlay("load none.o").complaint(1);
    assert!(complaint.starts_with("none.o cannot be read: No such file"), "{complaint}");
    let complaint = gentle.underlay("build none.h").complaint(1);
    assert!(complaint.starts_with("none.h: No such file"), "{complaint}");
    gentle.write(|it| {
        it.replace("vcc_max(cc->cwnd_segs - cc->cwnd_segs / 8, RENO_MIN_SSTHRESH_SEGS)", "0")
    });
    let complaint = gentle.underlay("build gentle.h").complaint(1);
    assert!(complaint.starts_with("gentle failed the check: "), "{complaint}");
    let source = fs::read_to_string(gentle.path("gentle.h")).expect("the source");
    let line =
        source.lines().position(|line| line.contains("ssthresh_segs = 0")).expect("a line") + 1;
    let place = format!("gentle.h:{line}: leaves ssthresh_segs at 0");
    assert!(complaint.contains(&place), "{complaint}");
    assert!(!gentle.path("gentle.o").exists(), "an underlay that failed the check is not written");
}

#[test]
fn the_compilers_own_lines_are_printed_with_place_and_caret() {
    let gentle = Gentle::new();
    gentle.write(|it| it.replace("cwnd_segs / 8", "cwnd_segs / eight"));
    let output = gentle.underlay("build gentle.h");
    assert_eq!((output.code, output.stdout.as_str()), (1, ""));
    let lines: Vec<&str> = output.stderr.lines().collect();
    let source = fs::read_to_string(gentle.path("gentle.h")).expect("the source");
    let place = source.lines().position(|line| line.contains("/ eight")).expect("a line") + 1;
    assert!(lines[0].starts_with(&format!("gentle.h:{place}:")), "{}", output.stderr);
    assert!(lines[0].ends_with("error: use of undeclared identifier 'eight'"), "{}", lines[0]);
    assert!(lines[1].contains("cwnd_segs / eight"), "{}", output.stderr);
    assert!(lines[2].trim_start_matches([' ', '|']).starts_with('^'), "{}", output.stderr);
    assert_eq!(lines.last(), Some(&"vcc: the compiler rejects gentle.h"));
    assert!(!output.stderr.contains("underlay.bpf.c"), "{}", output.stderr);
}

#[test]
fn a_hook_need_not_use_its_parameters() {
    let gentle = Gentle::new();
    gentle.write(|it| it.replace("\t(void)cause;\n\t(void)p;\n", ""));
    gentle.build();
}

#[test]
fn a_policy_names_it_and_continues_without_it() {
    on_a_host(|| {
        let gentle = Gentle::new();
        gentle.build();
        gentle.underlay("load gentle.o").well();
        let by = |underlay: &str| {
            format!("[[ports]]\ndevice = \"port*\"\n[default]\nunderlay = \"{underlay}\"\n")
        };
        let place = Place::new("gentle", &by("gentle"));
        let guest = guest();
        let mut daemon = place.run();
        daemon.is_ready();
        let (mut one, mut other) = connect(&guest);
        exchange(&mut one, &mut other);
        assert_eq!(connection().0, "gentle");

        // It outlives the daemon, and the next one adopts it.
        daemon.kill();
        exchange(&mut one, &mut other);
        let daemon = place.run();
        daemon.is_ready();
        assert_eq!(connection().0, "gentle");

        let printed = gentle.underlay("unload gentle");
        assert_eq!(printed.code, 0);
        assert_eq!(
            printed.stdout,
            "gentle: unloaded; 1 connection, 1 rule and 0 ports continue with reno-ecn\n"
        );
        assert!(
            printed.stderr.contains("the policy's file still names `gentle`"),
            "{}",
            printed.stderr
        );
        exchange(&mut one, &mut other);
        assert_eq!(connection().0, "reno-ecn");
        let refused = place.vcc("policy apply");
        assert_eq!(refused.code, 1);
        assert!(refused.stderr.contains("gentle"), "{}", refused.stderr);

        place.write(&by("dctcp"));
        place.vcc("policy apply").well();
        exchange(&mut one, &mut other);
        assert_eq!(connection().0, "dctcp");
    });
}

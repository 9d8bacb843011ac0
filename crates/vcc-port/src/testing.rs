//! For the tests of this project: what they need, and what they leave behind.

use std::fs::OpenOptions;
use std::io::Write;
use std::panic::Location;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;
use std::{env, io, thread};

use crate::{Netns, doctor, namespace};

/// Names the file that a skipped test adds a line to: to cargo it looks passed.
const SKIPPED_TESTS: &str = "VCC_SKIPPED_TESTS";

/// Whether a test that attaches can run here. If not, it is counted as skipped, and the reason
/// is told. A datapath that the verifier refuses is a bug and no such reason.
#[track_caller]
#[must_use]
pub fn can_attach() -> bool {
    static ANSWER: OnceLock<Result<(), String>> = OnceLock::new();
    match ANSWER.get_or_init(doctor::require_attach) {
        Ok(()) => true,
        Err(reason) => {
            skip(reason);
            false
        }
    }
}

/// Counts the calling test as skipped.
#[track_caller]
pub fn skip(reason: &str) {
    let place = Location::caller();
    let line = format!("SKIPPED {}:{}: {reason}\n", place.file(), place.line());
    // Not by the macros, whose output cargo keeps to itself unless the test fails.
    let _ = io::stderr().write_all(line.as_bytes());
    let Some(path) = env::var_os(SKIPPED_TESTS) else { return };
    let file = OpenOptions::new().append(true).create(true).open(path);
    if let Err(e) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
        panic!("${SKIPPED_TESTS}: {e}");
    }
}

/// The kernel finishes some things after the call that asked for them: waits until it holds.
#[track_caller]
pub fn eventually(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..1000 {
        if holds() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("not after ten seconds: {what}");
}

/// Runs `work` on a thread with a network namespace and a /sys/fs/bpf of its own, both gone when
/// it returns. Commands that it starts see the same.
pub fn isolated<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    namespace::on_own_thread(|| {
        namespace::unshare(libc::CLONE_NEWNET | libc::CLONE_NEWNS).expect("own namespaces");
        for mount in ["--make-rprivate /", "-t sysfs sysfs /sys"] {
            run("mount", mount);
        }
        work()
    })
}

/// A test's `work` [`isolated`], on a host where vcc can attach; else the test counts as skipped.
#[track_caller]
pub fn on_a_host(work: impl FnOnce() + Send) {
    if can_attach() {
        isolated(work);
    }
}

/// A guest at 192.0.2.1 in a namespace of its own, wired to the calling thread's, 192.0.2.2, by
/// `port`.
pub fn guest() -> Netns {
    let guest = Netns::create().expect("a namespace");
    ip(&format!("link add port type veth peer name guest netns {}", guest.path()));
    ip("address add 192.0.2.2/24 dev port");
    ip("link set port up");
    let configured = guest.inside(|| {
        ip("address add 192.0.2.1/24 dev guest");
        ip("link set guest up");
    });
    configured.expect("inside");
    guest
}

/// `ip` in the namespace of the calling thread.
pub fn ip(arguments: &str) {
    run("ip", arguments);
}

fn run(program: &str, arguments: &str) {
    let output = Command::new(program)
        .args(arguments.split_whitespace())
        .output()
        .unwrap_or_else(|e| panic!("{program}: {e}"));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments}: {told}");
}

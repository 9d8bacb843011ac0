//! On veth pairs in network namespaces of their own: `port` is the host's end, `guest` the other.

mod around;
mod crafted;
mod foreign;
mod hooks;
mod offloads;
mod queues;
mod switch;

use std::ffi::CStr;
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use libbpf_rs::libbpf_sys;
use vcc_testing::documents::Document;
use vcc_testing::{EndOnDrop, Netns, eventually, guest, ip, on_a_host, skip, tc};

use super::*;
use crate::doctor::probe;
use crate::tcx::Hook;
use crate::{AttachOptions, Error, Port};

const PORT: &str = "port";
const TCX_NEXT: i32 = -1;
const TCX_PASS: i32 = 0;
const WATCH: Duration = Duration::from_millis(200);

fn attach() -> Port {
    Port::attach(PORT, &AttachOptions::default()).expect("an attachment")
}

fn look(device: &str) -> Vec<Finding> {
    findings(device, None).expect("findings")
}

/// Watches while both ends send.
fn watched(guest: &Netns) -> Vec<Finding> {
    let done = AtomicBool::new(false);
    let talk = |from: &str, to: &str| {
        let socket = UdpSocket::bind(from).expect("a socket");
        while !done.load(Ordering::Relaxed) {
            // A port that nobody has opened answers with an error.
            let _ = socket.send_to(b"datagram", to);
            thread::sleep(Duration::from_millis(5));
        }
    };
    thread::scope(|scope| {
        let _end = EndOnDrop(&done);
        scope.spawn(|| talk("192.0.2.2:0", "192.0.2.1:9"));
        scope.spawn(|| guest.inside(|| talk("192.0.2.1:0", "192.0.2.2:9")).expect("inside"));
        findings(PORT, Some(WATCH)).expect("findings")
    })
}

/// The findings of a kind: their severity, and their text.
fn of_kind<'a>(findings: &'a [Finding], kind: &str) -> Vec<(Severity, &'a str)> {
    let found = findings.iter().filter(|finding| finding.kind == kind);
    found.map(|finding| (finding.severity, finding.found.as_str())).collect()
}

#[track_caller]
fn only<'a>(findings: &'a [Finding], kind: &str) -> (Severity, &'a str) {
    let found = of_kind(findings, kind);
    assert_eq!(found.len(), 1, "{kind}: {findings:#?}");
    found[0]
}

/// A program of another application.
fn tcx(hook: Hook, name: &CStr, verdict: i32) -> OwnedFd {
    let program = probe::load_program(libbpf_sys::BPF_PROG_TYPE_SCHED_CLS, name, verdict);
    let ifindex = Device::named(PORT).expect("a device").ifindex;
    probe::attach(&program.expect("a program"), ifindex, hook).expect("an attachment")
}

#[test]
fn a_device_without_neighbours() {
    on_a_host(|| {
        let _guest = guest();
        let findings = look(PORT);
        let kinds: Vec<_> =
            findings.iter().map(|finding| (finding.kind.as_str(), finding.severity)).collect();
        assert_eq!(kinds, [("tcx", Severity::Note), ("tcx", Severity::Note)], "{findings:#?}");
        assert!(findings[0].meaning.contains("would be alone"), "{findings:#?}");
        let _port = attach();
        assert!(look(PORT)[0].found.ends_with("vcc is number 1 of 1"), "{:#?}", look(PORT));
    });
}

#[test]
fn no_device() {
    let error = findings("nowhere", None).expect_err("no device");
    assert!(matches!(error, Error::NoSuchDevice { .. }), "{error}");
}

#[test]
fn the_documentation_has_each_kind_once() {
    let page = Document::new("docs/coexistence.md", "cargo test -p vcc-port --lib coexistence");
    let mut documented: Vec<String> = page
        .text()
        .lines()
        .filter_map(|line| Some(line.strip_prefix("| `")?.split_once("` |")?.0.to_owned()))
        .collect();
    let mut kinds: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
    documented.sort_unstable();
    kinds.sort_unstable();
    assert_eq!(documented, kinds);
}

//! The program as process 1, here of a PID namespace, which powering off ends.

use crate::world::{ADDRESSES, AGENT, idle_alone, namespace, reports, start, start_without_plan};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use vcc_traffic::plan::{PingTimes, Pings};
use vcc_traffic::report::Report;
use vcc_traffic::system::now_ns;

const SECOND_NS: u64 = 1_000_000_000;

/// Runs it with mounts and processes of its own.
fn as_init() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--pid", "--mount", "--fork", AGENT]);
    command
}

#[test]
fn it_mounts_reports_and_powers_off() {
    let Some(guest) = namespace() else { return };
    let start_ns = now_ns() + SECOND_NS;
    let mut plan = idle_alone(start_ns, start_ns + SECOND_NS / 10);
    let times = PingTimes::At { at_ns: vec![start_ns] };
    plan.pings = vec![Pings { number: 0, to: ADDRESSES[0], times }];
    let child = start(&guest, as_init().env("plan", "/dev/stdin"), &plan);
    let (status, reports) = reports(child);
    let [Report::Pings(pings), Report::Tcp(_), Report::Whole { lines: 2 }] = reports.as_slice()
    else {
        panic!("{reports:?}")
    };
    assert_eq!(pings.answers.len(), 1);
    // A PID namespace whose process 1 powers off ends with SIGINT (reboot(2)).
    assert_eq!(status.signal(), Some(libc::SIGINT));
}

#[test]
fn it_powers_off_after_an_error() {
    let Some(guest) = namespace() else { return };
    let child = start_without_plan(&guest, as_init().env_remove("plan"));
    let (status, reports) = reports(child);
    let [Report::Error { problem }] = reports.as_slice() else { panic!("{reports:?}") };
    assert!(problem.contains("no `plan=` on the kernel's command line"), "{problem}");
    assert_eq!(status.signal(), Some(libc::SIGINT));
}

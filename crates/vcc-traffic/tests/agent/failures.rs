//! Failures are reported in words for a person.

use crate::world::{ADDRESSES, AGENT, idle_alone, namespace, reports, start_agent};
use std::process::{Child, Command, Stdio};
use vcc_traffic::Pattern;
use vcc_traffic::plan::{FlowToReceive, FlowToSend, GuestPlan, Listener, Sysctl};
use vcc_traffic::report::Report;
use vcc_traffic::system::now_ns;

const SECOND_NS: u64 = 1_000_000_000;

#[track_caller]
fn problem(child: Child) -> String {
    let (status, reports) = reports(child);
    assert_eq!(status.code(), Some(1), "{status}, {reports:?}");
    match reports.as_slice() {
        [Report::Error { problem }] => problem.clone(),
        other => panic!("{other:?}"),
    }
}

/// The problem that a guest reports whose plan `change` has altered; its measurement window begins
/// in a second.
#[track_caller]
fn problem_with(change: impl FnOnce(&mut GuestPlan)) -> Option<String> {
    let guest = namespace()?;
    let start_ns = now_ns() + SECOND_NS;
    let mut plan = idle_alone(start_ns, start_ns + SECOND_NS / 10);
    change(&mut plan);
    Some(problem(start_agent(&guest, &plan)))
}

fn flow_to_nobody(plan: &GuestPlan, congestion_control: &str) -> FlowToSend {
    FlowToSend {
        flow: 4,
        to: (ADDRESSES[0], 5001).into(),
        from_port: 20_004,
        congestion_control: congestion_control.into(),
        pattern: Pattern::Bulk,
        cwnd_clamp_segs: None,
        seed: 1,
        connects_at_ns: plan.measure.start_ns,
        joins_at_ns: plan.measure.start_ns,
        leaves_at_ns: None,
    }
}

#[test]
fn no_plan() {
    let run = |arguments: &[&str]| {
        let mut command = Command::new(AGENT);
        problem(command.args(arguments).stdout(Stdio::piped()).spawn().unwrap())
    };
    assert!(run(&[]).contains("its path is the only argument"));
    let missing = run(&["/nowhere/plan.json"]);
    assert!(
        missing.starts_with("cannot read the plan /nowhere/plan.json: No such file"),
        "{missing}"
    );
    let other = run(&["/dev/null"]);
    assert!(other.starts_with("the guest's plan /dev/null is none: "), "{other}");
}

#[test]
fn a_congestion_control_that_the_kernel_lacks() {
    const PROBLEM: &str =
        "cannot use the congestion control 'nonesuch' (does this kernel have it?): No such file";
    let listener = Listener { port: 5001, congestion_control: "nonesuch".into() };
    let Some(problem) = problem_with(|plan| plan.listeners.push(listener)) else { return };
    assert!(problem.starts_with(PROBLEM), "{problem}");
    let Some(problem) = problem_with(|plan| plan.sends.push(flow_to_nobody(plan, "nonesuch")))
    else {
        return;
    };
    assert!(problem.starts_with(PROBLEM), "{problem}");
}

#[test]
fn a_peer_that_does_not_listen() {
    let Some(problem) = problem_with(|plan| plan.sends.push(flow_to_nobody(plan, "reno"))) else {
        return;
    };
    let expected = "cannot connect from port 20004 to 10.77.0.1:5001: Connection refused";
    assert!(problem.starts_with(expected), "{problem}");
}

#[test]
fn a_flow_that_does_not_come() {
    let problem = problem_with(|plan| {
        plan.listeners.push(Listener { port: 5001, congestion_control: "reno".into() });
        let (pattern, from_port) = (Pattern::Bulk, 20_004);
        plan.receives.push(FlowToReceive {
            flow: 4,
            port: 5001,
            from_port,
            is_introduced: false,
            pattern,
            seed: 1,
        });
    });
    let Some(problem) = problem else { return };
    assert_eq!(problem, "flow 4: nobody connected from port 20004 to port 5001");
}

#[test]
fn a_flow_that_nobody_knows() {
    let problem = problem_with(|plan| {
        plan.listeners.push(Listener { port: 5001, congestion_control: "reno".into() });
        plan.sends.push(flow_to_nobody(plan, "reno"));
    });
    let Some(problem) = problem else { return };
    assert_eq!(problem, "the guest's plan knows no flow from 10.77.0.1:20004 to port 5001");
}

#[test]
fn a_parameter_that_the_kernel_lacks() {
    let sysctl = Sysctl { path: "net/ipv4/tcp_nonesuch".into(), value: "1".into() };
    let Some(problem) = problem_with(|plan| plan.sysctls.push(sysctl)) else { return };
    let expected = "cannot write '1' to /proc/sys/net/ipv4/tcp_nonesuch: ";
    assert!(problem.starts_with(expected), "{problem}");
}

#[test]
fn a_device_that_is_not_there() {
    let Some(problem) = problem_with(|plan| plan.network.device = "eth7".into()) else { return };
    assert!(problem.contains("eth7") && problem.contains("No such device"), "{problem}");
}

#[test]
fn a_guest_that_is_late() {
    let Some(problem) = problem_with(|plan| plan.measure.start_ns = 1) else { return };
    assert!(problem.starts_with("the guest's plan begins at 1 ns, but the guest was ready at"));
}

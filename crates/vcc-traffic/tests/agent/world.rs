//! Two guests joined by a wire, and what their programs have reported.

use std::io::{ErrorKind, Write};
use std::net::Ipv4Addr;
use std::process::{Child, Command, ExitStatus, Stdio};
use vcc_testing::{Netns, ip, skip};
use vcc_traffic::plan::{GuestPlan, Measure, Neighbour, Network};
use vcc_traffic::report::Report;
use vcc_traffic::requests::RequestsPlan;

pub const AGENT: &str = env!("CARGO_BIN_EXE_vcc-agent");
pub const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(10, 77, 0, 2)];
const MACS: [&str; 2] = ["02:00:00:00:00:01", "02:00:00:00:00:02"];
const PREFIX_BITS: u8 = 16;
/// The rate is limited, so that results do not depend on the machine's speed; the queue holds all
/// that [`BUFFERS`] admit.
const WIRE: &str = "tbf rate 200mbit burst 64kb limit 2mb";

/// A flow's send buffer, so small that the wire drops nothing.
pub const BUFFERS: (&str, &str) = ("net/ipv4/tcp_wmem", "4096 65536 262144");

/// A namespace, unless this user may not make one: then the calling test is skipped.
#[track_caller]
pub fn namespace() -> Option<Netns> {
    match Netns::create() {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            skip("making a network namespace needs root");
            None
        }
        made => Some(made.unwrap()),
    }
}

/// Both have an `eth0`, which is down and has no address.
pub fn joined(guests: [&Netns; 2]) {
    let [first, second] = guests;
    let wired = first.inside(|| {
        let (here, there, path) = (MACS[0], MACS[1], second.path());
        ip(&format!(
            "link add eth0 address {here} type veth peer name eth0 address {there} netns {path}"
        ));
    });
    wired.unwrap();
    for guest in guests {
        let limits = format!("qdisc add dev eth0 root {WIRE}");
        assert!(guest.inside(|| output_of("tc", &limits)).unwrap().is_empty());
    }
}

/// The output of a program, which must succeed.
pub fn output_of(program: &str, arguments: &str) -> String {
    let output = Command::new(program).args(arguments.split_whitespace()).output().unwrap();
    assert!(output.status.success(), "{program} {arguments}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The plan of a guest that does nothing, in a window from here to there.
pub fn idle(guest: usize, start_ns: u64, end_ns: u64) -> GuestPlan {
    let peer = 1 - guest;
    let mac = MACS[peer].split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap());
    let mac: Vec<u8> = mac.collect();
    let neighbour = Neighbour { address: ADDRESSES[peer].into(), mac: mac.try_into().unwrap() };
    GuestPlan {
        network: Network {
            device: "eth0".into(),
            address: ADDRESSES[guest].into(),
            prefix_bits: PREFIX_BITS,
            neighbours: vec![neighbour],
            tso: true,
            initial_window_segs: None,
        },
        sysctls: Vec::new(),
        listeners: Vec::new(),
        sends: Vec::new(),
        workers: Vec::new(),
        requests: RequestsPlan::default(),
        receives: Vec::new(),
        pings: Vec::new(),
        measure: Measure {
            start_ns,
            end_ns,
            phases: 1,
            windows_every_us: None,
            received_every_us: None,
        },
        ends_at_ns: end_ns,
    }
}

/// [`idle`] over the loopback device, which returns every frame.
pub fn idle_alone(start_ns: u64, end_ns: u64) -> GuestPlan {
    let mut plan = idle(0, start_ns, end_ns);
    plan.network.device = "lo".into();
    plan.network.neighbours.clear();
    plan
}

/// Starts a command inside whose standard input is empty. A plan written to a command that
/// ends without reading it fails with EPIPE if the command is faster.
pub fn start_without_plan(guest: &Netns, command: &mut Command) -> Child {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped());
    guest.inside(|| command.spawn()).unwrap().unwrap()
}

/// Starts a command inside that reads the plan from its standard input.
pub fn start(guest: &Netns, command: &mut Command, plan: &GuestPlan) -> Child {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = guest.inside(|| command.spawn()).unwrap().unwrap();
    let text = serde_json::to_vec(plan).unwrap();
    child.stdin.take().unwrap().write_all(&text).unwrap();
    child
}

pub fn start_agent(guest: &Netns, plan: &GuestPlan) -> Child {
    start(guest, Command::new(AGENT).arg("/dev/stdin"), plan)
}

/// The exit status and the reports of the agent, which may print nothing else.
pub fn reports(child: Child) -> (ExitStatus, Vec<Report>) {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let report = |line| Report::from_line(line).expect("a report's prefix").expect("a report");
    (output.status, text.lines().map(report).collect())
}

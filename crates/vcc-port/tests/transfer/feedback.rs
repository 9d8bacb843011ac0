//! Two guests, each behind a port, and a switch between the ports that marks:
//!
//!    guest a - port_a - bridge_a - fabric_a - fabric_b - bridge_b - port_b - guest b
//!
//! Both ends count exactly the marks of the switch, and no guest sees any.

use std::net::TcpStream;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

use vcc_engine::{FlowState, Params, Underlay, sys};
use vcc_policy::TunnelKind;
use vcc_port::{AttachOptions, Netns, Port, counters};
use vcc_testing::{OpenVSwitch, can_attach, ip, isolated, skip};
use vcc_traffic::TcpInfo;

use crate::common::{
    End, configure, ethtool, eventually, exchange, payload, receive, send, set_ecn,
};
use crate::overlay::Overlay;
use crate::watch::{Seen, Watch};

const ON: &str = "tx on tso on gso on gro on";
const OFF: &str = "tx off tso off gso off gro off";
const MARK_ONE_OF: u32 = 5;
/// The counters have 24 bits, and that of ECT(0) starts at 1 (RFC 9768, 3.2.1).
const COUNTER_MASK: u32 = 0xff_ffff;
const ECT0_INITIAL: u32 = 1;
const PAYLOAD_BYTES: usize = 1 << 19;

struct Side {
    guest: Netns,
    host: u8,
    port: Option<Port>,
    /// Segments that arrive at this side's device of the fabric, from the other side.
    fabric: Watch,
    /// Segments that arrive at this guest.
    inside: Watch,
    /// The guest's own.
    _switch: Option<OpenVSwitch>,
}

impl Side {
    fn end(&self) -> End<'_> {
        End { netns: Some(&self.guest), host: self.host }
    }

    fn port(&self) -> &Port {
        self.port.as_ref().expect("attached")
    }

    /// The flow of this end.
    fn flow(&self, here: &TcpStream) -> FlowState {
        let ends = (here.local_addr().expect("an address"), here.peer_addr().expect("an address"));
        let flows = self.port().flows().expect("flows");
        let flow = flows.iter().find(|flow| (flow.guest, flow.peer) == ends);
        flow.expect("the flow is known").state
    }
}

struct Wire {
    sides: [Side; 2],
}

struct Plan {
    guests: &'static str,
    fabric: &'static str,
    /// Whether each side is under vcc.
    vcc: [bool; 2],
    /// net.ipv4.tcp_ecn of the guests.
    ecn: [&'static str; 2],
    overlay: Option<Overlay>,
}

const BOTH: Plan = Plan { guests: ON, fabric: ON, vcc: [true; 2], ecn: ["0"; 2], overlay: None };

fn options() -> AttachOptions {
    let underlay: Underlay = "dctcp".parse().expect("an underlay");
    let params = Params::with(|p| p.underlay = underlay.number());
    AttachOptions {
        inside: TunnelKind::ALL.into_iter().collect(),
        ..AttachOptions::from_params(params)
    }
}

impl Wire {
    fn create(plan: &Plan) -> Self {
        ip("link add fabric_a type veth peer name fabric_b");
        let sides = [("a", 1), ("b", 2)].map(|(name, host)| {
            let guest = Netns::create().expect("a namespace");
            let (port, fabric) = (format!("port_{name}"), format!("fabric_{name}"));
            let bridge = format!("bridge_{name}");
            ip(&format!("link add {port} type veth peer name guest netns {}", guest.path()));
            ip(&format!("link add {bridge} type bridge mcast_snooping 0"));
            for device in [&port, &fabric] {
                ip(&format!("link set {device} master {bridge} up"));
                // Segmentation and checksums that are left to the fabric's device are visible at
                // its far end.
                ethtool(device, if *device == fabric { plan.fabric } else { plan.guests });
            }
            ip(&format!("link set {bridge} up"));
            let index = usize::from(host - 1);
            let inside = guest.inside(|| {
                let (device, switch) = match plan.overlay {
                    None => ("guest", None),
                    Some(overlay) => overlay.create("guest", host),
                };
                configure(device, host);
                for device in ["guest", device] {
                    ethtool(device, plan.guests);
                }
                set_ecn(plan.ecn[index]);
                (Watch::attach(device, 0, false), switch)
            });
            let (inside, switch) = inside.expect("inside");
            Side {
                guest,
                host,
                port: plan.vcc[index].then(|| Port::attach(&port, &options()).expect("attached")),
                fabric: Watch::attach(&fabric, MARK_ONE_OF, plan.fabric == OFF),
                inside,
                _switch: switch,
            }
        });
        Wire { sides }
    }

    fn reset(&self) {
        for side in &self.sides {
            side.fabric.reset();
            side.inside.reset();
        }
    }

    /// The two ends of a connection, in the order of the sides.
    fn connect(&self, v6: bool, opener: usize) -> [TcpStream; 2] {
        let listener = 1 - opener;
        let (one, other) = self.sides[opener].end().connect(&self.sides[listener].end(), v6);
        if opener == 0 { [one, other] } else { [other, one] }
    }

    /// Sides under vcc have translated all segments, and accepted all reports.
    fn assert_counters(&self) {
        for side in self.sides.iter().filter(|side| side.port.is_some()) {
            let counted = side.port().counters().expect("counters");
            for never in [
                counters::MALFORMED,
                counters::BAD_OPTIONS,
                counters::BAD_FLAGS,
                counters::UNKNOWN,
                counters::CONTENDED,
                counters::REWRITE_FAILED,
                counters::POLICED,
                counters::FORGED,
                counters::REPORT_LOST,
            ] {
                assert_eq!(counted.get(never), 0, "{}: {}", side.host, never.meaning);
            }
        }
    }

    /// Segments that passed untranslated because another CPU held their flow's lock.
    fn contended(&self) -> u64 {
        let ports = self.sides.iter().filter_map(|side| side.port.as_ref());
        ports.map(|port| port.counters().expect("counters").get(counters::CONTENDED)).sum()
    }

    fn assert_guests_see_nothing(&self) {
        for side in self.sides.iter().filter(|side| side.port.is_some()) {
            let Seen { ce, ect, ece, cwr, hello, pack, fack, .. } = side.inside.seen();
            let seen = [ce, ect, ece, cwr, hello, pack, fack];
            assert_eq!(seen, [0; 7], "{}: CE, ECT, ECE, CWR, Hello, PACK, FACK", side.host);
        }
    }
}

/// A run that shows nothing about the translation is repeated at most this often.
const RUNS_MAX: u32 = 5;

/// Runs the test. It is repeated if it fails after a segment passed untranslated because the host
/// took the CPU that held its flow's lock away.
fn on_wire(plan: &Plan, test: impl Fn(&mut Wire) + Send + Sync) {
    if !can_attach() {
        return;
    }
    for run in 1..=RUNS_MAX {
        let failed = isolated(|| {
            let mut wire = Wire::create(plan);
            let outcome = catch_unwind(AssertUnwindSafe(|| test(&mut wire)));
            let contended = wire.contended();
            let failed = outcome.err()?;
            if contended == 0 || run == RUNS_MAX {
                resume_unwind(failed);
            }
            Some(contended)
        });
        let Some(contended) = failed else { return };
        eprintln!("run {run} is repeated: {contended} segments passed untranslated");
    }
}

/// The switch's counts toward `receiver`, its port's and those of the other end's reports are
/// equal. Only what the sender sent again may be missing: a duplicate that the guest discards is
/// not counted.
fn assert_reported(wire: &Wire, ends: &[TcpStream; 2], receiver: usize) {
    let sender = 1 - receiver;
    // A report next to data may be delayed. A pure ACK carries it.
    send(&ends[sender], b"?");
    receive(&ends[receiver], b"?");
    eventually("the last report", || {
        let seen = wire.sides[receiver].fabric.seen();
        let passed = [seen.ect_bytes - seen.marked_bytes, seen.marked_bytes];
        let counted = wire.sides[receiver].flow(&ends[receiver]).counted;
        let heard = wire.sides[sender].flow(&ends[sender]).heard;
        let [counted, heard] = [counted, heard].map(|counters| {
            [counters.ect0_bytes.wrapping_sub(ECT0_INITIAL) & COUNTER_MASK, counters.ce_bytes]
        });
        let missing = [0, 1]
            .map(|mark| (passed[mark] as u32 & COUNTER_MASK).wrapping_sub(counted[mark]))
            .map(|bytes| u64::from(bytes & COUNTER_MASK));
        let sent_again_bytes = TcpInfo::read(&ends[sender]).expect("its state").retrans_bytes;
        if missing.iter().sum::<u64>() > sent_again_bytes || counted != heard {
            return Err(format!(
                "ECT(0) and CE bytes: passed {passed:?}, counted {counted:?}, heard {heard:?}; \
                 sent again: {sent_again_bytes}, contended segments: {}",
                wire.contended()
            ));
        }
        Ok(())
    });
}

fn assert_agreed(wire: &Wire, ends: &[TcpStream; 2]) {
    for (side, end) in wire.sides.iter().zip(ends) {
        let state = side.flow(end);
        for flag in [sys::FLOW_ECN_FABRIC, sys::FLOW_FEEDBACK, sys::FLOW_FEEDBACK_HEARD] {
            assert!(state.has(flag), "{}: {flag:#x} of {:#x}", side.host, state.flags);
        }
        for flag in [sys::FLOW_FEEDBACK_LOST, sys::FLOW_UNHEARD] {
            assert!(!state.has(flag), "{}: {flag:#x} of {:#x}", side.host, state.flags);
        }
        assert_eq!(state.forged, 0);
        assert!(state.marks > 0);
    }
}

fn bulk_both_ways(plan: &Plan) {
    on_wire(plan, |wire| {
        let payload = payload(PAYLOAD_BYTES);
        await_overlay(wire);
        for (v6, opener) in [(false, 0), (false, 1), (true, 0), (true, 1)] {
            wire.reset();
            let ends = wire.connect(v6, opener);
            // Until data was in flight in both directions at once.
            eventually("marks and FACKs both ways", || {
                exchange(&ends[0], &ends[1], &payload);
                let seen = [0, 1].map(|receiver| wire.sides[receiver].fabric.seen());
                match seen.iter().all(|seen| seen.marked_bytes > 0 && seen.fack > 0) {
                    true => Ok(()),
                    false => Err(format!("{seen:?}")),
                }
            });
            for receiver in [0, 1] {
                assert_reported(wire, &ends, receiver);
                let Seen { hello, bad_sums, unlike, .. } = wire.sides[receiver].fabric.seen();
                assert_eq!(hello, 1, "one offer and one answer");
                assert_eq!((bad_sums, unlike), (0, 0));
            }
            assert_agreed(wire, &ends);
            wire.assert_guests_see_nothing();
        }
        wire.assert_counters();
    });
}

#[test]
fn two_ends_tell_each_other_of_marks() {
    bulk_both_ways(&BOTH);
}

/// Segmentation and checksums are done behind the port.
#[test]
fn two_ends_without_offloads_in_the_fabric() {
    bulk_both_ways(&Plan { fabric: OFF, ..BOTH });
}

#[test]
fn two_ends_without_offloads_at_the_guests() {
    bulk_both_ways(&Plan { guests: OFF, ..BOTH });
}

#[test]
fn two_ends_without_any_offloads() {
    bulk_both_ways(&Plan { guests: OFF, fabric: OFF, ..BOTH });
}

/// The guests' connections are inside VXLAN, and the switch marks outside. The inner ends know
/// nothing of it, and what each port counts is what was marked.
fn inside_vxlan(fabric: &'static str, overlays: [Overlay; 2]) {
    for overlay in overlays {
        bulk_both_ways(&Plan { guests: OFF, fabric, overlay: Some(overlay), ..BOTH });
    }
}

#[test]
fn inside_vxlan_without_offloads_at_the_guests() {
    inside_vxlan(ON, Overlay::WITH_CHECKSUMS);
}

#[test]
fn inside_vxlan_without_any_offloads() {
    inside_vxlan(OFF, Overlay::WITHOUT_CHECKSUMS);
}

/// Waits until both ends reach each other: who is not there refuses a connection.
fn await_overlay(wire: &Wire) {
    for v6 in [false, true] {
        eventually("the overlay works", || wire.sides[0].end().reaches(&wire.sides[1].end(), v6));
    }
}

/// Kernels may have neither Geneve nor GRE, but Open vSwitch has.
fn inside_a_switchs(kind: &'static str) {
    if !OpenVSwitch::is_installed() {
        return skip("Open vSwitch is not installed");
    }
    let plan = Plan { guests: OFF, overlay: Some(Overlay::Switch(kind)), ..BOTH };
    bulk_both_ways(&plan);
}

#[test]
fn inside_geneve() {
    inside_a_switchs("geneve");
}

#[test]
fn inside_gre() {
    inside_a_switchs("gre");
}

/// The kernel does not let a segment grow that it has put into the tunnel and whose checksum is left
/// to a device: no report is agreed on, and AccECN reports marks.
fn inside_vxlan_with_offloads(fabric: &'static str, overlays: [Overlay; 2]) {
    for overlay in overlays {
        let plan = Plan { fabric, overlay: Some(overlay), ..BOTH };
        on_wire(&plan, |wire| {
            let payload = payload(PAYLOAD_BYTES);
            for (v6, opener) in [(false, 0), (true, 1)] {
                wire.reset();
                let ends = wire.connect(v6, opener);
                eventually("marks both ways", || {
                    exchange(&ends[0], &ends[1], &payload);
                    let marks = [0, 1].map(|receiver: usize| {
                        let state = wire.sides[1 - receiver].flow(&ends[1 - receiver]);
                        let made = wire.sides[receiver].fabric.seen().marked_bytes;
                        (made, state.marks, state.flags)
                    });
                    let all_heard = marks.iter().all(|(made, heard, _)| *made > 0 && *heard > 0);
                    if all_heard { Ok(()) } else { Err(format!("bytes, marks, flags: {marks:x?}")) }
                });
                for (side, end) in wire.sides.iter().zip(&ends) {
                    let Seen { hello, pack, fack, bad_sums, unlike, .. } = side.fabric.seen();
                    assert_eq!([hello, pack, fack, bad_sums, unlike], [0; 5]);
                    let state = side.flow(end);
                    assert!(state.has(sys::FLOW_ECN_FABRIC) && !state.has(sys::FLOW_FEEDBACK));
                    assert!(state.accecn != 0 && state.reductions > 0);
                }
                wire.assert_guests_see_nothing();
            }
            wire.assert_counters();
        });
    }
}

#[test]
fn inside_vxlan_with_all_offloads() {
    inside_vxlan_with_offloads(ON, Overlay::WITHOUT_CHECKSUMS);
}

#[test]
fn inside_vxlan_with_offloads_at_the_guests() {
    inside_vxlan_with_offloads(OFF, Overlay::WITH_CHECKSUMS);
}

/// One way only: the reports come on the receiver's pure ACKs.
#[test]
fn one_way_reports_go_on_acks() {
    on_wire(&Plan { fabric: OFF, ..BOTH }, |wire| {
        let payload = payload(PAYLOAD_BYTES);
        for v6 in [false, true] {
            wire.reset();
            let ends = wire.connect(v6, 0);
            thread::scope(|scope| {
                scope.spawn(|| send(&ends[0], &payload));
                receive(&ends[1], &payload);
            });
            assert_reported(wire, &ends, 1);
            let back = wire.sides[0].fabric.seen();
            assert!(back.pack > 0);
            assert_eq!((back.fack, back.bad_sums), (0, 0));
            wire.assert_guests_see_nothing();
        }
        wire.assert_counters();
    });
}

/// A peer with classic ECN ignores the offer, and its ECE is answered.
#[test]
fn a_peer_with_plain_ecn() {
    let plan = Plan { vcc: [true, false], ecn: ["0", "1"], ..BOTH };
    on_wire(&plan, |wire| {
        let payload = payload(PAYLOAD_BYTES);
        for v6 in [false, true] {
            wire.reset();
            let ends = wire.connect(v6, 0);
            exchange(&ends[0], &ends[1], &payload);
            let state = wire.sides[0].flow(&ends[0]);
            assert!(state.has(sys::FLOW_ECN_FABRIC) && !state.has(sys::FLOW_FEEDBACK));
            assert!(state.marks > 0);
            let (out, back) = (wire.sides[1].fabric.seen(), wire.sides[0].fabric.seen());
            assert_eq!((out.hello, out.pack, out.fack), (1, 0, 0));
            assert_eq!((back.hello, back.pack, back.fack), (0, 0, 0));
            assert!(out.marked_bytes > 0 && back.ece > 0 && out.cwr > 0);
            wire.assert_guests_see_nothing();
        }
        wire.assert_counters();
    });
}

#[test]
fn a_peer_without_ecn() {
    let plan = Plan { vcc: [true, false], ..BOTH };
    on_wire(&plan, |wire| {
        let payload = payload(PAYLOAD_BYTES);
        for v6 in [false, true] {
            wire.reset();
            let ends = wire.connect(v6, 0);
            exchange(&ends[0], &ends[1], &payload);
            let state = wire.sides[0].flow(&ends[0]);
            assert!(!state.has(sys::FLOW_ECN_FABRIC) && !state.has(sys::FLOW_FEEDBACK));
            let out = wire.sides[1].fabric.seen();
            assert_eq!((out.hello, out.pack, out.fack, out.ect_bytes), (1, 0, 0, 0));
            wire.assert_guests_see_nothing();
        }
        wire.assert_counters();
    });
}

/// The connection continues after one end was detached, and the other end no longer expects
/// reports.
#[test]
fn one_end_is_detached() {
    on_wire(&BOTH, |wire| {
        let payload = payload(PAYLOAD_BYTES);
        let ends = wire.connect(false, 0);
        exchange(&ends[0], &ends[1], &payload);
        assert_agreed(wire, &ends);
        wire.sides[0].port.take().expect("attached").detach().expect("detached");
        exchange(&ends[0], &ends[1], &payload);
        let state = wire.sides[1].flow(&ends[1]);
        assert!(state.has(sys::FLOW_FEEDBACK_LOST), "{:#x}", state.flags);
        exchange(&ends[0], &ends[1], &payload);
        wire.assert_counters();
    });
}

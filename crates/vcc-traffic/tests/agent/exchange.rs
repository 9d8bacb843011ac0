//! Flows and pings from one guest to the other.

use crate::world::{ADDRESSES, BUFFERS, idle, joined, namespace, output_of, reports, start_agent};
use vcc_traffic::Pattern;
use vcc_traffic::plan::{
    FlowToReceive, FlowToSend, GuestPlan, Listener, Measure, PingTimes, Pings, Sysctl,
};
use vcc_traffic::report::{PingReport, ReceiverHalf, Report, SenderHalf};
use vcc_traffic::system::now_ns;

const MS: u64 = 1_000_000;
/// For both programs to start, however busy the machine is.
const LEAD_NS: u64 = 2_000 * MS;
/// Time for both to end their windows before one of them is gone.
const TAIL_NS: u64 = 500 * MS;
const PORT: u16 = 5001;
const FIRST_FROM_PORT: u16 = 20_000;
const SEED: u64 = 9;
const BULK: usize = 0;
const PING_PONG: usize = 1;
const PATTERNS: [Pattern; 4] = [Pattern::Bulk, Pattern::PingPong, Pattern::Bulk, Pattern::PingPong];
/// Those from this one on end within the window.
const FIRST_TO_LEAVE: usize = 2;
const PHASES: u32 = 3;
/// By its route, which is that of all flows; the first of them to connect makes it known.
const CLAMPED: usize = BULK;
const CLAMP_SEGS: u32 = 7;
const INITIAL_SEGS: u32 = 3;

/// The sender's and the receiver's.
fn plans(begin_ns: u64) -> [GuestPlan; 2] {
    let (start_ns, end_ns) = (begin_ns + 200 * MS, begin_ns + 1_700 * MS);
    let [mut sender, mut receiver] = [0, 1].map(|guest| idle(guest, start_ns, end_ns));
    for plan in [&mut sender, &mut receiver] {
        let sysctl =
            |(path, value): (&str, &str)| Sysctl { path: path.into(), value: value.into() };
        plan.sysctls = [("net/ipv4/tcp_ecn", "1"), BUFFERS].map(sysctl).into();
        plan.ends_at_ns = end_ns + TAIL_NS;
        plan.measure = Measure {
            phases: PHASES,
            windows_every_us: Some(10_000),
            received_every_us: Some(100_000),
            ..plan.measure
        };
    }
    sender.network.tso = false;
    sender.network.initial_window_segs = Some(INITIAL_SEGS);
    receiver.listeners = vec![Listener { port: PORT, congestion_control: "reno".into() }];
    for (flow, pattern) in PATTERNS.into_iter().enumerate() {
        let from_port = FIRST_FROM_PORT + flow as u16;
        sender.sends.push(FlowToSend {
            flow,
            to: (ADDRESSES[1], PORT).into(),
            from_port,
            congestion_control: "reno".into(),
            pattern,
            cwnd_clamp_segs: (flow == CLAMPED).then_some(CLAMP_SEGS),
            seed: SEED,
            connects_at_ns: begin_ns + flow as u64 * MS,
            joins_at_ns: begin_ns + 100 * MS,
            leaves_at_ns: (flow >= FIRST_TO_LEAVE).then_some(start_ns + 300 * MS),
        });
        let is_introduced = flow == CLAMPED;
        let receive =
            FlowToReceive { flow, port: PORT, from_port, is_introduced, pattern, seed: SEED };
        receiver.receives.push(receive);
    }
    let pings = [
        PingTimes::Every { first_at_ns: start_ns, interval_ns: 20 * MS, count: 10 },
        PingTimes::At { at_ns: vec![start_ns, start_ns + 7 * MS] },
    ];
    let pings = pings.into_iter().enumerate();
    sender.pings =
        pings.map(|(i, times)| Pings { number: 7 + i, to: ADDRESSES[1], times }).collect();
    [sender, receiver]
}

#[test]
fn both_ends_report_flows_and_pings() {
    let Some(first) = namespace() else { return };
    let Some(second) = namespace() else { return };
    joined([&first, &second]);
    let [send, receive] = plans(now_ns() + LEAD_NS);
    let receiver = start_agent(&second, &receive);
    let sender = start_agent(&first, &send);
    let offloads =
        |guest: &vcc_testing::Netns| guest.inside(|| output_of("ethtool", "-k eth0")).unwrap();
    for (child, plan) in [(sender, &send), (receiver, &receive)] {
        let (status, mut reports) = reports(child);
        let last = reports.pop();
        assert_eq!(last, Some(Report::Whole { lines: reports.len() }), "{status}");
        assert!(status.success());
        let Some(Report::Tcp(counters)) = reports.pop() else { panic!("no counters") };
        assert!(counters.get("OutSegs") > 0 && counters.get("ActiveOpens") == 0, "{counters:?}");
        assert_eq!(reports.len(), plan.sends.len() + plan.receives.len() + plan.pings.len());
        for report in &reports {
            match report {
                Report::Sender(half) => check_sender(half, plan),
                Report::Receiver(half) => check_receiver(half),
                Report::Pings(pings) => check_pings(pings, plan),
                other => panic!("{other:?}"),
            }
        }
    }
    let routes = first.inside(|| output_of("ip", "route")).unwrap();
    assert!(
        routes.contains(&format!("cwnd lock {CLAMP_SEGS} initcwnd {INITIAL_SEGS}")),
        "{routes}"
    );
    assert!(offloads(&first).contains("tx-tcp-segmentation: off"));
    assert!(offloads(&first).contains("generic-segmentation-offload: off"));
    assert!(offloads(&second).contains("tx-tcp-segmentation: on"));
}

fn check_sender(half: &SenderHalf, plan: &GuestPlan) {
    let spec = &plan.sends[half.flow];
    assert!(half.connected_at_ns >= spec.connects_at_ns);
    assert!(half.has_ecn && half.payload_ok && half.sent_bytes > 0, "{half:?}");
    assert!(half.responses.is_empty() || spec.pattern == Pattern::PingPong);
    assert!(!half.responses.is_empty() || half.flow != PING_PONG);
    assert!(half.responses.iter().all(|response| response.took_ns > 0));
    assert!(!half.samples.is_empty());
    let is_plausible = |sample: &vcc_traffic::Sample| sample.cwnd_segs > 0 && sample.mss_bytes > 0;
    assert!(half.samples.iter().all(is_plausible));
    let has_room = |sample: &vcc_traffic::Sample| sample.cwnd_segs <= CLAMP_SEGS;
    assert!(half.flow != CLAMPED || half.samples.iter().all(has_room), "{half:?}");
    // When it ends is up to this machine.
    if let Some(finished_at_ns) = half.finished_at_ns {
        assert!(spec.leaves_at_ns.is_some_and(|leaves_at_ns| finished_at_ns >= leaves_at_ns));
    }
}

fn check_receiver(half: &ReceiverHalf) {
    assert!(half.has_ecn && half.payload_ok);
    let bounds = &half.received_at_bounds_bytes;
    assert_eq!(bounds.len(), PHASES as usize + 1);
    assert!(bounds.is_sorted() && bounds[0] < bounds[PHASES as usize], "{bounds:?}");
    assert_eq!(half.received_bytes, bounds[PHASES as usize]);
    assert!(half.received_over_time.is_sorted_by_key(|received| (received.at_us, received.bytes)));
    assert_eq!(half.received_over_time.len(), 15);
    assert!(half.finished_at_ns.is_none() || half.flow >= FIRST_TO_LEAVE);
    if half.flow == BULK {
        assert!(half.received_bytes > 100_000, "it sends all that it can");
    }
}

fn check_pings(report: &PingReport, plan: &GuestPlan) {
    let spec = plan.pings.iter().find(|pings| pings.number == report.number).unwrap();
    assert_eq!(report.sent, spec.times.iter().count() as u64);
    assert!(!report.answers.is_empty());
    for answer in &report.answers {
        assert!(answer.rtt_ns > 0 && answer.sent_at_ns >= plan.measure.start_ns);
    }
}

use super::*;
use crate::result::{Buffered, Pings, made};
use vcc_fabric::{ProbeReport, RttSample};
use vcc_traffic::{Response, Sample, TcpCounters};

fn metric(measure: &str) -> MetricSpec {
    MetricSpec {
        name: "m".into(),
        measure: measure.into(),
        text: String::new(),
        of: None,
        over: None,
        gap_from_ms: None,
        gap_to_ms: None,
        most_bytes: None,
        phase: None,
    }
}

#[test]
fn a_metric_must_say_what_its_measure_needs() {
    assert_eq!(check(&metric("jain")), Ok(()));
    assert!(check(&metric("ping_p50_us")).unwrap_err().1.contains("needs 'of'"));
    assert!(check(&metric("jane")).unwrap_err().1.contains("goodput_ratio, jain"));
    assert!(check(&metric("goodput_ratio")).unwrap_err().1.contains("'of' and 'over'"));
    assert!(check(&metric("ack_gaps")).unwrap_err().1.contains("'gap_from_ms'"));
    let backwards = MetricSpec { gap_from_ms: Some(2), gap_to_ms: Some(2), ..metric("ack_gaps") };
    assert_eq!(check(&backwards).unwrap_err().0, "gap_to_ms");
    let phased = |measure| MetricSpec { phase: Some(1), ..metric(measure) };
    assert_eq!(check(&phased("jain")), Ok(()));
    assert_eq!(check(&phased("drops")).unwrap_err().0, "phase");
}

/// Two phases of half a second: the first flow is there in both, the second in the second, the
/// third is a ping-pong.
fn run() -> (RunFacts, RunData) {
    let (mut facts, mut data) = (made::facts(), made::data());
    facts.phases = 2;
    let flow = |group: &str, sender, phases| FlowFacts {
        group: group.into(),
        sender,
        phases,
        ..made::flow()
    };
    facts.flows = vec![
        flow("one", 0, 0..2),
        flow("two", 1, 1..2),
        FlowFacts { is_bulk: false, ..flow("ping", 2, 0..2) },
    ];
    let flow = |bounds: [u64; 3]| FlowResult {
        received_at_bounds_bytes: bounds.to_vec(),
        ..data.flows[0].clone()
    };
    let flows = vec![
        flow([1_000, 626_000, 751_000]),
        flow([0, 0, 250_000]),
        FlowResult {
            responses: (1..=4)
                .map(|i| Response { at_us: i * 240_000, took_ns: i * 1_000_000 })
                .collect(),
            ..flow([0, 10, 20])
        },
    ];
    data.flows = flows;
    (facts, data)
}

fn measured(metric: MetricSpec) -> Option<f64> {
    let (facts, data) = run();
    value(&metric, &facts, &data)
}

fn in_phase(name: &str, phase: u32) -> Option<f64> {
    measured(MetricSpec { phase: Some(phase), ..metric(name) })
}

#[test]
fn a_phase_is_about_the_bulk_flows_that_send_in_it() {
    assert_eq!([in_phase("goodput_mbps", 1), in_phase("goodput_mbps", 2)], [Some(10.0), Some(6.0)]);
    assert_eq!(in_phase("jain", 1), Some(1.0));
    assert_eq!(in_phase("jain", 2), Some(0.9));
    assert_eq!(measured(metric("goodput_mbps")), Some(8.0));
    assert_eq!(in_phase("goodput_mean_mbps", 2), Some(3.0));
    let of = |group: &str, phase| MetricSpec {
        of: Some(group.into()),
        phase: Some(phase),
        ..metric("goodput_mbps")
    };
    assert_eq!(measured(of("two", 1)), None, "it does not send yet");
    assert_eq!(measured(of("two", 2)), Some(4.0));
}

#[test]
fn answers_of_a_ping_pong_by_phase() {
    let of = |phase| MetricSpec { of: Some("ping".into()), phase, ..metric("response_p50_us") };
    assert_eq!(measured(of(None)), Some(2_000.0));
    assert_eq!(measured(of(Some(2))), Some(3_000.0));
    assert_eq!(measured(metric("response_p50_us")), None, "bulk flows have none");
}

#[test]
fn answered_requests_are_counted_by_the_second() {
    let (facts, mut data) = run();
    data.flows[2].answered = 40;
    let metric = MetricSpec { of: Some("ping".into()), ..metric("responses_per_s") };
    assert_eq!(value(&metric, &facts, &data), Some(40.0));
}

/// Responses leave the hosts that are asked, and two flows may be of one host.
#[test]
fn counters_are_of_the_hosts_that_the_data_leaves_or_reaches() {
    let (mut facts, mut data) = run();
    let places = [[5, 9], [5, 8], [4, 9]];
    facts.flows.iter_mut().zip(places).for_each(|(flow, place)| flow.data = place);
    let value = |measure, data: &RunData| {
        let metric = MetricSpec { of: Some("two".into()), ..metric(measure) };
        value(&metric, &facts, data)
    };
    assert_eq!(value("tcp_timeouts", &data), None, "they were not read");
    let of = |names: &[(&str, u64)]| -> TcpCounters {
        names.iter().map(|&(name, count)| (name.to_owned(), count)).collect()
    };
    data.tcp = [
        (5, of(&[("TCPTimeouts", 3), ("TCPLossUndo", 1), ("TCPDSACKUndo", 1)])),
        (8, of(&[("TCPOFOQueue", 7), ("TCPTimeouts", 100)])),
        (9, of(&[("TCPOFOQueue", 100)])),
    ]
    .into();
    let measures = ["tcp_timeouts", "tcp_spurious_timeouts", "tcp_duplicate_acks"];
    assert_eq!(measures.map(|name| value(name, &data)), [Some(3.0), Some(2.0), Some(7.0)]);
    facts.flows[0].group = "two".into();
    let metric = MetricSpec { of: Some("two".into()), ..metric("tcp_timeouts") };
    assert_eq!(super::value(&metric, &facts, &data), Some(3.0), "once");
}

#[test]
fn round_trips_by_phase_and_those_that_were_lost() {
    let (facts, mut data) = run();
    let sample = |i: u64| RttSample { at_us: i * 10_000, rtt_ns: i * 1_000_000 };
    data.emulator.probes = ProbeReport { samples: (0..100).map(sample).collect(), lost: 25 };
    let value = |name, phase| value(&MetricSpec { phase, ..metric(name) }, &facts, &data);
    assert_eq!(value("rtt_p50_us", None), Some(49_000.0));
    assert_eq!(value("rtt_p99_us", Some(1)), Some(49_000.0));
    assert_eq!(value("rtt_p50_us", Some(2)), Some(74_000.0));
    assert_eq!(value("probes_lost", None), Some(0.2));
}

#[test]
fn pings_are_of_the_guests_that_sent_them() {
    let (mut facts, mut data) = run();
    facts.flows.iter_mut().for_each(|flow| flow.is_bulk = false);
    let sample = |i: u64| RttSample { at_us: i * 10_000, rtt_ns: (i + 1) * 1_000 };
    let pings =
        |guest, count| Pings { guest, sent: 100, samples: (0..count).map(sample).collect() };
    data.pings = vec![pings(1, 10), pings(2, 75)];
    let value = |name, phase| {
        let metric = MetricSpec { phase, of: Some("ping".into()), ..metric(name) };
        value(&metric, &facts, &data)
    };
    assert_eq!([value("ping_min_us", None), value("ping_max_us", None)], [Some(1.0), Some(75.0)]);
    assert_eq!(
        [value("ping_p50_us", None), value("ping_p50_us", Some(2))],
        [Some(38.0), Some(63.0)]
    );
    assert_eq!(value("pings_lost", None), Some(0.25));
}

/// Guests have numbers of their own where a file names who sends to whom.
#[test]
fn a_guest_whose_flow_has_another_number_has_its_pings() {
    let (mut facts, mut data) = run();
    facts.flows[2].sender = 7;
    let samples = vec![RttSample { at_us: 0, rtt_ns: 5_000 }];
    data.pings = vec![Pings { guest: 7, sent: 1, samples }];
    let metric = MetricSpec { of: Some("ping".into()), ..metric("ping_p50_us") };
    assert_eq!(value(&metric, &facts, &data), Some(5.0));
}

/// One port holds what its guest sends to two receivers (vFlood, figure 4).
#[test]
fn a_buffer_is_shared_by_the_flows_to_each_receiver() {
    let (mut facts, mut data) = run();
    facts.flows[0].data = [0, 8];
    facts.flows[1] = FlowFacts { sender: 0, data: [0, 9], ..facts.flows[1].clone() };
    let held = |peer, byte_s| Buffered { peer, byte_s, held_s: 0.5, above_share_s: 0.0 };
    let buffered = vec![held(8, 1_000.0), held(9, 4_000.0)];
    data.translated = vec![Observation { guest: 0, buffered, ..Observation::default() }];
    let of = |measure, of: &str| MetricSpec {
        of: Some(of.into()),
        over: Some("two".into()),
        ..metric(measure)
    };
    assert_eq!(value(&of("buffer_mean_bytes", "one"), &facts, &data), Some(2_000.0));
    assert_eq!(value(&of("buffer_ratio", "one"), &facts, &data), Some(0.25));
    assert_eq!(value(&of("buffer_ratio", "ping"), &facts, &data), None, "it holds nothing");
}

/// As struct tcp_info has them, at each sample (PVTCP, figure 9).
#[test]
fn an_absence_shows_in_the_greatest_rtt_and_a_timeout_in_the_greatest_rto() {
    let (facts, mut data) = run();
    assert_eq!(value(&metric("srtt_max_us"), &facts, &data), None, "nothing was sampled");
    let sample = |(srtt_us, rto_us)| Sample {
        at_us: 0,
        acked_bytes: 0,
        cwnd_segs: 10,
        snd_wnd_bytes: 10_000,
        mss_bytes: 1000,
        srtt_us,
        rto_us,
    };
    data.flows[1].samples = [(900, 12_000), (58_000, 70_000), (1_200, 11_000)].map(sample).into();
    let of = ["srtt_max_us", "rto_min_us", "rto_max_us"];
    let of = of.map(|name| value(&metric(name), &facts, &data));
    assert_eq!(of, [Some(58_000.0), Some(11_000.0), Some(70_000.0)]);
}

#[test]
fn the_window_that_is_no_larger_limits() {
    let (facts, mut data) = run();
    let sample = |cwnd_segs| Sample {
        at_us: 0,
        acked_bytes: 0,
        cwnd_segs,
        snd_wnd_bytes: 14_480,
        mss_bytes: 1448,
        srtt_us: 0,
        rto_us: 0,
    };
    data.flows[0].samples = vec![sample(9), sample(10), sample(11), sample(5)];
    let metric = metric("peer_window_limits");
    assert_eq!(value(&metric, &facts, &data), Some(0.5));
}

/// The rows of the table, a measure each.
fn rows() -> String {
    let row = |(name, text, by_phase): (&str, &str, bool)| {
        let phase = if by_phase { "*" } else { "" };
        format!("| `{name}`{phase} | {text} |\n")
    };
    definitions().map(row).collect()
}

/// `VCC_WRITE_DOCS=1` writes it.
#[test]
fn the_documented_table_is_that_of_the_list() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/README.md");
    let text = std::fs::read_to_string(path).expect("the page");
    let begin =
        "<!-- measures: written by `VCC_WRITE_DOCS=1 cargo test -p vcc-results measure` -->\n";
    let (before, rest) = text.split_once(begin).expect("a marker where it begins");
    let (_, after) = rest.split_once("<!-- measures: end -->").expect("a marker where it ends");
    let table = format!("| measure | definition, per run |\n|---|---|\n{}", rows());
    let written = format!("{before}{begin}{table}<!-- measures: end -->{after}");
    if std::env::var_os("VCC_WRITE_DOCS").is_some() {
        return std::fs::write(path, &written).expect("written");
    }
    assert!(text == written, "experiments/README.md: {begin}");
}

//! Whole runs on this machine's kernel. They need root; without it each reports that it is skipped.

use super::*;
use crate::base::system;
use crate::scenario::{Family, Flow, Guest, HostForm, Translation, made};
use std::path::Path;
use std::process::Command;
use vcc_domain::BufferSpec;
use vcc_engine::Params;
use vcc_fabric::{AnyQueue, NetworkSpec, TopologyKind, Watch};
use vcc_testing::{can_attach, skip};

/// Two guests, the first with ECN, and a queue that marks and drops.
fn scenario() -> Scenario {
    let guest = |ecn: bool| Guest { ecn, tso: ecn, ..made::guest() };
    let flow = |sender| Flow { group: sender, sender, receiver: 2, phases: 0..2, ..made::flow() };
    let queue = "kind = \"threshold\"\nthreshold_bytes = 30000\nlimit_bytes = 200000";
    let scenario = made::scenario();
    Scenario {
        network: NetworkSpec {
            guests: 2,
            rate_bps: 20_000_000,
            edge_rate_bps: 50_000_000,
            delay_ns: 100_000,
            queue: toml::from_str::<AnyQueue>(queue).unwrap(),
            ..scenario.network
        },
        sack: true,
        guests: vec![guest(true), guest(false)],
        flows: vec![flow(0), flow(1)],
        warm_up_ns: 200_000_000,
        measured_ns: 800_000_000,
        phases: 2,
        window_every_us: Some(10_000),
        goodput_every_us: Some(100_000),
        watch: Watch { queue_every_us: Some(10_000), probe_every_us: Some(5_000), ack_gaps: true },
        ..scenario
    }
}

/// Runs a scenario and asserts what holds on any machine, however busy.
fn run_soundly(scenario: &Scenario) -> Option<RunData> {
    if let Err(error) = system::require_root() {
        skip(&error.to_string());
        return None;
    }
    if !Path::new("/dev/net/tun").exists() {
        skip("no /dev/net/tun");
        return None;
    }
    let data = run_once(scenario, 1, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((data.lost_frames, data.emulator.failures), (0, 0));
    for (ends, flow) in scenario.flows.iter().zip(&data.flows) {
        let guest = &scenario.guests[ends.sender];
        assert!(flow.payload_ok);
        assert!(flow.received_bytes() > 0);
        assert!(!flow.received_over_time.is_empty());
        assert_eq!((flow.guest_has_ecn, flow.peer_has_ecn), (guest.ecn, guest.fabric_ecn()));
        assert!(!flow.samples.is_empty());
    }
    let bottleneck = &data.emulator.links[data.bottleneck];
    assert!(bottleneck.counters.packets > 0 && !bottleneck.queue_series.is_empty());
    assert!(!data.emulator.ack_gaps_us[0].is_empty());
    let round_trip_ns = 4 * scenario.network.delay_ns;
    assert!(data.emulator.probes.samples.len() > 100);
    assert!(data.emulator.probes.samples.iter().all(|probe| probe.rtt_ns > round_trip_ns));
    Some(data)
}

#[test]
fn a_star_of_veth_hosts() {
    let Some(data) = run_soundly(&scenario()) else { return };
    let bottleneck = &data.emulator.links[data.bottleneck].counters;
    assert!(bottleneck.marks > 0, "the ECN guest is marked");
    assert!(bottleneck.drops_early > 0, "the other one is dropped");
}

#[test]
fn a_dumbbell_over_ipv6() {
    let mut scenario = scenario();
    scenario.network.topology = TopologyKind::Dumbbell;
    scenario.flows[1].receiver = 3;
    scenario.family = Family::Ipv6;
    let Some(data) = run_soundly(&scenario) else { return };
    assert!(data.emulator.links[data.bottleneck].counters.marks > 0);
}

#[test]
fn jumbo_frames() {
    let mut scenario = scenario();
    scenario.network.mtu_bytes = 9000;
    let Some(data) = run_soundly(&scenario) else { return };
    assert!(data.flows.iter().flat_map(|flow| &flow.samples).all(|it| it.mss_bytes == 8948));
}

#[test]
fn guests_on_taps() {
    run_soundly(&Scenario { form: HostForm::Tap, ..scenario() });
}

#[test]
fn vcc_makes_the_legacy_guest_an_ecn_one() {
    if !can_attach() {
        return;
    }
    let mut scenario = scenario();
    let params = Params::default();
    scenario.guests[1].translation =
        Some(Translation { params, share: None, buffer: BufferSpec::default() });
    let Some(data) = run_soundly(&scenario) else { return };
    assert_eq!(data.translated.len(), 1);
    assert_eq!(data.translated[0].guest, 1);
    assert!(data.translated[0].marks > 0, "marks reach the port, not the guest");
}

/// One of two flows is there in the second half only, the other in the first: each has the link for
/// itself, and what it left unsent does not reach far into the other's time.
#[test]
fn flows_join_and_leave() {
    let mut scenario = scenario();
    scenario.measured_ns = 2_000_000_000;
    scenario.flows[0].phases = 0..1;
    scenario.flows[1].phases = 1..2;
    let Some(data) = run_soundly(&scenario) else { return };
    let bytes = |flow: usize, phase: u32| data.flows[flow].received_bytes_in(&(phase..phase + 1));
    assert!(bytes(0, 1) * 10 < bytes(0, 0), "{} {}", bytes(0, 1), bytes(0, 0));
    assert_eq!(bytes(1, 0), 0);
    assert!(bytes(1, 1) > 0);
}

/// Rate limit and cwnd clamp take effect.
#[test]
fn a_guest_is_held_to_its_limits() {
    let mut scenario = scenario();
    scenario.guests[0].limits.rate_bps = Some(2_000_000);
    scenario.guests[1].limits.cwnd_segs = Some(4);
    let Some(data) = run_soundly(&scenario) else { return };
    let bps = data.flows[0].received_bytes() as f64 * 8.0 / scenario.measured_s();
    assert!(bps < 2_000_000.0 * 1.1, "{bps}");
    assert!(data.flows[1].samples.iter().all(|sample| sample.cwnd_segs <= 4));
}

/// The proxy speaks ECN in its place, and the payload arrives as it was sent.
#[test]
fn a_proxy_stands_in_a_guests_way() {
    if Command::new("haproxy").arg("-v").output().is_err() {
        return skip("no haproxy");
    }
    let mut scenario = scenario();
    scenario.guests[1].proxy = Some("reno".into());
    let Some(data) = run_soundly(&scenario) else { return };
    assert!(data.emulator.ect[1].is_capable());
}

/// A ping-pong next to a flow that fills the queue waits in it; each answer takes at least a base
/// RTT.
#[test]
fn a_ping_pong_is_answered() {
    let mut scenario = scenario();
    scenario.flows[1].pattern = Pattern::PingPong;
    let Some(data) = run_soundly(&scenario) else { return };
    let round_trip_ns = 4 * scenario.network.delay_ns;
    let responses = &data.flows[1].responses;
    assert!(responses.len() > 10, "{}", responses.len());
    assert!(responses.iter().all(|response| response.took_ns > round_trip_ns));
    assert!(data.flows[0].responses.is_empty());
}

/// Nothing of a run shows in the namespace from which it was started.
#[test]
fn nothing_is_left_behind() {
    let devices = || std::fs::read_to_string("/proc/net/dev").unwrap().lines().count();
    let before = devices();
    run_soundly(&scenario());
    assert_eq!(devices(), before);
}

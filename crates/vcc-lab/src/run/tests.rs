//! Whole runs on this machine's kernel. They need root; without it each says that it is skipped.

use super::once::run_once;
use super::*;
use crate::fabric::{AnyQueue, NetworkSpec, TopologyKind, Watch};
use crate::hosts::{Family, HostForm};
use crate::translate::{Translation, TranslationNames};
use std::path::Path;
use vcc_port::testing::{can_attach, skip};

/// Two guests, the first with ECN, and a queue that marks and drops.
fn scenario() -> Scenario {
    let guest = |ecn: bool| Guest {
        group: usize::from(!ecn),
        ecn,
        tso: ecn,
        congestion_control: "reno".into(),
        translation: None,
    };
    let queue = "kind = \"threshold\"\nthreshold_bytes = 30000\nlimit_bytes = 200000";
    Scenario {
        network: NetworkSpec {
            topology: TopologyKind::Star,
            senders: 2,
            rate_bps: 20_000_000,
            edge_rate_bps: 50_000_000,
            delay_ns: 100_000,
            queue: toml::from_str::<AnyQueue>(queue).unwrap(),
        },
        form: HostForm::Veth,
        family: Family::Ipv4,
        sack: true,
        guests: vec![guest(true), guest(false)],
        warm_up_ns: 200_000_000,
        measured_ns: 800_000_000,
        window_every_us: Some(10_000),
        watch: Watch { queue_every_us: Some(10_000), ack_gaps: true },
        goodput_floor: 0.98,
    }
}

/// What must hold of every run, however slow or busy the machine is.
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
    for (guest, flow) in scenario.guests.iter().zip(&data.flows) {
        assert!(flow.payload_ok);
        assert!(flow.received_bytes > 0);
        assert_eq!((flow.guest_has_ecn, flow.peer_has_ecn), (guest.ecn, guest.fabric_ecn()));
        assert!(!flow.samples.is_empty());
    }
    let bottleneck = &data.emulator.links[data.bottleneck];
    assert!(bottleneck.counters.packets > 0 && !bottleneck.queue_series.is_empty());
    assert!(!data.emulator.ack_gaps_us[0].is_empty());
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
    scenario.family = Family::Ipv6;
    let Some(data) = run_soundly(&scenario) else { return };
    assert!(data.emulator.links[data.bottleneck].counters.marks > 0);
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
    let names = TranslationNames {
        mode: "enforce",
        underlay: "reno-ecn",
        guest_ecn: "leave",
        prr: true,
        pace_push: true,
    };
    scenario.guests[1].translation = Some(Translation::parse(&names).unwrap());
    let Some(data) = run_soundly(&scenario) else { return };
    assert_eq!(data.translated.len(), 1);
    assert_eq!(data.translated[0].guest, 1);
    assert!(data.translated[0].marks > 0, "marks reach the port, not the guest");
}

/// Nothing of a run shows in the namespace from which it was started.
#[test]
fn nothing_is_left_behind() {
    let devices = || std::fs::read_to_string("/proc/net/dev").unwrap().lines().count();
    let before = devices();
    run_soundly(&scenario());
    assert_eq!(devices(), before);
}

#[test]
fn a_case_that_does_not_exist_is_refused_with_those_that_do() {
    let experiment = crate::load("vcc-fig11").unwrap();
    let error = chosen(&experiment, &["wihtout".into()]).unwrap_err().to_string();
    assert!(error.contains("'wihtout'") && error.contains("without, with, with-tso"), "{error}");
}

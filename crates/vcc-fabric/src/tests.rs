use super::*;
use std::collections::BTreeMap;
use vcc_frames::{Packet, payload};
use vcc_net::random::SplitMix64;

const RATE_BPS: u64 = 10_000_000;
const DELAY_NS: u64 = 250_000;

fn network(topology: TopologyKind, guests: usize) -> NetworkSpec {
    NetworkSpec {
        topology,
        guests,
        rate_bps: RATE_BPS,
        edge_rate_bps: RATE_BPS,
        delay_ns: DELAY_NS,
        edge_delays_ns: BTreeMap::new(),
        mtu_bytes: 1500,
        queue: AnyQueue::edge(),
        memory: None,
        busiest: 0,
        tiers: Tiers::default(),
    }
}

fn fabric(spec: &NetworkSpec) -> Fabric {
    let watch = Watch { ack_gaps: true, ..Watch::default() };
    let mut fabric = Fabric::new(spec.build(), 1, watch).unwrap();
    fabric.set_window(Window { start_ns: 0, end_ns: 1_000_000_000 });
    fabric
}

fn frame(to: HostId, bytes: usize) -> Vec<u8> {
    let mut frame = vec![0; bytes];
    frame[..6].copy_from_slice(&mac_of(to));
    frame
}

/// All that arrives until nothing is under way any more.
fn drain(fabric: &mut Fabric) -> Vec<(HostId, u64, usize)> {
    let mut deliveries = Vec::new();
    while fabric.next_event_ns().is_some() {
        let due = std::iter::from_fn(|| fabric.next_delivery(u64::MAX));
        deliveries.extend(due.map(|it| (it.host, it.due_ns, it.frame.len())));
    }
    deliveries
}

/// 1514 bytes last 1,211,200 ns at 10 Mbit/s; each of two links adds that and its delay.
#[test]
fn serialisation_and_delay_add_up() {
    let mut fabric = fabric(&network(TopologyKind::Star, 2));
    fabric.inject(0, 1_000, frame(2, 1514));
    assert_eq!(drain(&mut fabric), [(2, 1_000 + 2 * (1_211_200 + DELAY_NS), 1514)]);
}

#[test]
fn frames_behind_each_other_leave_one_serialisation_apart() {
    let mut fabric = fabric(&network(TopologyKind::Star, 2));
    for sender in [0, 1] {
        for _ in 0..3 {
            fabric.inject(sender, 0, frame(2, 1000));
        }
    }
    let times: Vec<u64> = drain(&mut fabric).iter().map(|delivery| delivery.1).collect();
    assert_eq!(times.len(), 6);
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] == 800_000));
}

#[test]
fn a_slower_bottleneck_queues_what_the_edge_brings() {
    let spec = NetworkSpec { edge_rate_bps: 20_000_000, ..network(TopologyKind::Star, 1) };
    let mut fabric = fabric(&spec);
    for _ in 0..10 {
        fabric.inject(0, 0, frame(1, 1000));
    }
    drain(&mut fabric);
    let report = fabric.report().pop().unwrap();
    assert_eq!((report.name.as_str(), report.counters.packets), ("bottleneck", 10));
    // The last comes 3.6 ms after the first, when 4 of the 9 behind it have been sent on.
    assert_eq!(report.queue_max_bytes, 5000);
}

#[test]
fn the_dumbbell_joins_each_sender_to_its_receiver() {
    let mut fabric = fabric(&network(TopologyKind::Dumbbell, 3));
    for sender in 0..3 {
        fabric.inject(sender, 0, frame(3 + sender, 500));
        fabric.inject(3 + sender, 0, frame(sender, 60));
    }
    let mut hosts: Vec<HostId> = drain(&mut fabric).iter().map(|delivery| delivery.0).collect();
    hosts.sort_unstable();
    assert_eq!(hosts, [0, 1, 2, 3, 4, 5]);
}

#[test]
fn frames_for_nobody_go_nowhere() {
    let mut fabric = fabric(&network(TopologyKind::Star, 2));
    fabric.inject(0, 0, vec![0xff; 60]);
    fabric.inject(0, 0, frame(99, 60));
    fabric.inject(0, 0, frame(0, 60));
    assert_eq!(drain(&mut fabric), []);
}

/// For any frames, sent at any times: deliveries come in the order of virtual time, none is early,
/// and the frames delivered or dropped are those that were sent.
#[test]
fn virtual_time_never_runs_backwards_and_frames_are_conserved() {
    let queue = r#"kind = "tail-drop"
                   limit_bytes = 20000"#;
    let spec =
        NetworkSpec { queue: toml::from_str(queue).unwrap(), ..network(TopologyKind::Star, 4) };
    let mut fabric = fabric(&spec);
    fabric.set_window(Window { start_ns: 0, end_ns: u64::MAX });
    let mut random = SplitMix64::new(3);
    let (mut now_ns, mut last_ns, mut delivered) = (0, 0, 0);
    for _ in 0..5_000 {
        now_ns += random.next_u64() % 900_000;
        while let Some(delivery) = fabric.next_delivery(now_ns) {
            assert!(delivery.due_ns >= last_ns && delivery.due_ns <= now_ns);
            last_ns = delivery.due_ns;
            delivered += 1;
        }
        let bytes = 60 + (random.next_u64() % 1455) as usize;
        fabric.inject((random.next_u64() % 4) as usize, now_ns, frame(4, bytes));
    }
    delivered += drain(&mut fabric).len() as u64;
    let dropped: u64 = fabric.report().iter().map(|link| link.counters.drops()).sum();
    assert!(dropped > 0);
    assert_eq!(delivered + dropped, 5_000);
}

#[test]
fn gaps_between_acknowledgements_are_kept_by_sender() {
    let mut fabric = fabric(&network(TopologyKind::Star, 2));
    for at_ms in [1, 3, 203] {
        fabric.inject(2, at_ms * 1_000_000, frame(1, 66));
    }
    fabric.inject(0, 500_000_000, frame(2, 1514));
    let gaps = fabric.take_ack_gaps();
    assert_eq!(gaps, [vec![], vec![2_000, 200_000], vec![]]);
}

/// With probes about every 10 ms, from 1 ms on for 200 ms.
fn probed(spec: &NetworkSpec) -> Fabric {
    let watch = Watch { probe_every_us: Some(10_000), ..Watch::default() };
    let mut fabric = Fabric::new(spec.build_probed(), 1, watch).unwrap();
    fabric.set_window(Window { start_ns: 1_000_000, end_ns: 201_000_000 });
    fabric
}

/// 60 bytes last 48 us at 10 Mbit/s; each link adds that and its delay.
#[test]
fn probes_take_every_link_of_an_idle_network_there_and_back() {
    for (topology, links) in [
        (TopologyKind::Star, 4),
        (TopologyKind::Dumbbell, 6),
        (TopologyKind::ParkingLot, 6),
        (TopologyKind::Mesh, 4),
    ] {
        let mut fabric = probed(&network(topology, 2));
        assert_eq!(drain(&mut fabric), [], "hosts see nothing of them");
        let report = fabric.take_probes();
        assert_eq!(report.lost, 0);
        assert!((15..=25).contains(&report.samples.len()), "{}", report.samples.len());
        let expected_ns = links * (48_000 + DELAY_NS);
        assert!(report.samples.iter().all(|sample| sample.rtt_ns == expected_ns));
        assert_eq!(report.samples[0].at_us, 0);
    }
}

#[test]
fn a_probe_waits_behind_what_is_queued_at_the_bottleneck() {
    let spec = NetworkSpec { edge_rate_bps: 1_000_000_000, ..network(TopologyKind::Dumbbell, 2) };
    let mut fabric = probed(&spec);
    for _ in 0..10 {
        fabric.inject(0, 0, frame(2, 1514));
    }
    drain(&mut fabric);
    let samples = fabric.take_probes().samples;
    let idle_ns = samples.last().unwrap().rtt_ns;
    // The first of ten is at the switch after 12,112 ns and the delay, and 1,211,200 ns each they
    // keep the bottleneck busy; the probe comes at 1 ms, 480 ns and the delay.
    assert_eq!(samples[0].rtt_ns - idle_ns, 12_112 + 10 * 1_211_200 - 1_000_480);
}

/// In virtual time what a host sends is known after the fabric has moved on: still a probe that
/// turns round at a receiver keeps to the order of time on the receiver's link.
#[test]
fn a_probe_turns_round_in_its_turn() {
    // At the receiver it is after two links, at the switch after three, back after four.
    let link_ns = 48_000 + DELAY_NS;
    let turns_ns = 1_000_000 + 2 * link_ns;
    let last_ns = 1_211_200;
    for (sent_ns, expected_ns, waits_ns) in [
        // Already on the link, which is the probe's when the frame has been sent.
        (turns_ns - 96_000, turns_ns - 96_000, last_ns - 96_000),
        // The probe is before it.
        (turns_ns + 10_000, turns_ns + 48_000, 0),
    ] {
        let mut fabric = probed(&network(TopologyKind::Star, 1));
        assert!(fabric.next_delivery(turns_ns + 20_000).is_none());
        fabric.inject(1, sent_ns, frame(0, 1514));
        let delivered = drain(&mut fabric);
        assert_eq!(delivered, [(0, expected_ns + 2 * (last_ns + DELAY_NS), 1514)]);
        let samples = fabric.take_probes().samples;
        assert_eq!(samples[0].rtt_ns, 4 * link_ns + waits_ns);
    }
}

#[test]
fn probes_that_find_no_room_are_counted() {
    let queue = r#"kind = "tail-drop"
                   limit_bytes = 10000"#;
    let spec = NetworkSpec {
        queue: toml::from_str(queue).unwrap(),
        edge_rate_bps: 1_000_000_000,
        ..network(TopologyKind::Star, 1)
    };
    let mut fabric = probed(&spec);
    // One is being sent and ten wait, which fills the queue, when the first probe comes.
    for _ in 0..11 {
        fabric.inject(0, 800_000, frame(1, 1000));
    }
    drain(&mut fabric);
    let report = fabric.take_probes();
    assert_eq!((report.lost, report.samples.len() > 10), (1, true));
}

#[test]
fn data_is_distinguished_by_ecn_and_by_host() {
    let mut fabric = fabric(&network(TopologyKind::Star, 2));
    let mut marked = frame(2, 1514);
    frame::write_bare(&mut marked, 1, 2, 0b10, 1514);
    fabric.inject(0, 0, frame(2, 1514));
    fabric.inject(1, 0, marked);
    fabric.inject(1, 0, frame(2, 66));
    let ect = fabric.take_ect();
    assert_eq!([ect[0].not_capable, ect[1].capable, ect[1].not_capable], [1, 1, 0]);
    assert_eq!([ect[0].is_capable(), ect[1].is_capable()], [false, true]);
}

/// Two senders each overload the ports of hosts 1 and 2 of a mesh. Memory that one port holds is
/// not available to the other.
#[test]
fn two_congested_ports_share_their_switchs_memory() {
    let memory = Some(MemorySpec { bytes: 90_000, alpha: 1.0 });
    let reports = |memory, is_first_alone: bool| {
        let mut fabric = fabric(&NetworkSpec { memory, ..network(TopologyKind::Mesh, 6) });
        let (mut sent, mut delivered) = (0, 0);
        for _ in 0..200 {
            for (from, to) in [(2, 0), (3, 0), (4, 1), (5, 1)] {
                if to == 0 || !is_first_alone {
                    fabric.inject(from, 0, frame(to, 1000));
                    sent += 1;
                }
            }
        }
        delivered += drain(&mut fabric).len() as u64;
        let reports = fabric.report();
        let dropped: u64 = reports.iter().map(|link| link.counters.drops()).sum();
        assert_eq!(delivered + dropped, sent);
        let port = |name: &str| reports.iter().find(|link| link.name == name).unwrap().clone();
        [port("host 1, down"), port("host 2, down")]
    };
    let [alone, idle] = reports(memory.clone(), true);
    assert_eq!((alone.queue_max_bytes, idle.queue_max_bytes), (45_000, 0));
    assert!(alone.counters.drops_shared > 0);
    for port in reports(memory, false) {
        assert!((29_000..=31_000).contains(&port.queue_max_bytes), "{}", port.queue_max_bytes);
        let drops = (port.counters.drops_shared, port.counters.drops());
        assert!(drops.0 > alone.counters.drops_shared && drops.0 == drops.1, "{drops:?}");
    }
    for port in reports(None, false) {
        assert_eq!((port.counters.drops(), port.queue_max_bytes), (0, 200_000));
    }
}

/// Every host of a mesh sends to four others, whose frames all arrive.
#[test]
fn hosts_of_a_mesh_send_and_receive() {
    let mut fabric = fabric(&network(TopologyKind::Mesh, 48));
    for from in 0..48 {
        (1..=4).for_each(|step| fabric.inject(from, 0, frame((from + step) % 48, 1514)));
    }
    let mut arrivals = [0; 48];
    drain(&mut fabric).iter().for_each(|&(host, _, _)| arrivals[host] += 1);
    assert_eq!(arrivals, [4; 48]);
}

/// It comes back by the links that the frame has taken.
#[test]
fn the_sender_of_what_a_path_does_not_carry_gets_an_error() {
    let ends = ["10.77.0.1:1", "10.77.0.2:2"].map(|end| end.parse().unwrap());
    let packet = Packet { payload: payload(1000), ..Packet::new(ends[0], ends[1]) };
    let mut frame = packet.frame();
    frame::address(&mut frame, 0, 2);
    let mut fabric = fabric(&network(TopologyKind::Star, 2));
    fabric.set_path_mtus(vec![PathMtu { from_ns: 0, mtu_bytes: 1000, answers: true }]);
    fabric.inject(0, 0, frame.clone());
    let answers = drain(&mut fabric);
    // An IPv4 header, ICMP's, and what is quoted.
    let told_bytes = 14 + 20 + 8 + 20 + 8;
    let link_ns = |bytes: u64| bytes * 800 + DELAY_NS;
    let due_ns = 2 * link_ns(frame.len() as u64) + link_ns(told_bytes);
    assert_eq!(answers, [(0, due_ns, told_bytes as usize)]);
}

use super::*;
use crate::random::SplitMix64;

const RATE_BPS: u64 = 10_000_000;
const DELAY_NS: u64 = 250_000;

fn network(topology: TopologyKind, senders: usize) -> NetworkSpec {
    NetworkSpec {
        topology,
        senders,
        rate_bps: RATE_BPS,
        edge_rate_bps: RATE_BPS,
        delay_ns: DELAY_NS,
        queue: AnyQueue::edge(),
    }
}

fn fabric(spec: &NetworkSpec) -> Fabric {
    let watch = Watch { queue_every_us: None, ack_gaps: true };
    let mut fabric = Fabric::new(spec.build(), 1, watch).unwrap();
    fabric.set_window(Window { start_ns: 0, end_ns: 1_000_000_000 });
    fabric
}

fn frame(to: HostId, bytes: usize) -> Vec<u8> {
    let mut frame = vec![0; bytes];
    frame[..6].copy_from_slice(&mac_of(to));
    frame
}

fn drain(fabric: &mut Fabric) -> Vec<(HostId, u64, usize)> {
    std::iter::from_fn(|| fabric.next_delivery(u64::MAX))
        .map(|delivery| (delivery.host, delivery.due_ns, delivery.frame.len()))
        .collect()
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

/// Whatever is sent whenever: deliveries come in the order of virtual time, none is early, and
/// what is delivered or dropped is what was sent.
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

use super::*;
use std::collections::BTreeSet;

fn spec(topology: TopologyKind, guests: usize) -> NetworkSpec {
    let tiers = match topology {
        TopologyKind::TwoTier => Tiers { leaves: 3, spines: 2 },
        _ => Tiers::default(),
    };
    NetworkSpec {
        topology,
        guests,
        rate_bps: 10_000_000_000,
        edge_rate_bps: 10_000_000_000,
        delay_ns: 5_000,
        edge_delays_ns: BTreeMap::new(),
        mtu_bytes: 1500,
        queue: AnyQueue::edge(),
        memory: None,
        busiest: 0,
        tiers,
    }
}

const ALL: [TopologyKind; 5] = [
    TopologyKind::Star,
    TopologyKind::Dumbbell,
    TopologyKind::ParkingLot,
    TopologyKind::Mesh,
    TopologyKind::TwoTier,
];

/// Without loops, and back the way that it came.
#[test]
fn every_host_reaches_every_other() {
    for kind in ALL {
        for topology in [spec(kind, 7).build(), spec(kind, 7).build_probed()] {
            let pairs =
                (0..topology.hosts()).flat_map(|a| (0..topology.hosts()).map(move |b| (a, b)));
            for (from, to) in pairs.filter(|(from, to)| from != to) {
                let nodes = |path: Vec<LinkId>| -> Vec<(Node, Node)> {
                    path.iter()
                        .map(|&id| (topology.links[id].from, topology.links[id].to))
                        .collect()
                };
                let there = nodes(topology.path(from, to));
                assert_eq!(there.last().map(|link| link.1), Some(Node::Host(to)), "{kind:?}");
                let visited: BTreeSet<usize> =
                    there.iter().map(|&(node, _)| topology.index(node)).collect();
                assert_eq!(visited.len(), there.len(), "{kind:?}: a loop from {from} to {to}");
                let mut back = nodes(topology.path(to, from));
                back.reverse();
                let back: Vec<_> = back.into_iter().map(|(from, to)| (to, from)).collect();
                assert_eq!(there, back, "{kind:?}");
            }
        }
    }
}

/// Traffic of each guest to its default receiver goes through the bottleneck, and so do probes.
#[test]
fn flows_and_probes_cross_the_bottleneck() {
    for kind in ALL {
        let topology = NetworkSpec { busiest: 3, ..spec(kind, 5) }.build_probed();
        for (sender, &receiver) in topology.peers.iter().enumerate() {
            assert!(topology.crosses_bottleneck(sender, receiver), "{kind:?}");
            assert!(topology.receivers.contains(&receiver));
        }
        let ProbeEnds { near, far } = topology.probes.unwrap();
        assert!(topology.crosses_bottleneck(near, far), "{kind:?}");
        assert!(near >= topology.receivers.end, "probes start at a host of their own");
        assert_eq!(topology.guest_rates_bps().len(), topology.receivers.end);
    }
}

/// The first of four senders is four bottlenecks away from the receiver, the last is one.
#[test]
fn flows_of_a_parking_lot_cross_one_bottleneck_fewer_each() {
    let topology = spec(TopologyKind::ParkingLot, 4).build_probed();
    assert_eq!((topology.peers.clone(), topology.receivers.clone()), (vec![4; 4], 4..5));
    let lengths: Vec<usize> = (0..4).map(|sender| topology.path(sender, 4).len()).collect();
    assert_eq!(lengths, [5, 4, 3, 2]);
    let ProbeEnds { near, far } = topology.probes.unwrap();
    assert_eq!((topology.path(near, far).len(), far), (5, 4));
}

#[test]
fn the_port_of_the_busiest_is_the_bottleneck_of_a_mesh() {
    let topology = NetworkSpec { busiest: 2, ..spec(TopologyKind::Mesh, 4) }.build();
    assert!(topology.peers.is_empty() && topology.receivers.is_empty());
    assert_eq!(topology.links[topology.bottleneck].name, "host 3, down");
    assert!(topology.crosses_bottleneck(0, 2) && !topology.crosses_bottleneck(2, 0));
}

/// Seven guests at three leaves: three, two, two. Neighbours meet at their leaf; others meet at a
/// spine, always the same for the same two, and no spine is left idle.
#[test]
fn guests_of_a_two_tier_network_meet_at_leaf_or_spine() {
    let topology = spec(TopologyKind::TwoTier, 7).build();
    let lengths = |from| (0..7).map(|to| topology.path(from, to).len()).collect::<Vec<_>>();
    assert_eq!(lengths(0), [0, 2, 2, 4, 4, 4, 4]);
    assert_eq!(lengths(4), [4, 4, 4, 2, 0, 4, 4]);
    let spines: BTreeSet<usize> = (0..3)
        .flat_map(|from| (3..7).map(move |to| (from, to)))
        .map(|(from, to)| topology.index(topology.links[topology.path(from, to)[1]].to))
        .collect();
    assert_eq!(spines.len(), 2);
}

#[test]
fn a_guest_may_be_further_away_than_others() {
    for kind in ALL {
        let edge_delays_ns = BTreeMap::from([(1, 700_000)]);
        let topology = NetworkSpec { edge_delays_ns, ..spec(kind, 3) }.build_probed();
        for link in &topology.links {
            let is_own = [link.from, link.to].contains(&Node::Host(1));
            assert_eq!(link.delay_ns, if is_own { 700_000 } else { 5_000 }, "{kind:?}");
        }
    }
}

#[test]
fn what_cannot_be_built_is_refused_by_its_field() {
    let refused = |spec: NetworkSpec| spec.check().unwrap_err().0;
    assert!(ALL.into_iter().all(|kind| spec(kind, 3).check().is_ok()));
    assert_eq!(refused(spec(TopologyKind::Mesh, 1)), "topology");
    assert_eq!(refused(spec(TopologyKind::ParkingLot, 1)), "topology");
    let two_tier = |leaves, spines| NetworkSpec {
        tiers: Tiers { leaves, spines },
        ..spec(TopologyKind::TwoTier, 4)
    };
    assert_eq!(refused(two_tier(0, 2)), "leaves");
    assert_eq!(refused(two_tier(2, 0)), "spines");
    assert_eq!(refused(two_tier(5, 1)), "leaves");
    let tiers = Tiers { leaves: 2, spines: 0 };
    assert_eq!(refused(NetworkSpec { tiers, ..spec(TopologyKind::Star, 4) }), "leaves");
}

//! `hold`: smoltcp has no congestion control, so it floods like vFlood's guest.

use vcc_engine::{Mode, Params, sys};

use crate::common::rules::by_guest_port;
use crate::host::Setup;
use crate::path::{Impairments, Network, Side, Turns};
use crate::transfer::{ALL, DUPLICATION, LOSS, MB, REORDERING, Transfer, holding};
use crate::{BOTH, ETHERNET_MTU, Trial, US_PER_S, check_with, setup, translated};

const MTUS: [usize; 4] = [1400, 1433, 1450, ETHERNET_MTU];

#[test]
fn whatever_its_mtu_a_guest_that_floods_has_its_share() {
    let trials = MTUS.into_iter().flat_map(|mtu| {
        BOTH.into_iter().flat_map(move |opens| {
            BOTH.into_iter().flat_map(move |timestamps| {
                [4, 25].map(|mark_every| Trial {
                    guest: setup(mtu, timestamps),
                    peer: setup(ETHERNET_MTU, true),
                    opens,
                    sends: true,
                    mark_every,
                })
            })
        })
    });
    check_with(trials, holding("reno-ecn"), 0.95..1.05);
}

#[test]
fn whatever_the_receivers_mtu_a_guest_that_floods_has_its_share() {
    let trials = MTUS.into_iter().flat_map(|mtu| {
        BOTH.map(|opens| {
            let (guest, peer) = (setup(ETHERNET_MTU, false), setup(mtu, true));
            Trial { guest, peer, opens, sends: true, mark_every: 25 }
        })
    });
    check_with(trials, holding("reno-ecn"), 0.95..1.05);
}

#[test]
fn every_byte_arrives_over_an_impaired_path() {
    for (number, impairments) in
        [Impairments::default(), LOSS, DUPLICATION, REORDERING, ALL].into_iter().enumerate()
    {
        for seed in 0..8 {
            let seed = number as u64 * 100 + seed;
            let stream_bytes = [(1 + seed % 5) * MB, 0];
            let transfer = Transfer { impairments, stream_bytes, ..Transfer::new(seed) };
            let network = transfer.run();
            assert!(network.held_max_bytes > 100_000, "it has flooded: {transfer:?}");
            let watch = network.watch.expect("it holds");
            assert!([0, 1].contains(&(watch.left_bytes - stream_bytes[0])), "{transfer:?}");
            assert!(watch.checked_acks > 100, "{transfer:?}");
        }
    }
}

/// A guest that runs in turns, with a ring that has room for fewer ACKs than come in between.
#[test]
fn a_guest_that_does_not_read_its_ring_loses_nothing_there() {
    for (number, impairments) in
        [Impairments::default(), LOSS, DUPLICATION, REORDERING, ALL].into_iter().enumerate()
    {
        for seed in 0..8 {
            let seed = number as u64 * 100 + seed;
            let stream_bytes = [(1 + seed % 3) * MB, [0, 10_000][seed as usize % 2]];
            let transfer = Transfer { impairments, stream_bytes, ..Transfer::new(seed) };
            let mut network = transfer.begin();
            network.turns = Some(Turns { every_us: 60_000, runs_us: 1_000 });
            network.ring_frames = 64;
            transfer.finish(&mut network);
            // Data to it has its place there, and each ACK that reports a loss.
            let is_plain = number == 0 && stream_bytes[1] == 0;
            assert!(!is_plain || network.missed_frames == 0, "{transfer:?}");
        }
    }
}

#[test]
fn both_ends_send_at_once() {
    for seed in 0..12 {
        let stream_bytes = [MB, 2 * MB];
        let impairments = if seed % 3 == 0 { Impairments::default() } else { ALL };
        let transfer = Transfer { impairments, stream_bytes, ..Transfer::new(seed) };
        let mut network = transfer.begin();
        // Half of the peers are held by a port of their own.
        if seed % 2 == 0 {
            network.hold_peer();
        }
        transfer.finish(&mut network);
    }
}

#[test]
fn a_peer_with_a_small_window_receives_every_byte() {
    for seed in 0..12 {
        let transfer = Transfer::new(seed);
        let receive_bytes = [512, 1000, 3000, 20_000][seed as usize % 4];
        let peer = Setup { receive_bytes, ..transfer.peer };
        let stream_bytes = [receive_bytes as u64 * 100, 0];
        let impairments = if seed % 3 == 0 { Impairments::default() } else { ALL };
        Transfer { peer, stream_bytes, impairments, ..transfer }.run();
    }
}

/// The peer's application does not read for a minute. The update that opens the window is lost.
#[test]
fn a_window_that_was_shut_for_a_minute_opens_though_the_update_is_lost() {
    for seed in 0..8 {
        let transfer = Transfer::new(seed);
        let transfer =
            Transfer { peer: Setup { receive_bytes: 60_000, ..transfer.peer }, ..transfer };
        let mut network = transfer.begin();
        network
            .run_until_met(10 * US_PER_S, |network| network.received_bytes(Side::Peer) > 100_000);
        network.host(Side::Peer).reads = false;
        let before = network.now_us();
        network.run_until(before + 60 * US_PER_S);
        assert!(network.port().held_bytes() > 0, "{transfer:?}");
        network.loses_next = Some((Side::Peer, |segment| segment.window > 0));
        network.host(Side::Peer).reads = true;
        transfer.finish(&mut network);
        assert!(network.loses_next.is_none(), "{transfer:?}");
    }
}

/// Another port without state takes over: the driver domain has been killed.
#[test]
fn no_byte_is_lost_with_the_domain() {
    let mut killed_holding = 0;
    for seed in 0..40 {
        let impairments = if seed % 4 == 0 { Impairments::default() } else { ALL };
        let stream_bytes = [MB, [0, MB][seed as usize % 2]];
        let transfer = Transfer { impairments, stream_bytes, ..Transfer::new(seed) };
        let mut network = transfer.begin();
        let killed_at = 50_000 + seed * 24_000;
        network
            .run_until_met(60 * US_PER_S, |network| network.received_bytes(Side::Peer) > killed_at);
        killed_holding += u32::from(network.port().held_bytes() > 0);
        network.replace_port(holding(transfer.underlay));
        transfer.finish(&mut network);
    }
    assert!(killed_holding > 30, "{killed_holding}");
}

/// A reload of the policy: from `hold` to another treatment and back, at seeded moments.
#[test]
fn the_treatment_changes_with_segments_held() {
    let hold = |transfer: &Transfer| transfer.params();
    let others: [fn(&mut sys::vcc_params); 5] = [
        |params| params.act = sys::ACT_WINDOW as u8,
        |params| params.mode = Mode::Ignore.number(),
        |params| params.mode = Mode::Drain.number(),
        |params| params.mode = Mode::Shadow.number(),
        |params| {
            params.act = sys::ACT_WINDOW as u8;
            params.police = 1;
        },
    ];
    for seed in 0..30 {
        let mut other = hold(&Transfer::new(seed));
        others[seed as usize % others.len()](&mut other.0);
        let impairments = if seed % 4 == 0 { Impairments::default() } else { ALL };
        let stream_bytes = [3 * MB, [0, MB][seed as usize % 2]];
        let transfer = Transfer { impairments, stream_bytes, ..Transfer::new(seed) };
        let mut network = transfer.begin();
        let mut at = 50_000 + seed * 10_000;
        let mut treatments = [other, hold(&transfer), other, hold(&transfer), other].into_iter();
        // Windows are another treatment's then.
        network.watch.as_mut().expect("it holds").windows = false;
        for params in treatments.by_ref().take(1 + seed as usize % 5) {
            let reached = network.run_until_met(network.now_us() + 3600 * US_PER_S, |network| {
                network.received_bytes(Side::Peer) > at
            });
            assert!(
                reached,
                "stuck before {at} bytes, held {}: {other:?} {transfer:?}",
                network.port().held_bytes()
            );
            // By a rule, the flow is judged anew; a policy has no rule that drains.
            match seed % 2 == 0 && params.0.mode != Mode::Drain.number() {
                true => network.port().set_rules(by_guest_port(&[params])),
                false => network.port().set_params(params),
            }
            at += 200_000 + seed * 7000;
        }
        transfer.finish(&mut network);
    }
}

/// Once what was held has left, the guest is shown no more than its window or the peer's.
#[test]
fn after_a_change_of_treatment_the_buffer_is_given_back() {
    let others: [fn(&mut sys::vcc_params); 3] = [
        |params| params.act = sys::ACT_WINDOW as u8,
        |params| params.mode = Mode::Ignore.number(),
        |params| params.mode = Mode::Shadow.number(),
    ];
    for (seed, other) in (0..).zip(others) {
        let peer = Setup { receive_bytes: 600_000, ..setup(ETHERNET_MTU, true) };
        let stream_bytes = [10 * MB, 0];
        let transfer = Transfer { peer, stream_bytes, ..Transfer::new(seed) };
        let mut network = transfer.begin();
        network.run_until_met(60 * US_PER_S, |network| network.received_bytes(Side::Peer) > MB);
        let room_bytes = |network: &mut Network| {
            let (_, flow) = network.port().flows().next().expect("one flow");
            flow.right_edge.wrapping_sub(flow.snd_una)
        };
        assert!(room_bytes(&mut network) > 800_000 && network.port().held_bytes() > 0);
        let mut params = *network.port().params();
        other(&mut params.0);
        network.port().set_params(params);
        network.watch.as_mut().expect("it held").windows = false;
        network.run_until_met(60 * US_PER_S, |network| network.received_bytes(Side::Peer) > 5 * MB);
        // A guest that fills its window to the byte may wait with a part of a segment.
        assert!(network.port().held_bytes() < 2 * ETHERNET_MTU as u32, "{params:?}");
        assert!(room_bytes(&mut network) <= 600_000, "{params:?}: {}", room_bytes(&mut network));
        transfer.finish(&mut network);
    }
}

/// Also of an underlay without a native model here.
#[test]
fn held_or_shown_the_window_an_underlay_has_the_same_throughput() {
    for (underlay, mark_every) in [("dctcp", 10), ("dctcp", 50), ("reno-ecn", 25)] {
        for mtu in MTUS {
            let trial = Trial {
                guest: setup(mtu, false),
                peer: setup(ETHERNET_MTU, true),
                opens: true,
                sends: true,
                mark_every,
            };
            let held = holding(underlay);
            let shown = Params(sys::vcc_params { act: sys::ACT_WINDOW as u8, ..held.0 });
            let [held, shown] = [held, shown].map(|params| translated(&trial, params).0);
            let ratio = held / shown;
            assert!((0.95..1.05).contains(&ratio), "{ratio:.3}: {underlay} {trial:?}");
        }
    }
}

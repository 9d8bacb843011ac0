//! `split`: the port acknowledges what it holds. Each connection completes exactly, or both ends see
//! that it has ended.

use std::sync::Arc;

use smoltcp::socket::tcp::State;
use vcc_engine::{Mode, sys};

use crate::US_PER_S;
use crate::common::memory::Memory;
use crate::common::rules::by_guest_port;
use crate::host::Setup;
use crate::path::{Impairments, Network, Side};
use crate::transfer::{ALL, DUPLICATION, LOSS, MB, REORDERING, Transfer};

fn splitting(params: &mut sys::vcc_params) {
    params.act = sys::ACT_SPLIT as u8;
    params.rto_min_us = 20_000;
}

fn transfer(seed: u64) -> Transfer {
    Transfer { treatment: splitting, ..Transfer::new(seed) }
}

fn reached(network: &mut Network, bytes: u64) {
    let end_us = network.now_us() + 3600 * US_PER_S;
    let reached =
        network.run_until_met(end_us, |network| network.received_bytes(Side::Peer) > bytes);
    assert!(reached, "stuck before {bytes}, held {}", network.port().held_bytes());
}

#[test]
fn every_byte_arrives_over_an_impaired_path() {
    for (number, impairments) in
        [Impairments::default(), LOSS, DUPLICATION, REORDERING, ALL].into_iter().enumerate()
    {
        for seed in 0..12 {
            let seed = number as u64 * 100 + seed;
            let stream_bytes = [(1 + seed % 5) * MB, [0, MB][seed as usize % 2]];
            let transfer = Transfer { impairments, stream_bytes, ..transfer(seed) };
            let network = transfer.run();
            let seconds = network.now_us() / US_PER_S;
            // Most take 3 s; where all impairments meet, what is lost again waits for timeouts.
            assert!(seconds < 120, "{seconds} s: {transfer:?}");
        }
    }
}

/// All has been acknowledged to the guest, long before it arrives.
#[test]
fn the_guest_is_acknowledged_before_the_peer_acknowledges() {
    let mut network = Transfer { stream_bytes: [MB, 0], ..transfer(0) }.begin();
    let mut most_bytes = 0;
    network.run_until_met(60 * US_PER_S, |network| {
        let held_bytes = u64::from(network.port().held_bytes());
        most_bytes = held_bytes.max(most_bytes);
        network.received_bytes(Side::Peer) == MB
    });
    assert!(most_bytes > MB / 2, "{most_bytes}");
}

#[test]
fn a_peer_with_a_small_window_receives_every_byte() {
    for seed in 0..12 {
        let transfer = transfer(seed);
        let receive_bytes = [512, 1000, 3000, 20_000][seed as usize % 4];
        let peer = Setup { receive_bytes, ..transfer.peer };
        let stream_bytes = [receive_bytes as u64 * 100, 0];
        let impairments = if seed % 3 == 0 { Impairments::default() } else { ALL };
        Transfer { peer, stream_bytes, impairments, ..transfer }.run();
    }
}

#[test]
fn a_window_that_was_shut_for_minutes_opens_though_the_update_is_lost() {
    for seed in 0..8 {
        let transfer = transfer(seed);
        let peer = Setup { receive_bytes: 60_000, ..transfer.peer };
        let transfer = Transfer { peer, ..transfer };
        let mut network = transfer.begin();
        reached(&mut network, 100_000);
        network.host(Side::Peer).reads = false;
        // Longer than a promise without an answer.
        let before = network.now_us();
        network.run_until(before + 1200 * US_PER_S);
        assert!(network.port().held_bytes() > 0, "{transfer:?}");
        network.loses_next = Some((Side::Peer, |segment| segment.window > 0));
        network.host(Side::Peer).reads = true;
        transfer.finish(&mut network);
    }
}

/// After a RST at both ends, none is connected.
fn are_reset(network: &mut Network) -> bool {
    Side::BOTH.into_iter().all(|side| network.host(side).state() == State::Closed)
}

/// Killed at a seeded moment; another port finds its ledger.
#[test]
fn killing_the_domain_ends_each_connection_or_loses_nothing() {
    let (mut ended, mut completed) = (0, 0);
    for seed in 0..40 {
        let impairments = if seed % 4 == 0 { Impairments::default() } else { ALL };
        let stream_bytes = [MB / 2, [0, MB / 2][seed as usize % 2]];
        let transfer = Transfer { impairments, stream_bytes, ..transfer(seed) };
        let mut network = transfer.begin();
        let memory = Arc::new(Memory::default());
        network.port().keep_ledger(memory.clone());
        let killed_at = seed * 11_000;
        reached(&mut network, killed_at.min(MB / 2 - 1));
        if seed % 5 == 0 {
            // All is acknowledged.
            network.run_until(network.now_us() + 60 * US_PER_S);
        }
        let promises = memory.promises();
        let is_promised = !promises.is_empty();
        network.replace_port_of(transfer.params(), promises);
        let end_us = network.now_us() + 3600 * US_PER_S;
        let mut is_done = false;
        let met = network.run_until_met(end_us, |network| {
            is_done = transfer.is_done(network);
            is_done && !is_promised || are_reset(network)
        });
        assert!(met, "promised: {is_promised}: {transfer:?}");
        ended += u32::from(is_promised);
        completed += u32::from(!is_promised);
        assert!(!is_promised || are_reset(&mut network));
    }
    assert!(ended > 20 && completed > 3, "{ended} ended, {completed} completed");
}

/// Without a port afterwards that knows of it.
#[test]
fn an_end_in_order_ends_each_connection_that_is_promised_more() {
    let mut ended = 0;
    for seed in 0..30 {
        let impairments = if seed % 4 == 0 { Impairments::default() } else { ALL };
        let stream_bytes = [MB / 2, [0, MB / 2][seed as usize % 2]];
        let transfer = Transfer { impairments, stream_bytes, ..transfer(seed) };
        let mut network = transfer.begin();
        let memory = Arc::new(Memory::default());
        network.port().keep_ledger(memory.clone());
        reached(&mut network, seed * 11_000);
        let is_promised = !memory.promises().is_empty();
        network.end_port();
        assert_eq!(
            is_promised,
            !memory.promises().is_empty(),
            "for the next port, if there is one"
        );
        let end_us = network.now_us() + 3600 * US_PER_S;
        let met = network.run_until_met(end_us, |network| {
            !is_promised && transfer.is_done(network) || are_reset(network)
        });
        assert!(met, "promised: {is_promised}: {transfer:?}");
        ended += u32::from(is_promised);
    }
    assert!(ended > 15, "{ended}");
}

/// The peer is gone: the guest sees the end as of a host that gives up.
#[test]
fn a_promise_that_no_peer_answers_is_given_up() {
    for seed in 0..4 {
        let transfer = transfer(seed);
        let mut network = transfer.begin();
        reached(&mut network, 100_000);
        network.impairments.loss_permille = 1001;
        let before_us = network.now_us();
        let end_us = before_us + 3600 * US_PER_S;
        let met = network.run_until_met(end_us, |network| network.port().flows().count() == 0);
        let waited_s = (network.now_us() - before_us) / US_PER_S;
        assert!(met && (890..1000).contains(&waited_s), "{waited_s} s: {transfer:?}");
        network.run_until(network.now_us() + 1);
        assert_eq!(network.host(Side::Guest).state(), State::Closed);
        assert_eq!(network.port().held_bytes(), 0);
    }
}

/// A reload of the policy to each other treatment and back: a promise is kept.
#[test]
fn the_treatment_changes_with_promises_made() {
    let others: [fn(&mut sys::vcc_params); 7] = [
        |params| params.act = sys::ACT_WINDOW as u8,
        |params| params.act = sys::ACT_HOLD as u8,
        |params| {
            params.act = sys::ACT_HOLD as u8;
            params.retransmit = 1;
        },
        |params| params.mode = Mode::Ignore.number(),
        |params| params.mode = Mode::Drain.number(),
        |params| params.mode = Mode::Shadow.number(),
        |params| {
            params.act = sys::ACT_WINDOW as u8;
            params.police = 1;
        },
    ];
    for seed in 0..28 {
        let impairments = if seed % 4 == 0 { Impairments::default() } else { ALL };
        let stream_bytes = [3 * MB, [0, MB][seed as usize % 2]];
        let transfer = Transfer { impairments, stream_bytes, ..transfer(seed) };
        let mut network = transfer.begin();
        network.watch.as_mut().expect("it holds").windows = false;
        let mut other = transfer.params();
        others[seed as usize % others.len()](&mut other.0);
        // Half of them begin otherwise.
        let mut treatments = [transfer.params(), other, transfer.params(), other];
        if seed % 2 == 0 {
            treatments.reverse();
        }
        for (number, params) in (1..).zip(treatments) {
            // By a rule, the flow is judged anew; a policy has no rule that drains.
            match seed % 2 == 0 && params.0.mode != Mode::Drain.number() {
                true => network.port().set_rules(by_guest_port(&[params])),
                false => network.port().set_params(params),
            }
            reached(&mut network, number * (400_000 + seed * 7000));
        }
        transfer.finish(&mut network);
    }
}

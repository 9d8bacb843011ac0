//! `hold` with `retransmit`: the port repairs the losses of the path.

use vcc_engine::sys;

use crate::US_PER_S;
use crate::host::Setup;
use crate::path::{Impairments, Side};
use crate::transfer::{ALL, DUPLICATION, LOSS, MB, REORDERING, Transfer, holding};

fn repairing(params: &mut sys::vcc_params) {
    params.retransmit = 1;
    params.rto_min_us = 20_000;
}

fn transfer(seed: u64) -> Transfer {
    Transfer { treatment: repairing, ..Transfer::new(seed) }
}

/// It takes the time of its losses, not the minutes of smoltcp's retransmission timer.
#[test]
fn every_byte_arrives_soon_over_an_impaired_path() {
    for (number, impairments) in
        [Impairments::default(), LOSS, DUPLICATION, REORDERING, ALL].into_iter().enumerate()
    {
        for seed in 0..12 {
            let seed = number as u64 * 100 + seed;
            let stream_bytes = [(1 + seed % 5) * MB, [0, MB][seed as usize % 2]];
            let transfer = Transfer { impairments, stream_bytes, ..transfer(seed) };
            let network = transfer.run();
            let seconds = network.now_us() / US_PER_S;
            assert!(seconds < 60, "{seconds} s: {transfer:?}");
        }
    }
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

/// The domain's persist timer, not the guest's, asks for the window.
#[test]
fn a_window_that_was_shut_for_a_minute_opens_though_the_update_is_lost() {
    for seed in 0..8 {
        let transfer = transfer(seed);
        let peer = Setup { receive_bytes: 60_000, ..transfer.peer };
        let transfer = Transfer { peer, ..transfer };
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

/// Killing the domain: the guest has all that is not acknowledged.
#[test]
fn no_byte_is_lost_with_the_domain() {
    for seed in 0..20 {
        let impairments = if seed % 4 == 0 { Impairments::default() } else { ALL };
        let stream_bytes = [MB, [0, MB][seed as usize % 2]];
        let transfer = Transfer { impairments, stream_bytes, ..transfer(seed) };
        let mut network = transfer.begin();
        let killed_at = 50_000 + seed * 48_000;
        network
            .run_until_met(60 * US_PER_S, |network| network.received_bytes(Side::Peer) > killed_at);
        network.replace_port(holding(transfer.underlay));
        transfer.finish(&mut network);
    }
}

/// With segments held and in flight; what left before is the guest's to repair.
#[test]
fn the_guest_and_the_port_repair_in_turns() {
    for seed in 0..20 {
        let impairments = if seed % 4 == 0 { Impairments::default() } else { ALL };
        let transfer = Transfer { impairments, stream_bytes: [3 * MB, 0], ..transfer(seed) };
        let mut network = transfer.begin();
        for turn in 1..8 {
            let at = turn * 300_000 + seed * 7000;
            network
                .run_until_met(3600 * US_PER_S, |network| network.received_bytes(Side::Peer) > at);
            let mut params = transfer.params();
            params.0.retransmit = u8::from(turn % 2 == 0);
            network.port().set_params(params);
        }
        transfer.finish(&mut network);
    }
}

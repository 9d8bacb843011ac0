//! A guest that moves from port to port, with each way to act, with data held and promised: every byte
//! arrives once, and the laws hold at each port.

use vcc_domain::Port;
use vcc_engine::Params;

use crate::common::rules::by_guest_port;
use crate::path::{Network, Side};
use crate::reload::{STEP_BYTES, STREAM_BYTES, Way, begin, expect, has_arrived, until, ways};

const MOVES: u64 = 5;
/// While the guest runs on neither host.
const PAUSES_US: [u64; 3] = [0, 7_000, 400_000];

fn port(params: Params) -> Port {
    let mut port = Port::new(params, 4);
    port.set_rules(by_guest_port(&[params]));
    port
}

fn progress(network: &mut Network, what: &str) {
    let then = Side::BOTH.map(|side| network.received_bytes(side) + STEP_BYTES);
    until(network, what, |network| {
        let goes_on =
            |(side, then): (Side, u64)| network.received_bytes(side) > then.min(STREAM_BYTES - 1);
        Side::BOTH.into_iter().zip(then).any(goes_on)
    });
}

/// The hosts compare each byte; a connection that was reset would not arrive.
fn moves(seed: u64, ways: [Way; 2]) {
    let mut network = begin(seed, ways[0]);
    expect(&mut network, &ways);
    let describe = |what: &str| format!("{what} of {ways:?}, seed {seed}");
    until(&mut network, &describe("data held"), |network| ways[0].has_data(network));
    for number in 1..=MOVES {
        let pause_us = PAUSES_US[(seed + number) as usize % PAUSES_US.len()];
        network.move_guest(port(ways[number as usize % 2].params()), pause_us);
        if !has_arrived(&mut network) {
            progress(&mut network, &describe("data after a move"));
        }
    }
    until(&mut network, &describe("the end"), has_arrived);
    until(&mut network, &describe("an empty port"), |network| {
        let port = network.port();
        port.held_bytes() + port.promised_bytes() == 0
    });
}

#[test]
fn every_byte_arrives_however_often_a_guest_moves() {
    for (number, way) in (0..).zip(ways()) {
        for seed in 0..4 {
            moves(number * 4 + seed, [way; 2]);
        }
    }
}

#[test]
fn the_policy_of_each_host_is_its_own() {
    let pairs = ways().flat_map(|from| ways().map(move |to| [from, to]));
    for (seed, pair) in (0..).zip(pairs.filter(|[from, to]| from != to)).step_by(3) {
        moves(seed, pair);
    }
}

//! A policy that is read again: from each way to act to each other, and back, with data held and
//! promised.

use vcc_engine::{Params, sys};

use crate::common::promises::Promises;
use crate::common::rules::by_guest_port;
use crate::common::watch::Watch;
use crate::host::Host;
use crate::path::{Impairments, Network, Side, Turns};
use crate::transfer::{ALL, MB};
use crate::{ETHERNET_MTU, US_PER_S, setup};

pub const STREAM_BYTES: u64 = 2 * MB;
pub const STEP_BYTES: u64 = MB / 4;
/// Of the guest, which has a core with others.
const TURNS: Turns = Turns { every_us: 60_000, runs_us: 1_000 };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    act: sys::vcc_act,
    retransmit: bool,
    receive: sys::vcc_receive,
}

pub fn ways() -> impl Iterator<Item = Way> + Clone {
    const ACTS: [(sys::vcc_act, bool); 4] = [
        (sys::ACT_WINDOW, false),
        (sys::ACT_HOLD, false),
        (sys::ACT_HOLD, true),
        (sys::ACT_SPLIT, false),
    ];
    const RECEIVES: [sys::vcc_receive; 3] =
        [sys::RECEIVE_GUEST, sys::RECEIVE_RING, sys::RECEIVE_BUFFER];
    RECEIVES
        .into_iter()
        .flat_map(|receive| ACTS.map(|(act, retransmit)| Way { act, retransmit, receive }))
}

impl Way {
    pub fn params(self) -> Params {
        Params::with(|params| {
            params.act = self.act as u8;
            params.retransmit = self.retransmit.into();
            params.receive = self.receive as u8;
        })
    }

    /// Does the port have what a reload must not lose?
    pub fn has_data(self, network: &mut Network) -> bool {
        // With a buffer, the peer is not slowed down by the guest.
        let has_begun = match self.receive {
            sys::RECEIVE_BUFFER => network.received_bytes(Side::Guest) > 0,
            _ => network.received_bytes(Side::Peer) > STEP_BYTES,
        };
        let port = network.port();
        has_begun
            && (self.act == sys::ACT_WINDOW || port.held_bytes() > 0)
            && (self.receive == sys::RECEIVE_GUEST || port.promised_bytes() > 0)
    }
}

pub fn begin(seed: u64, way: Way) -> Network {
    let guest = setup(ETHERNET_MTU, seed % 2 == 0);
    let hosts = [Host::new(Side::Guest, guest), Host::new(Side::Peer, setup(ETHERNET_MTU, true))];
    let mut network = Network::new(hosts, 200, way.params());
    network.port().set_rules(by_guest_port(&[way.params()]));
    network.impair(seed, if seed % 4 < 2 { Impairments::default() } else { ALL });
    network.turns = Some(TURNS);
    network.ring_frames = 256;
    // Payload and checksums: windows are another treatment's after a reload.
    let mut watch = Watch::new(Side::Guest.salt());
    (watch.windows, watch.splits) = (false, true);
    network.watch = Some(watch);
    network.promises = Some(Promises::default());
    expect(&mut network, &[way]);
    network.connect(Side::BOTH[(seed / 2) as usize % 2]);
    Side::BOTH.into_iter().for_each(|side| network.host(side).send(STREAM_BYTES));
    network
}

/// Connections are treated in these ways.
pub fn expect(network: &mut Network, ways: &[Way]) {
    let Some(promises) = &mut network.promises else { return };
    promises.buffers = ways.iter().any(|way| way.receive == sys::RECEIVE_BUFFER);
    promises.may_shrink = promises.buffers && ways.iter().any(|way| *way != ways[0]);
}

pub fn until(network: &mut Network, what: &str, met: impl FnMut(&mut Network) -> bool) {
    let end_us = network.now_us() + 3600 * US_PER_S;
    let is_met = network.run_until_met(end_us, met);
    let received = Side::BOTH.map(|side| network.received_bytes(side));
    let port = network.port();
    let has = (port.held_bytes(), port.promised_bytes());
    assert!(is_met, "never {what}: received {received:?}, held and promised {has:?}");
}

pub fn has_arrived(network: &mut Network) -> bool {
    Side::BOTH
        .into_iter()
        .all(|side| network.received_bytes(side) == STREAM_BYTES && network.host(side).has_sent())
}

/// The hosts compare each byte; a connection that was reset would not arrive.
#[test]
fn from_each_way_to_each_other_and_back_every_byte_arrives() {
    let pairs = ways().flat_map(|from| ways().map(move |to| (from, to)));
    for (seed, (from, to)) in (0..).zip(pairs.filter(|(from, to)| from != to)) {
        let mut network = begin(seed, from);
        expect(&mut network, &[from, to]);
        let describe = |what| format!("{what} of {from:?} to {to:?}, seed {seed}");
        until(&mut network, &describe("data held"), |network| from.has_data(network));
        network.port().set_rules(by_guest_port(&[to.params()]));
        let then = Side::BOTH.map(|side| network.received_bytes(side) + STEP_BYTES);
        until(&mut network, &describe("data after a reload"), |network| {
            Side::BOTH.into_iter().zip(then).any(|(side, then)| network.received_bytes(side) > then)
        });
        network.port().set_rules(by_guest_port(&[from.params()]));
        until(&mut network, &describe("the end"), has_arrived);
        until(&mut network, &describe("an empty port"), |network| {
            let port = network.port();
            port.held_bytes() + port.promised_bytes() == 0
        });
    }
}

//! A transfer between two hosts, of which the guest's port holds.

use vcc_engine::{Params, Underlay, sys};

use crate::host::{Host, Setup};
use crate::path::{Impairments, Network, Side};
use crate::{ETHERNET_MTU, US_PER_S, setup};

const UNDERLAYS: [&str; 4] = ["reno", "reno-ecn", "dctcp", "cubic"];

pub fn holding(underlay: &str) -> Params {
    let underlay: Underlay = underlay.parse().expect("an underlay");
    Params(sys::vcc_params {
        underlay: underlay.number(),
        act: sys::ACT_HOLD as u8,
        ..Params::default().0
    })
}

/// A transfer through a port that holds.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    pub seed: u64,
    pub underlay: &'static str,
    /// What else is its treatment's.
    pub treatment: fn(&mut sys::vcc_params),
    pub guest: Setup,
    pub peer: Setup,
    pub opener: Side,
    /// The streams of guest and peer.
    pub stream_bytes: [u64; 2],
    pub mark_every: u32,
    pub impairments: Impairments,
}

pub const MB: u64 = 1 << 20;

impl Transfer {
    pub fn new(seed: u64) -> Self {
        Transfer {
            seed,
            underlay: UNDERLAYS[seed as usize % UNDERLAYS.len()],
            treatment: |_| (),
            guest: Setup { nagle: seed % 3 > 0, ..setup(ETHERNET_MTU, seed % 2 == 0) },
            peer: setup([ETHERNET_MTU, 1400, 576][seed as usize % 3], true),
            opener: Side::BOTH[(seed / 2) as usize % 2],
            stream_bytes: [MB, 0],
            mark_every: 200,
            impairments: Impairments::default(),
        }
    }

    pub fn params(&self) -> Params {
        let mut params = holding(self.underlay);
        (self.treatment)(&mut params.0);
        params
    }

    pub fn begin(&self) -> Network {
        let hosts = [Host::new(Side::Guest, self.guest), Host::new(Side::Peer, self.peer)];
        let mut network = Network::new(hosts, self.mark_every, self.params());
        network.impair(self.seed, self.impairments);
        network.connect(self.opener);
        for side in Side::BOTH {
            let stream_bytes = self.stream_bytes[side as usize];
            match self.impairments {
                Impairments { loss_permille: 0, reorder_permille: 0, .. } => {
                    network.host(side).send_and_close(stream_bytes);
                }
                _ => network.host(side).send(stream_bytes),
            }
        }
        network
    }

    pub fn run(&self) -> Network {
        let mut network = self.begin();
        self.finish(&mut network);
        network
    }

    /// Both streams arrive and are acknowledged, within an hour: smoltcp waits up to a minute for
    /// each of the losses of a large flight.
    pub fn finish(&self, network: &mut Network) {
        let end_us = network.now_us() + 3600 * US_PER_S;
        let done = network.run_until_met(end_us, |network| self.is_done(network));
        let state =
            Side::BOTH.map(|side| (network.received_bytes(side), network.host(side).state()));
        assert!(done, "received {state:?}, held {}: {self:?}", network.port().held_bytes());
        assert_eq!(network.port().held_bytes(), 0, "{self:?}");
    }

    pub fn is_done(&self, network: &mut Network) -> bool {
        let is_held = network.port().held_bytes() > 0;
        !is_held
            && Side::BOTH.into_iter().all(|side| {
                network.received_bytes(side.other()) == self.stream_bytes[side as usize]
                    && network.host(side).has_sent()
            })
    }
}

pub const LOSS: Impairments =
    Impairments { loss_permille: 10, duplicate_permille: 0, reorder_permille: 0 };
pub const DUPLICATION: Impairments =
    Impairments { loss_permille: 0, duplicate_permille: 20, reorder_permille: 0 };
pub const REORDERING: Impairments =
    Impairments { loss_permille: 0, duplicate_permille: 0, reorder_permille: 30 };
pub const ALL: Impairments =
    Impairments { loss_permille: 10, duplicate_permille: 20, reorder_permille: 30 };

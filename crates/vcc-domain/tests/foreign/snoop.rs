//! `snoop`: smoltcp receives in turns, and its port acknowledges what its ring has.

use vcc_engine::{Params, sys};

use crate::host::{Host, Setup};
use crate::path::{Impairments, Network, Side, Turns};
use crate::{BOTH, ETHERNET_MTU, US_PER_S, setup};

const KB: u64 = 1 << 10;
const MB: u64 = 1 << 20;
const TURNS: Turns = Turns { every_us: 60_000, runs_us: 1_000 };
const ALL: Impairments =
    Impairments { loss_permille: 10, duplicate_permille: 20, reorder_permille: 30 };

fn snooping(seed: u64) -> Params {
    let acts = [sys::ACT_WINDOW, sys::ACT_HOLD];
    let act = acts[seed as usize / 4 % 2] as u8;
    Params(sys::vcc_params { act, snoop: 1, ..Params::default().0 })
}

/// Two streams through a port that snoops, to a guest that runs in turns.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    seed: u64,
    guest: Setup,
    peer: Setup,
    opener: Side,
    /// The streams of guest and peer.
    stream_bytes: [u64; 2],
    impairments: Impairments,
    /// Where nothing is lost ([`Host::send_and_close`]).
    closes: bool,
    turns: Option<Turns>,
    params: Params,
}

impl Transfer {
    fn new(seed: u64) -> Self {
        Transfer {
            seed,
            guest: setup(ETHERNET_MTU, seed % 2 == 0),
            peer: setup([ETHERNET_MTU, 1400, 576][seed as usize % 3], true),
            opener: Side::BOTH[(seed / 2) as usize % 2],
            stream_bytes: [0, MB],
            impairments: Impairments::default(),
            closes: false,
            turns: Some(TURNS),
            params: snooping(seed),
        }
    }

    fn begin(&self) -> Network {
        let hosts = [Host::new(Side::Guest, self.guest), Host::new(Side::Peer, self.peer)];
        let mut network = Network::new(hosts, 200, self.params);
        network.impair(self.seed, self.impairments);
        network.turns = self.turns;
        network.connect(self.opener);
        for side in Side::BOTH {
            let stream_bytes = self.stream_bytes[side as usize];
            match self.closes {
                true => network.host(side).send_and_close(stream_bytes),
                false => network.host(side).send(stream_bytes),
            }
        }
        network
    }

    fn run(&self) -> Network {
        let mut network = self.begin();
        self.finish(&mut network);
        network
    }

    /// Both streams arrive and are acknowledged, and the guest has acknowledged what was promised.
    fn finish(&self, network: &mut Network) {
        let end_us = network.now_us() + 3600 * US_PER_S;
        let done = network.run_until_met(end_us, |network| self.is_done(network));
        let state =
            Side::BOTH.map(|side| (network.received_bytes(side), network.host(side).state()));
        assert!(done, "received {state:?}, {} promised: {self:?}", network.port().promised_bytes());
    }

    fn is_done(&self, network: &mut Network) -> bool {
        Side::BOTH.into_iter().all(|side| {
            network.received_bytes(side.other()) == self.stream_bytes[side as usize]
                && network.host(side).has_sent()
        }) && network.port().promised_bytes() == 0
    }

    /// Until the peer has heard that all it sends has arrived.
    fn acknowledged_us(&self) -> u64 {
        let mut network = self.begin();
        while !network.host(Side::Peer).has_sent_stream() {
            network.run_until(network.now_us() + 1000);
        }
        let at_us = network.now_us();
        self.finish(&mut network);
        at_us
    }
}

#[test]
fn every_byte_arrives_over_an_impaired_path() {
    for (number, impairments) in [Impairments::default(), ALL].into_iter().enumerate() {
        for seed in 0..16 {
            let seed = number as u64 * 100 + seed;
            let stream_bytes = [[0, MB][seed as usize / 8 % 2], (1 + seed % 3) * MB];
            let closes = number == 0;
            let transfer = Transfer { impairments, closes, stream_bytes, ..Transfer::new(seed) };
            let network = transfer.run();
            let promises = network.promises.expect("it snoops");
            assert!(promises.promises > 50, "{}: {transfer:?}", promises.promises);
        }
    }
}

/// The turns of slow start are saved.
#[test]
fn a_peer_need_not_wait_for_the_guests_turns() {
    for seed in 0..8 {
        let path = Turns { every_us: 300_000, ..TURNS };
        let opener = Side::Peer;
        let stream_bytes = [0, 60 * KB];
        let with = Transfer { turns: Some(path), opener, stream_bytes, ..Transfer::new(seed) };
        let without = Transfer { params: Params::default(), ..with };
        let [with_us, without_us] = [with, without].map(|transfer| transfer.acknowledged_us());
        // Two of its turns.
        assert!(with_us + 500_000 < without_us, "{with_us} us, without {without_us}: {with:?}");
    }
}

/// A guest that always runs is neither slowed down nor spoken over.
#[test]
fn alone_on_its_core_nothing_changes() {
    for seed in 0..8 {
        let with = Transfer { turns: None, ..Transfer::new(seed) };
        let without = Transfer { params: Params::default(), ..with };
        let [with_us, without_us] = [with, without].map(|transfer| transfer.acknowledged_us());
        assert!(with_us as f64 <= without_us as f64 * 1.02, "{with_us}, without {without_us}");
    }
}

#[test]
fn a_guest_with_a_small_window_receives_every_byte() {
    for seed in 0..12 {
        let transfer = Transfer::new(seed);
        let receive_bytes = [512, 1000, 3000, 20_000][seed as usize % 4];
        let guest = Setup { receive_bytes, ..transfer.guest };
        let stream_bytes = [0, receive_bytes as u64 * 40];
        let impairments = if seed % 3 == 0 { Impairments::default() } else { ALL };
        Transfer { guest, stream_bytes, impairments, ..transfer }.run();
    }
}

/// What finds no room is not promised.
#[test]
fn a_full_ring_loses_nothing_that_was_promised() {
    for seed in 0..8 {
        let transfer = Transfer::new(seed);
        let mut network = transfer.begin();
        network.ring_frames = 8 + seed as usize * 8;
        transfer.finish(&mut network);
    }
}

/// Another port without state takes over: the driver domain has been killed.
#[test]
fn no_byte_is_lost_with_the_domain() {
    let mut killed_with_promises = 0;
    for seed in 0..40 {
        let impairments = if seed % 4 == 0 { Impairments::default() } else { ALL };
        let stream_bytes = [[0, MB][seed as usize / 2 % 2], MB];
        let transfer = Transfer { impairments, stream_bytes, ..Transfer::new(seed) };
        let mut network = transfer.begin();
        let killed_us = 300_000 + seed * 37_000;
        network.run_until(killed_us);
        killed_with_promises += u32::from(network.port().promised_bytes() > 0);
        network.replace_port(transfer.params);
        network.promises = None;
        transfer.finish(&mut network);
    }
    assert!(killed_with_promises > 5, "{killed_with_promises}");
}

/// A guest discards some of what was in its ring, as Linux does when it lacks memory. It gets it
/// again, for its arrival has been acknowledged to the peer.
#[test]
fn what_a_guest_discards_it_is_given_again() {
    for seed in 0..8 {
        let stream_bytes = [[0, MB][seed as usize / 4 % 2], MB];
        let transfer = Transfer { stream_bytes, ..Transfer::new(seed) };
        let mut network = transfer.begin();
        network.discards_permille = 20;
        transfer.finish(&mut network);
    }
}

/// A guest that takes nothing of what was promised ends the connection, at both ends.
#[test]
fn a_promise_that_cannot_be_kept_ends_in_a_reset() {
    for timestamps in BOTH {
        let transfer = Transfer { guest: setup(ETHERNET_MTU, timestamps), ..Transfer::new(1) };
        let mut network = transfer.begin();
        network.run_until_met(60 * US_PER_S, |network| network.received_bytes(Side::Guest) > 0);
        network.discards = Some(|segment| !segment.payload.is_empty());
        let ended = network.run_until_met(1000 * US_PER_S, |network| {
            Side::BOTH.map(|side| network.host(side).state())
                == [smoltcp::socket::tcp::State::Closed; 2]
        });
        let states = Side::BOTH.map(|side| network.host(side).state());
        assert!(ended, "{states:?}");
        assert_eq!(network.port().counters().get(sys::COUNT_PROMISE_BROKEN), 1);
        assert_eq!(network.port().promised_bytes(), 0);
    }
}

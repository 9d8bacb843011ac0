//! `receive`: smoltcp receives in turns, and its port acknowledges what its ring has.

use std::sync::Arc;

use vcc_engine::{Params, sys};

use crate::common::memory::Memory;
use crate::host::{Host, Setup};
use crate::path::{Impairments, Network, Side, Turns};
use crate::{BOTH, ETHERNET_MTU, US_PER_S, setup};

pub const KB: u64 = 1 << 10;
pub const MB: u64 = 1 << 20;
const TURNS: Turns = Turns { every_us: 60_000, runs_us: 1_000 };
pub const ALL: Impairments =
    Impairments { loss_permille: 10, duplicate_permille: 20, reorder_permille: 30 };

const WAYS: [sys::vcc_receive; 2] = [sys::RECEIVE_RING, sys::RECEIVE_BUFFER];

fn receiving(seed: u64, receive: sys::vcc_receive) -> Params {
    let acts = [sys::ACT_WINDOW, sys::ACT_HOLD];
    let act = acts[seed as usize / 4 % 2] as u8;
    Params(sys::vcc_params { act, receive: receive as u8, ..Params::default().0 })
}

/// Two streams through a port that snoops, to a guest that runs in turns.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    pub seed: u64,
    pub guest: Setup,
    pub peer: Setup,
    pub opener: Side,
    /// The streams of guest and peer.
    pub stream_bytes: [u64; 2],
    pub impairments: Impairments,
    /// Where nothing is lost ([`Host::send_and_close`]).
    pub closes: bool,
    pub turns: Option<Turns>,
    pub params: Params,
}

impl Transfer {
    pub fn new(seed: u64, receive: sys::vcc_receive) -> Self {
        Transfer {
            seed,
            guest: setup(ETHERNET_MTU, seed % 2 == 0),
            peer: setup([ETHERNET_MTU, 1400, 576][seed as usize % 3], true),
            opener: Side::BOTH[(seed / 2) as usize % 2],
            stream_bytes: [0, MB],
            impairments: Impairments::default(),
            closes: false,
            turns: Some(TURNS),
            params: receiving(seed, receive),
        }
    }

    fn begin(&self) -> Network {
        let hosts = [Host::new(Side::Guest, self.guest), Host::new(Side::Peer, self.peer)];
        let mut network = Network::new(hosts, 200, self.params);
        network.impair(self.seed, self.impairments);
        network.turns = self.turns;
        network.connect(self.opener);
        self.send(&mut network);
        network
    }

    /// Both ends begin their streams.
    pub fn send(&self, network: &mut Network) {
        for side in Side::BOTH {
            let stream_bytes = self.stream_bytes[side as usize];
            match self.closes {
                true => network.host(side).send_and_close(stream_bytes),
                false => network.host(side).send(stream_bytes),
            }
        }
    }

    fn run(&self) -> Network {
        let mut network = self.begin();
        self.finish(&mut network);
        network
    }

    /// Both streams arrive and are acknowledged, and the guest has acknowledged what was promised.
    pub fn finish(&self, network: &mut Network) {
        let end_us = network.now_us() + 3600 * US_PER_S;
        let done = network.run_until_met(end_us, |network| self.is_done(network));
        let state =
            Side::BOTH.map(|side| (network.received_bytes(side), network.host(side).state()));
        assert!(done, "received {state:?}, {} promised: {self:?}", network.port().promised_bytes());
    }

    pub fn is_done(&self, network: &mut Network) -> bool {
        Side::BOTH.into_iter().all(|side| {
            network.received_bytes(side.other()) == self.stream_bytes[side as usize]
                && network.host(side).has_sent()
        }) && network.port().promised_bytes() == 0
    }

    /// Until the peer has heard that all it sends has arrived.
    fn acknowledged_us(&self) -> u64 {
        self.until_acknowledged_us(self.begin())
    }

    /// The same of a transfer that has begun, from then on.
    pub fn until_acknowledged_us(&self, mut network: Network) -> u64 {
        let begun_us = network.now_us();
        while !network.host(Side::Peer).has_sent_stream() {
            network.run_until(network.now_us() + 1000);
        }
        let took_us = network.now_us() - begun_us;
        self.finish(&mut network);
        took_us
    }
}

#[test]
fn every_byte_arrives_over_an_impaired_path() {
    let cases = WAYS.map(|way| [(Impairments::default(), way), (ALL, way)]).into_iter().flatten();
    for (number, (impairments, way)) in cases.enumerate() {
        for seed in 0..16 {
            let seed = number as u64 * 100 + seed;
            let stream_bytes = [[0, MB][seed as usize / 8 % 2], (1 + seed % 3) * MB];
            let closes = number % 2 == 0;
            let new = Transfer::new(seed, way);
            let transfer = Transfer { impairments, closes, stream_bytes, ..new };
            let network = transfer.run();
            let promises = network.promises.expect("it snoops");
            assert!(promises.promises > 50, "{}: {transfer:?}", promises.promises);
        }
    }
}

/// The turns of slow start are saved.
#[test]
fn a_peer_need_not_wait_for_the_guests_turns() {
    for seed in 0..16 {
        let way = WAYS[seed as usize / 8];
        let path = Turns { every_us: 300_000, ..TURNS };
        let opener = Side::Peer;
        let stream_bytes = [0, 60 * KB];
        let with = Transfer { turns: Some(path), opener, stream_bytes, ..Transfer::new(seed, way) };
        let without = Transfer { params: Params::default(), ..with };
        let [with_us, without_us] = [with, without].map(|transfer| transfer.acknowledged_us());
        // Two of its turns.
        assert!(with_us + 500_000 < without_us, "{with_us} us, without {without_us}: {with:?}");
    }
}

/// A guest that always runs is neither slowed down nor spoken over.
#[test]
fn alone_on_its_core_nothing_changes() {
    for seed in 0..16 {
        let with = Transfer { turns: None, ..Transfer::new(seed, WAYS[seed as usize / 8]) };
        let without = Transfer { params: Params::default(), ..with };
        let [with_us, without_us] = [with, without].map(|transfer| transfer.acknowledged_us());
        assert!(with_us as f64 <= without_us as f64 * 1.02, "{with_us}, without {without_us}");
    }
}

#[test]
fn a_guest_with_a_small_window_receives_every_byte() {
    for seed in 0..24 {
        let transfer = Transfer::new(seed, WAYS[seed as usize / 12]);
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
    for seed in 0..16 {
        let transfer = Transfer::new(seed, WAYS[seed as usize / 8]);
        let mut network = transfer.begin();
        network.ring_frames = 8 + seed as usize % 8 * 8;
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
        let new = Transfer::new(seed, sys::RECEIVE_RING);
        let transfer = Transfer { impairments, stream_bytes, ..new };
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
    for seed in 0..16 {
        let stream_bytes = [[0, MB][seed as usize / 4 % 2], MB];
        let transfer = Transfer { stream_bytes, ..Transfer::new(seed, WAYS[seed as usize / 8]) };
        let mut network = transfer.begin();
        network.discards_permille = 20;
        transfer.finish(&mut network);
    }
}

/// A guest that takes nothing of what was promised ends the connection, at both ends.
#[test]
fn a_promise_that_cannot_be_kept_ends_in_a_reset() {
    for (timestamps, way) in BOTH.into_iter().zip(WAYS) {
        let guest = setup(ETHERNET_MTU, timestamps);
        let transfer = Transfer { guest, ..Transfer::new(1, way) };
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

/// 1 MB toward a guest that runs for a moment each 300 ms: its peer waits for few of its turns.
#[test]
fn a_buffer_saves_the_turns_in_which_the_guest_opens_its_window() {
    for seed in 0..8 {
        let turns = Some(Turns { every_us: 300_000, ..TURNS });
        let [by_buffer_us, by_ring_us] = [sys::RECEIVE_BUFFER, sys::RECEIVE_RING].map(|way| {
            let opener = Side::Peer;
            Transfer { turns, opener, ..Transfer::new(seed, way) }.acknowledged_us()
        });
        assert!(by_buffer_us * 2 < by_ring_us, "{by_buffer_us} us, by the ring {by_ring_us}");
    }
}

/// What only the killed port had ends the connection at both ends; without, every byte arrives.
#[test]
fn no_byte_is_lost_in_silence_with_the_buffer() {
    let (mut ended, mut continued) = (0, 0);
    for seed in 0..60 {
        let impairments = if seed % 4 == 0 { Impairments::default() } else { ALL };
        let new = Transfer::new(seed, sys::RECEIVE_BUFFER);
        let transfer = Transfer { impairments, stream_bytes: [0, MB], ..new };
        let mut network = transfer.begin();
        let memory = Arc::new(Memory::default());
        network.port().keep_ledger(memory.clone());
        network.run_until(100_000 + seed * 4_000);
        let promises = memory.promises();
        let is_promised = !promises.is_empty();
        network.replace_port_of(transfer.params, promises);
        network.promises = None;
        if !is_promised {
            continued += 1;
            transfer.finish(&mut network);
            continue;
        }
        ended += 1;
        let is_over = network.run_until_met(3600 * US_PER_S, |network| {
            Side::BOTH.map(|side| network.host(side).state())
                == [smoltcp::socket::tcp::State::Closed; 2]
        });
        let states = Side::BOTH.map(|side| network.host(side).state());
        assert!(is_over, "{states:?}, {seed}");
    }
    assert!(ended > 5 && continued > 5, "{ended} ended, {continued} continued");
}

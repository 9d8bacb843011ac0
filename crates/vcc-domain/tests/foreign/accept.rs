//! `receive = "accept"`: the port answers SYNs in the name of a guest that runs in turns, and each
//! connection completes exactly, or both ends see that it has ended. smoltcp chooses its own initial
//! sequence numbers, and so does the port.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

use smoltcp::socket::tcp::State;
use vcc_domain::{Port, Promise};
use vcc_engine::{FlowKey, Params, sys};

use crate::US_PER_S;
use crate::common::memory::Memory;
use crate::host::{Host, Setup};
use crate::path::{Impairments, Network, Side, Turns};
use crate::snoop::{ALL, KB, MB, Transfer};

const TURNS: Turns = Turns { every_us: 300_000, runs_us: 1_000 };
/// The peer's, of the connection that is tested; another one comes first.
const PORT: u16 = 6000;

fn hash(key: &FlowKey) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(key)
}

fn transfer(seed: u64) -> Transfer {
    let acts = [sys::ACT_WINDOW, sys::ACT_HOLD, sys::ACT_SPLIT];
    let act = acts[seed as usize / 4 % acts.len()] as u8;
    let params = Params::with(|params| {
        (params.act, params.receive) = (act, sys::RECEIVE_ACCEPT as u8);
    });
    let turns = Some(TURNS);
    Transfer { turns, params, opener: Side::Peer, ..Transfer::new(seed, sys::RECEIVE_ACCEPT) }
}

impl Transfer {
    fn setups(&self) -> [Setup; 2] {
        [self.guest, self.peer]
    }

    /// The guest has answered another SYN, and its peer of then has gone.
    fn known(&self) -> Network {
        let hosts = [Host::new(Side::Guest, self.guest), Host::new(Side::Peer, self.peer)];
        let mut network = Network::new(hosts, 200, self.params);
        network.port().set_isn_hash(Arc::new(hash));
        network.connect(Side::Peer);
        let opens = network.run_until_met(10 * US_PER_S, |network| {
            Side::BOTH.map(|side| network.host(side).state()) == [State::Established; 2]
        });
        assert!(opens);
        network.host(Side::Peer).abort();
        network.run_until(network.now_us() + US_PER_S);
        assert_eq!(network.host(Side::Guest).state(), State::Closed);
        network.renew_hosts(self.setups());
        network.turns = self.turns;
        // Its turn has just ended.
        network.run_until(network.now_us().next_multiple_of(TURNS.every_us) + 2 * TURNS.runs_us);
        network.impair(self.seed, self.impairments);
        network
    }

    fn open(&self, network: &mut Network) {
        network.host(Side::Peer).open_from(PORT);
        self.send(network);
    }

    fn begin_known(&self) -> Network {
        let mut network = self.known();
        network.host(Side::Guest).listen();
        self.open(&mut network);
        network
    }
}

fn accepted(network: &mut Network) -> u64 {
    network.port().counters().get(sys::COUNT_ACCEPTED)
}

fn broken(network: &mut Network) -> u64 {
    network.port().counters().get(sys::COUNT_PROMISE_BROKEN)
}

/// Both ends see that the connection has ended. One that listens does so again after a RST.
fn expect_end(network: &mut Network, within_us: u64, what: &str) {
    let end_us = network.now_us() + within_us;
    let is_over = network.run_until_met(end_us, |network| {
        let [guest, peer] = Side::BOTH.map(|side| network.host(side).state());
        matches!(guest, State::Closed | State::Listen) && peer == State::Closed
    });
    let states = Side::BOTH.map(|side| network.host(side).state());
    assert!(is_over, "{what}: {states:?}");
}

#[test]
fn every_byte_arrives() {
    for (number, impairments) in [Impairments::default(), ALL].into_iter().enumerate() {
        for seed in 0..24 {
            let stream_bytes = [[0, MB][seed as usize / 6 % 2], (1 + seed % 3) * MB];
            let closes = number == 0;
            let turns = [Some(TURNS), None][seed as usize / 12];
            let transfer = Transfer { impairments, stream_bytes, closes, turns, ..transfer(seed) };
            let mut network = transfer.begin_known();
            transfer.finish(&mut network);
            assert_eq!(accepted(&mut network), 1, "{transfer:?}");
        }
    }
}

/// Neither the handshake nor slow start costs the peer a turn of the guest.
#[test]
fn a_peer_is_answered_between_the_guests_turns() {
    for seed in 0..12 {
        let with = Transfer { stream_bytes: [0, 60 * KB], ..transfer(seed) };
        let params = Params::with(|params| {
            (params.act, params.receive) = (with.params.0.act, sys::RECEIVE_BUFFER as u8);
        });
        let without = Transfer { params, ..with };
        let [with_us, without_us] =
            [with, without].map(|transfer| transfer.until_acknowledged_us(transfer.begin_known()));
        assert!(with_us < 250_000 && without_us > 300_000, "{with_us} us, without {without_us}");
    }
}

#[test]
fn a_port_that_the_guest_has_closed_ends_the_connection() {
    for seed in 0..12 {
        let transfer = transfer(seed);
        let mut network = transfer.known();
        transfer.open(&mut network);
        expect_end(&mut network, 10 * US_PER_S, "a closed port");
        assert_eq!((accepted(&mut network), broken(&mut network)), (1, 1));
        // It is known now.
        network.renew_hosts(transfer.setups());
        network.host(Side::Peer).open_from(PORT + 1);
        expect_end(&mut network, 10 * US_PER_S, "another connection");
        assert_eq!((accepted(&mut network), broken(&mut network)), (1, 1));
    }
}

/// A guest whose options are others than before, as after a change of its settings.
#[test]
fn an_answer_with_other_terms_ends_the_connection() {
    for seed in 0..12 {
        let transfer = transfer(seed);
        let mut network = transfer.known();
        let guest = Setup { receive_bytes: 10_000, ..transfer.guest };
        network.renew_hosts([guest, transfer.peer]);
        network.host(Side::Guest).listen();
        transfer.open(&mut network);
        expect_end(&mut network, 10 * US_PER_S, "other terms");
        assert_eq!((accepted(&mut network), broken(&mut network)), (1, 1));
        let changed = Transfer { guest, ..transfer };
        network.renew_hosts(changed.setups());
        network.host(Side::Guest).listen();
        network.host(Side::Peer).open_from(PORT + 1);
        network.host(Side::Peer).send(MB);
        changed.finish(&mut network);
        assert_eq!(accepted(&mut network), 1, "the guest itself answers");
    }
}

#[test]
fn a_guest_that_never_runs_ends_the_connection() {
    for seed in 0..4 {
        let turns = Some(Turns { every_us: 100_000 * US_PER_S, runs_us: 1 });
        let transfer = Transfer { stream_bytes: [0, 100 * KB], ..transfer(seed) };
        let mut network = transfer.known();
        network.turns = turns;
        network.host(Side::Guest).listen();
        transfer.open(&mut network);
        let ends = network.run_until_met(network.now_us() + 200 * US_PER_S, |network| {
            network.host(Side::Peer).state() == State::Closed
        });
        assert!(ends);
        assert_eq!((accepted(&mut network), broken(&mut network)), (1, 1));
        // When it runs, it finds a SYN and its end.
        assert!(network.host(Side::Guest).unread_frames() > 1);
        network.turns = None;
        let is_over = network.run_until_met(network.now_us() + 10 * US_PER_S, |network| {
            network.host(Side::Guest).unread_frames() == 0
        });
        assert!(is_over);
        assert_eq!(network.host(Side::Guest).state(), State::Listen);
    }
}

#[test]
fn a_peer_that_gives_up_ends_the_guests_handshake() {
    for seed in 0..24 {
        let transfer = transfer(seed);
        let mut network = transfer.begin_known();
        network.run_until(network.now_us() + 30_000 + seed * 12_000);
        assert_eq!(accepted(&mut network), 1);
        network.host(Side::Peer).abort();
        expect_end(&mut network, 10 * US_PER_S, "the peer's RST");
        network.run_until(network.now_us() + US_PER_S);
        assert_eq!((broken(&mut network), network.port().promised_bytes()), (0, 0));
    }
}

/// What the killed port had accepted ends at both ends.
#[test]
fn nothing_goes_on_in_silence_after_a_kill() {
    let (mut ended, mut completed) = (0, 0);
    for seed in 0..60 {
        let impairments = if seed % 4 == 0 { Impairments::default() } else { ALL };
        let stream_bytes = [[0, MB][seed as usize / 8 % 2], MB];
        let transfer = Transfer { impairments, stream_bytes, ..transfer(seed) };
        let mut network = transfer.begin_known();
        let memory = Arc::new(Memory::default());
        network.port().keep_ledger(memory.clone());
        network.run_until(network.now_us() + seed * 30_000);
        let promises: Vec<Promise> = memory.promises();
        let was_accepted = accepted(&mut network) > 0;
        let is_promised = !promises.is_empty();
        network.replace_port_of(transfer.params, promises);
        network.promises = None;
        if !was_accepted {
            transfer.finish(&mut network);
            completed += 1;
        } else if is_promised {
            expect_end(&mut network, 3600 * US_PER_S, "a kill");
            ended += 1;
        } else {
            assert!(transfer.is_done(&mut network), "{transfer:?}");
        }
    }
    assert!(ended > 40 && completed > 0, "{ended} ended, {completed} completed");
}

#[test]
fn an_orderly_end_resets_both_ends() {
    for seed in 0..24 {
        let transfer = transfer(seed);
        let mut network = transfer.begin_known();
        network.run_until(network.now_us() + 30_000 + seed * 30_000);
        network.end_port();
        network.promises = None;
        expect_end(&mut network, 10 * US_PER_S, "the port's end");
    }
}

/// With the guest, what its numbers lack moves, and SYNs that it has not answered.
#[test]
fn accepted_connections_move_with_the_guest() {
    for seed in 0..24 {
        let stream_bytes = [[0, MB][seed as usize / 4 % 2], 2 * MB];
        let transfer = Transfer { stream_bytes, ..transfer(seed) };
        let mut network = transfer.begin_known();
        network.run_until(network.now_us() + 50_000);
        assert_eq!(accepted(&mut network), 1);
        for number in 0..4 {
            let next = Port::new(transfer.params, 4);
            network.move_guest(next, [0, 7_000, 400_000][(seed + number) as usize % 3]);
            network.run_until(network.now_us() + 20_000 + seed * 3_000);
        }
        transfer.finish(&mut network);
    }
}

/// Without a hash that peers cannot guess, the guest answers.
#[test]
fn without_a_hash_nothing_is_accepted() {
    let transfer = transfer(0);
    let mut network = transfer.known();
    *network.port() = Port::new(transfer.params, 4);
    network.host(Side::Guest).listen();
    transfer.open(&mut network);
    transfer.finish(&mut network);
    assert_eq!(accepted(&mut network), 0);
}

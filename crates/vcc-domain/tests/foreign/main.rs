//! Another TCP/IP stack than Linux (smoltcp) behind a port, in virtual time: with segments of any
//! size, its throughput is that of a native ECN sender with the same segment size on the same path.
//!
//! With Nagle's algorithm smoltcp sends no partial segment while data is in flight. By default it
//! does not accept timestamps.

mod accept;
#[path = "../common/mod.rs"]
mod common;
mod delay;
mod hold;
mod host;
mod moving;
mod native;
mod path;
mod reload;
mod retransmit;
mod snoop;
mod split;
mod transfer;

use std::ops::Range;

use host::{BUFFER_BYTES, Host, Setup};
use path::{Network, Side};
use vcc_engine::Params;

const US_PER_S: u64 = 1_000_000;
/// The measurement begins after slow start and the first reductions.
const WARM_UP_US: u64 = 3 * US_PER_S;
const RUN_US: u64 = 20 * US_PER_S;
const ETHERNET_MTU: usize = 1500;

#[derive(Clone, Copy, Debug)]
struct Trial {
    guest: Setup,
    peer: Setup,
    opens: bool,
    sends: bool,
    /// One in this many segments is marked.
    mark_every: u32,
}

/// The throughput in segments of the sender's size per second, and that size.
fn translated(trial: &Trial, params: Params) -> (f64, usize) {
    let hosts = [Host::new(Side::Guest, trial.guest), Host::new(Side::Peer, trial.peer)];
    let mut network = Network::new(hosts, trial.mark_every, params);
    let sender = if trial.sends { Side::Guest } else { Side::Peer };
    let opener = if trial.opens { Side::Guest } else { Side::Peer };
    network.connect(opener);
    network.host(sender).send(u64::MAX);
    network.run_until(WARM_UP_US);
    let before = network.received_bytes(sender.other());
    network.run_until(WARM_UP_US + RUN_US);
    let bytes = network.received_bytes(sender.other()) - before;
    let segment_bytes = network.largest_segment_bytes(sender);
    let segs = bytes as f64 / segment_bytes as f64;
    (segs / (RUN_US / US_PER_S) as f64, segment_bytes)
}

/// The throughput relative to a native sender with the same marking probability.
fn check(trials: impl Iterator<Item = Trial>, allowed: Range<f64>) {
    check_with(trials, Params::default(), allowed);
}

fn check_with(trials: impl Iterator<Item = Trial>, params: Params, allowed: Range<f64>) {
    let mut wrong = Vec::new();
    for trial in trials {
        let (segs_per_s, segment_bytes) = translated(&trial, params);
        let share = segs_per_s / native::segs_per_s(trial.mark_every);
        if !allowed.contains(&share) {
            wrong.push(format!("{share:.3} in segments of {segment_bytes} bytes: {trial:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// The MTUs of tunnels, and some in between.
fn mtus() -> impl Iterator<Item = usize> {
    (1400..=ETHERNET_MTU).step_by(19).chain([1420, 1450, 1492, ETHERNET_MTU])
}

fn setup(ip_mtu: usize, timestamps: bool) -> Setup {
    Setup { ip_mtu, timestamps, nagle: true, receive_bytes: BUFFER_BYTES }
}

const BOTH: [bool; 2] = [false, true];

#[test]
fn whatever_its_mtu_a_guest_that_sends_has_its_share() {
    let trials = mtus().flat_map(|mtu| {
        BOTH.into_iter().flat_map(move |opens| {
            BOTH.into_iter().flat_map(move |timestamps| {
                [4, 25].map(|mark_every| Trial {
                    guest: setup(mtu, timestamps),
                    // An opener always offers timestamps.
                    peer: setup(ETHERNET_MTU, true),
                    opens,
                    sends: true,
                    mark_every,
                })
            })
        })
    });
    check(trials, 0.95..1.05);
}

#[test]
fn whatever_the_receivers_mtu_the_sender_has_its_share() {
    let trials = mtus().flat_map(|mtu| {
        BOTH.into_iter().flat_map(move |opens| {
            BOTH.map(|sends| {
                let [guest, peer] = if sends { [ETHERNET_MTU, mtu] } else { [mtu, ETHERNET_MTU] };
                let (guest, peer) = (setup(guest, false), setup(peer, true));
                Trial { guest, peer, opens, sends, mark_every: 25 }
            })
        })
    });
    check(trials, 0.95..1.05);
}

/// Without Nagle's algorithm it sends small segments, each as likely to be marked as a full one: it
/// loses throughput and gains nothing.
#[test]
fn a_guest_that_fills_its_window_to_the_byte_gains_nothing() {
    let trials = mtus().flat_map(|mtu| {
        BOTH.map(|opens| {
            let guest = Setup { nagle: false, ..setup(mtu, false) };
            Trial { guest, peer: setup(ETHERNET_MTU, true), opens, sends: true, mark_every: 25 }
        })
    });
    check(trials, 0.5..1.1);
}

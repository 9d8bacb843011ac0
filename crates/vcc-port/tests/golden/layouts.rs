//! TCP options in every order and alignment.

use vcc_frames::options;
use vcc_frames::wire::*;

use crate::conversation::{Conversation, Shape};
use crate::direction::Direction::{FromGuest, ToGuest};
use crate::dual::{DualRun, Outcome};
use crate::segment::Parsed;
use crate::setup::usual;

/// The peer's options, and those that the guest is shown: the scale at which 2 MiB fit into a
/// window, and an MSS that is a multiple of its unit.
const MSS: u16 = 1460;
const WSCALE: u8 = 7;
const MSS_SHOWN: u16 = 1440;
const WSCALE_SHOWN: u8 = 5;

/// Every order of the parts, with up to three NOPs before each.
fn layouts(parts: &[Vec<u8>]) -> Vec<Vec<u8>> {
    if parts.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for first in 0..parts.len() {
        let mut others = parts.to_vec();
        let part = others.remove(first);
        for rest in layouts(&others) {
            for nops in 0..4 {
                all.push([options::nops(nops), part.clone(), rest.clone()].concat());
            }
        }
    }
    all
}

/// A handshake whose SYN-ACK to the guest has these options; returns the SYN-ACK that the guest
/// gets.
fn handshake(run: &mut DualRun, shape: Shape, guest_port: u16, syn_ack: Vec<u8>) -> Outcome {
    let mut c = Conversation::new(run, shape, guest_port);
    c.connection.offers.timestamps = false;
    c.syn(0);
    let outcome = c.send(ToGuest, |p| (p.flags, p.options) = (SYN | ACK | ECE, syn_ack));
    c.ack(FromGuest);
    outcome
}

fn parsed(outcome: &Outcome) -> Parsed {
    Parsed::parse(&outcome.frame, 0).unwrap_or_else(|counter| panic!("{}", counter.name))
}

#[test]
fn scale_and_mss_are_rewritten_wherever_they_stand() {
    if !vcc_testing::can_attach() {
        return;
    }
    let parts = [options::mss(MSS), options::wscale(WSCALE), options::sack_permitted()];
    for ipv6 in [false, true] {
        let mut run = DualRun::new(&usual());
        let shape = Shape { ipv6, ..Shape::plain(FromGuest) };
        for (layout, guest_port) in layouts(&parts).into_iter().zip(10_000..) {
            let options = options::join(&[layout]);
            run.doing = format!("{options:02x?}");
            let outcome = handshake(&mut run, shape, guest_port, options);
            let shown = parsed(&outcome).segment;
            assert_eq!((shown.mss, shown.wscale), (MSS_SHOWN, WSCALE_SHOWN), "{}", run.doing);
            assert_eq!(outcome.flags(), SYN | ACK, "{}", run.doing);
        }
        run.assert_all();
    }
}

#[test]
fn other_options_do_not_mislead() {
    if !vcc_testing::can_attach() {
        return;
    }
    let mut run = DualRun::new(&usual());
    let both = [options::mss(MSS), options::wscale(WSCALE)].concat();
    let cases: [(&str, Vec<u8>, Vec<u8>); 7] = [
        // (description, options before both, options after both)
        ("an experiment (RFC 6994)", vec![254, 6, 0xf9, 0x89, 3, 3], vec![]),
        ("a Fast Open cookie (RFC 7413)", vec![34, 10, 2, 4, 1, 1, 3, 3, 9, 9], vec![]),
        ("what follows the end", vec![], vec![OPTION_END, 3, 3, 9]),
        ("nonsense after the end", vec![], vec![OPTION_END, 2, 0, 0, 3, 77]),
        ("kinds of another length", vec![OPTION_MSS, 3, 9, OPTION_WSCALE, 4, 9, 9], vec![]),
        ("the same after them", vec![], vec![OPTION_MSS, 3, 9, OPTION_WSCALE, 4, 9, 9]),
        ("all 40 bytes", vec![253, 30].into_iter().chain([3; 28]).collect(), vec![1, 1, 1]),
    ];
    for ((what, before, after), guest_port) in cases.into_iter().zip(10_000..) {
        run.doing = what.into();
        let options = options::join(&[before, both.clone(), after]);
        let outcome = handshake(&mut run, Shape::plain(FromGuest), guest_port, options);
        let shown = parsed(&outcome).segment;
        assert_eq!((shown.mss, shown.wscale), (MSS_SHOWN, WSCALE_SHOWN), "{what}");
    }
    run.assert_all();
}

#[test]
fn options_after_the_handshake_are_left_alone() {
    if !vcc_testing::can_attach() {
        return;
    }
    let mut run = DualRun::new(&usual());
    let mut c = Conversation::new(&mut run, Shape::plain(FromGuest), 10_000);
    c.open();
    let at = c.connection.guest_next;
    let timestamps = || options::timestamps(5, 6);
    let blocks = |count: u32| {
        let blocks: Vec<_> = (1..=count).map(|i| (at + i * 3000, at + i * 3000 + 1448)).collect();
        options::sack(&blocks)
    };
    let layouts = [
        vec![],
        vec![options::nops(40)],
        vec![timestamps(), options::nops(2)],
        vec![options::nops(1), timestamps(), options::nops(1)],
        vec![options::nops(2), timestamps(), options::nops(2), blocks(3)],
        vec![options::nops(2), blocks(1), options::nops(2), timestamps()],
        vec![options::nops(2), blocks(4)],
        vec![vec![OPTION_END, 0, 0, 0]],
    ];
    for options in layouts.map(|parts| options::join(&parts)) {
        for from in [FromGuest, ToGuest] {
            let outcome = c.send(from, |p| {
                p.options = options.clone();
                p.payload = vec![0x55; 333];
            });
            let in_frame = &outcome.frame[outcome.at.l4 + TCP_BYTES..outcome.at.payload];
            assert_eq!(in_frame, options);
        }
    }
    run.assert_all();
}

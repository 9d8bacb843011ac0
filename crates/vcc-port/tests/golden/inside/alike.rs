//! The fuzzer's inputs, plain and inside of each kind of tunnel.

use std::fs;

use vcc_engine::{Params, Underlay, sys};
use vcc_frames::wire::*;
use vcc_frames::{Tunnel, hex};
use vcc_fuzz::frames::{Script, Sent, Step};

use super::{looking_inside, run, seen_from, tunnels};
use crate::direction::Direction::{FromGuest, ToGuest};
use crate::fuzzed::inputs;
use crate::layout::Layout;
use crate::loaded::Loaded;
use crate::setup::usually;

/// BPF_PROG_RUN takes little more.
const MAX_BYTES: usize = 3_500;

/// Segments that a port reads inside a tunnel, too: no padding, no extension headers, and one tag,
/// which becomes the outer frame's.
fn is_read_inside(sent: &Sent) -> bool {
    let Some(at) = &sent.at else { return false };
    let plain_ipv6 = !at.ipv6 || at.l4 - at.l3 == IPV6_BYTES;
    let tags = (at.l3 - ETHERNET_BYTES) / TAG_BYTES;
    let is_vlan = tags == 0 || tags == 1 && read_u16(&sent.bytes, 12) == ETHERTYPE_VLAN;
    plain_ipv6 && is_vlan && at.end == sent.bytes.len() && sent.bytes.len() < MAX_BYTES
}

fn ecn_of(frame: &[u8]) -> u8 {
    Layout::parse(frame, 0).expect("TCP").ecn(frame)
}

struct Pair {
    plain: Loaded,
    inside: Loaded,
    tunnel: Tunnel,
    changed: usize,
    grown: usize,
}

impl Pair {
    fn new(params: Params, tunnel: Tunnel) -> Self {
        let (plain, inside) = (usually(params), looking_inside(params));
        Self {
            plain: Loaded::without_timer(&plain),
            inside: Loaded::without_timer(&inside),
            tunnel,
            changed: 0,
            grown: 0,
        }
    }

    fn send(&mut self, place: &str, sent: &Sent) {
        let from = if sent.from_guest { FromGuest } else { ToGuest };
        let gso_size = sent.gso_size.into();
        let tunnel = seen_from(&self.tunnel, from);
        let plain = run(&self.plain, from, &sent.bytes, gso_size);
        let wrapped = tunnel.wrap(&sent.bytes, ecn_of(&sent.bytes));
        let inside = run(&self.inside, from, &wrapped, gso_size);
        let place = format!("{place}, {from:?}, {tunnel:?}");
        assert_eq!(inside.return_value, plain.return_value, "{place}");
        self.compare(&place, &tunnel, &inside.frame, &plain.frame);
        self.changed += usize::from(plain.frame != sent.bytes);
        self.grown += usize::from(plain.frame.len() != sent.bytes.len());
        if sent.from_guest {
            let plain = self.plain.run_clone(&plain.frame, gso_size).expect("it runs");
            let inside = self.inside.run_clone(&inside.frame, gso_size).expect("it runs");
            assert_eq!(inside.return_value, plain.return_value, "{place}, a FACK");
            if plain.return_value == crate::direction::NEXT {
                self.compare(&format!("{place}, a FACK"), &tunnel, &inside.frame, &plain.frame);
            }
        }
    }

    fn compare(&self, place: &str, tunnel: &Tunnel, inside: &[u8], plain: &[u8]) {
        let Some(opened) = tunnel.open(inside) else {
            panic!("{place}: wrong outside: {}", hex(inside));
        };
        // A tunnel of IP has no MAC addresses.
        assert_eq!(hex(&opened.frame[12..]), hex(&plain[12..]), "{place}");
        assert_eq!(opened.ecn, ecn_of(plain), "{place}");
        assert_eq!(opened.has_checksum, tunnel.checksum, "{place}");
    }
}

#[test]
fn a_segment_inside_is_changed_as_a_plain_one() {
    if !vcc_testing::can_attach() {
        return;
    }
    let dctcp = "dctcp".parse::<Underlay>().expect("an underlay").number();
    let treatments = [
        Params::default(),
        Params::with(|p| (p.underlay, p.guest_ecn) = (dctcp, sys::GUEST_ECN_OVERRIDE as u8)),
    ];
    let (mut changed, mut grown) = (0, 0);
    for (number, tunnel) in tunnels().into_iter().enumerate() {
        let mut pair = Pair::new(treatments[number % 2], tunnel);
        for (input, path) in inputs().iter().enumerate() {
            // Each tunnel has a part of them.
            if input % 5 != number % 5 {
                continue;
            }
            let bytes = fs::read(path).expect("readable");
            for (step, it) in Script::new(&bytes).enumerate() {
                if let Step::Frame(sent) = it
                    && is_read_inside(&sent)
                {
                    pair.send(&format!("{}, step {step}", path.display()), &sent);
                }
            }
        }
        assert_eq!(pair.inside.usage().expect("it").flows, pair.plain.usage().expect("it").flows);
        (changed, grown) = (changed + pair.changed, grown + pair.grown);
    }
    assert!(changed > 500 && grown > 50, "{changed} changed, {grown} with another length");
}

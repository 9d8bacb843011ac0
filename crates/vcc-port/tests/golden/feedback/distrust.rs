//! Feedback that was not agreed on, or cannot be true.

use vcc_engine::{Params, sys};
use vcc_frames::wire::*;
use vcc_frames::{Packet, options, payload};

use super::*;
use crate::conversation::{Conversation, MSS_BYTES, Shape};
use crate::direction::Direction::{FromGuest, ToGuest};
use crate::dual::DualRun;
use crate::setup::{usual, usually};

/// Options of the guest in vcc's format do not count as vcc's; the report on the wire is vcc's.
#[test]
fn a_guest_cannot_speak_for_vcc() {
    with_agreed(&usual(), |c| {
        let own = [
            options::pack(1 << 20, 1 << 20),
            options::hello(HELLO_OFFER),
            options::hello(HELLO_ACCEPT),
            options::fack(77, 1 << 23),
        ];
        for option in own {
            for (bytes, due) in [(0, false), (0, true), (100, false), (100, true)] {
                if due {
                    make_due(c, 300, CE);
                }
                let (counted, forged) = (c.state().counted, c.state().forged);
                let out = c.send(FromGuest, |p| {
                    p.options = option.clone();
                    p.payload = payload(bytes);
                });
                let ours = options::pack(counted.ect0_bytes, counted.ce_bytes);
                let mut expected = options::nops(option.len());
                if due && bytes == 0 {
                    expected.extend(ours);
                }
                assert_eq!(out.options(), expected);
                assert_eq!(out.fack.is_some(), due && bytes > 0);
                assert_eq!(c.state().forged, forged + 1);
            }
        }
    });
    if !vcc_testing::can_attach() {
        return;
    }
    // Nor in its SYNs: what is there is taken away before ours is added.
    let mut run = DualRun::new(&usual());
    let mut c = Conversation::new(&mut run, Shape::plain(FromGuest), 10_000);
    let mut syn = c.connection.syn();
    syn.options = [options::mss(1460), options::hello(HELLO_ACCEPT)].concat();
    let out = c.send_packet(FromGuest, 0, &syn);
    let expected = [options::mss(1460), options::nops(8), options::hello(HELLO_OFFER)].concat();
    assert_eq!(out.options(), expected);
    run.assert_all();
}

/// Nobody agreed to anything: what comes is taken away, counted, and not read.
#[test]
fn a_peer_that_did_not_agree_is_not_heard() {
    if !vcc_testing::can_attach() {
        return;
    }
    for feedback in [false, true] {
        let mut run = DualRun::new(&usually(Params::with(|p| p.feedback = feedback.into())));
        for (shape, guest_port) in Shape::all().zip(10_000..) {
            run.doing = format!("{shape:?}");
            let mut c = Conversation::new(&mut run, shape, guest_port);
            c.open();
            for option in [options::pack(5000, 4000), options::fack(5000, 4000)] {
                for bytes in [0, 100] {
                    c.data(FromGuest, MSS_BYTES);
                    let own = [c.connection.packet(ToGuest).options, option.clone()].concat();
                    let out = c.send(ToGuest, |p| {
                        p.options = own.clone();
                        p.payload = payload(bytes);
                    });
                    assert!(!out.dropped && !says_ours(out.options()));
                    assert_eq!(c.state().snd_una, c.connection.guest_next, "it is an ACK");
                }
            }
            let state = c.state();
            assert_eq!((state.forged, state.marks), (4, 0));
            assert_eq!((state.heard.ect0_bytes, state.heard.ce_bytes), (0, 0));
            make_due(&mut c, 3000, CE);
            assert!(!says_ours(c.ack(FromGuest).options()));
            assert!(c.data(FromGuest, 10).fack.is_none());
        }
        run.assert_all();
    }
}

/// A far end's falsification of its counters, ECT(0) and CE.
type Lie = fn(u32, u32) -> (u32, u32);

/// Counters that run back, or count what was never sent: not believed, now or later.
#[test]
fn impossible_counters_end_the_belief() {
    let lies: [Lie; 4] = [
        |ect0_bytes, ce_bytes| (ect0_bytes.wrapping_sub(1), ce_bytes),
        |ect0_bytes, ce_bytes| (ect0_bytes, ce_bytes.wrapping_sub(1)),
        |ect0_bytes, ce_bytes| (ect0_bytes + (1 << 20), ce_bytes),
        |ect0_bytes, ce_bytes| (ect0_bytes, ce_bytes + (1 << 20)),
    ];
    for lie in lies {
        with_agreed(&usual(), |c| {
            let pack = sent_and_heard(c);
            c.send(ToGuest, |p| p.options.extend(&pack));
            c.data(FromGuest, MSS_BYTES);
            let heard = c.state().heard;
            let (ect0_bytes, ce_bytes) = lie(heard.ect0_bytes, heard.ce_bytes);
            let (ect0_bytes, ce_bytes) = (ect0_bytes & COUNTER_MASK, ce_bytes & COUNTER_MASK);
            let out = c.send(ToGuest, |p| p.options.extend(options::pack(ect0_bytes, ce_bytes)));
            assert!(!says_ours(out.options()));
            assert_eq!(c.state().forged, 1);
            assert!(c.state().has(sys::FLOW_FEEDBACK_LOST));
            let pack = sent_and_heard(c);
            c.send(ToGuest, |p| p.options.extend(&pack));
            assert_eq!(c.state().heard.ect0_bytes, heard.ect0_bytes);
        });
    }
}

/// A guest that speaks AccECN has that kind for its own (RFC 9768, 3.2.3).
#[test]
fn the_options_of_an_accecn_guest_are_its_own() {
    if !vcc_testing::can_attach() {
        return;
    }
    let mut run = DualRun::new(&usual());
    let mut c = Conversation::new(&mut run, Shape::plain(FromGuest), 10_000);
    let syn = c.syn(AE | CWR | ECE);
    assert!(!says_ours(syn.options()));
    c.syn_ack(AE | CWR);
    for from in [FromGuest, ToGuest] {
        let own = options::pack(100, 200);
        let put = |p: &mut Packet| (p.options, p.payload) = (own.clone(), payload(10));
        assert_eq!(c.send(from, put).options(), own);
    }
    assert_eq!(c.state().forged, 0);
    run.assert_all();
}

//! Transfers, their windows and acknowledgements.

use vcc_frames::payload;
use vcc_frames::wire::*;
use vcc_port::counters;

use super::*;
use crate::conversation::{Conversation, MSS_BYTES, Shape};
use crate::direction::Direction::{FromGuest, ToGuest};
use crate::dual::DualRun;
use crate::setup::usual;

pub(super) fn transfer_and_close(c: &mut Conversation) {
    c.open();
    for _ in 0..4 {
        c.data(FromGuest, MSS_BYTES);
        c.data(FromGuest, MSS_BYTES);
        c.ack(ToGuest);
        c.data(ToGuest, MSS_BYTES);
        c.data(ToGuest, 17);
        c.ack(FromGuest);
    }
    c.send(FromGuest, |p| (p.flags, p.payload) = (ACK | PSH, payload(100)));
    c.send(FromGuest, |p| p.flags |= FIN);
    c.ack(ToGuest);
    c.data(ToGuest, 40);
    c.ack(FromGuest);
    c.send(ToGuest, |p| p.flags |= FIN);
    c.ack(FromGuest);
    // Its FIN again, as if that last ACK had been lost.
    let seq = c.connection.peer_next.wrapping_sub(1);
    c.send(ToGuest, |p| (p.seq, p.flags) = (seq, p.flags | FIN));
    c.ack(FromGuest);
}

/// Updates, none at all, one that the clamp hides, one of the largest size.
pub(super) fn windows(c: &mut Conversation) {
    c.open();
    for _ in 0..4 {
        c.data(FromGuest, MSS_BYTES);
    }
    for window in [502, 400, 1, 0, 0, 3, 502, 65_535, 65_534, 20, 502] {
        c.ack_but(2 * MSS, |p| p.window = window);
    }
    c.ack(ToGuest);
    for window in [0, 600, 65_535] {
        c.send(ToGuest, |p| p.window = window);
        c.data(FromGuest, 100);
    }
}

/// ACKs of bytes that were never sent, old ACKs, and an ACK of nothing new.
pub(super) fn odd_acknowledgements(c: &mut Conversation) {
    c.open();
    for _ in 0..3 {
        c.data(FromGuest, MSS_BYTES);
    }
    c.ack_but(0u32.wrapping_sub(5000), |_| {});
    c.ack_but(MSS, |_| {});
    c.ack_but(3 * MSS, |_| {});
    c.ack_but(0x8000_0000, |_| {});
    c.ack_but(2 * MSS, |p| p.payload = payload(800));
    c.ack(ToGuest);
}

pub(super) fn sequence_wrap(c: &mut Conversation) {
    c.connection.guest_next = 0u32.wrapping_sub(3 * MSS);
    c.connection.peer_next = 0u32.wrapping_sub(5);
    c.open();
    for _ in 0..6 {
        c.data(FromGuest, MSS_BYTES);
    }
    for segs in (0..6).rev() {
        c.ack_but(segs * MSS, |p| p.flags |= ECE);
        c.data(ToGuest, 3);
    }
    c.again(5 * MSS, MSS_BYTES);
    c.ack(ToGuest);
}

/// The header of a super-segment speaks for all its segments.
pub(super) fn super_segments(c: &mut Conversation) {
    const SMALL: u32 = 500;
    c.open();
    c.send_gso(FromGuest, SMALL, |p| (p.flags, p.payload) = (ACK | PSH, payload(3000)));
    c.ack(ToGuest);
    c.send_gso(FromGuest, MSS, |p| p.payload = payload(2 * MSS_BYTES));
    c.send(ToGuest, |p| p.flags |= ECE);
    c.send_gso(FromGuest, MSS, |p| p.payload = payload(MSS_BYTES + 1));
    c.send_gso(ToGuest, MSS, |p| (p.traffic_class, p.payload) = (CE, payload(2 * MSS_BYTES)));
    c.ack(FromGuest);
    // So small that one segment would have done.
    c.send_gso(FromGuest, MSS, |p| p.payload = payload(700));
    c.ack(ToGuest);
}

/// To a guest without SACK an update that the clamp makes equal to the ACK before it would be a
/// duplicate (RFC 5681, 2): it is dropped, and a later one that reports more is not.
#[test]
fn an_update_that_the_clamp_hides_is_dropped() {
    if !vcc_testing::can_attach() {
        return;
    }
    let mut run = DualRun::new(&usual());
    let mut c = Conversation::new(&mut run, Shape::plain(FromGuest), 10_000);
    c.connection.offers.sack = false;
    c.open();
    for _ in 0..4 {
        c.data(FromGuest, MSS_BYTES);
    }
    let first = c.ack_but(2 * MSS, |p| p.window = 502);
    assert!(!first.dropped && first.window() < 502);
    assert!(c.ack_but(2 * MSS, |p| p.window = 600).dropped);
    assert!(!c.ack_but(2 * MSS, |p| p.window = 0).dropped);
    assert_eq!(c.state().drops, 1);
    let counters = c.run.datapath.counters().expect("counters");
    assert_eq!(counters.get(counters::DROPPED), 1);
    // On a busy machine one may come too late for a sample.
    let delays = c.run.datapath.delays().expect("delays");
    let samples = delays.fabric().count() + delays.guest().count();
    assert_eq!(samples, u64::from(c.state().waits));
    c.run.assert_all();
}

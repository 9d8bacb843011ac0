//! Lives of connections, each over every shape, underlay and mode.

use vcc_engine::{Mode, Treatment};
use vcc_port::{counters, testing};

use crate::conversation::{Conversation, MSS_BYTES, Offers, Shape};
use crate::dual::Direction::{self, FromGuest, ToGuest};
use crate::dual::{DualRun, usual, usually};
use crate::packet::{options, payload};
use crate::wire::*;

const MSS: u32 = MSS_BYTES as u32;

type Scenario = fn(&mut Conversation);

macro_rules! named {
    ($($scenario:ident,)*) => { &[$((stringify!($scenario), $scenario),)*] };
}

const SCENARIOS: &[(&str, Scenario)] = named![
    transfer_and_close,
    syns_without_options,
    syns_without_some_options,
    syn_again_without_ecn,
    repeated_handshake,
    simultaneous_open,
    refused_ecn,
    reflected_ecn,
    guest_with_ecn,
    guest_with_accecn,
    echoed_congestion,
    marked_data,
    lost_segment_without_sack,
    lost_segment_with_sack,
    segments_that_overtook_each_other,
    retransmissions,
    windows,
    odd_acknowledgements,
    reset_by_guest,
    reset_by_peer,
    refused_connection,
    port_reuse,
    guest_opens_anew,
    peer_opens_anew,
    sequence_wrap,
    super_segments,
];

fn transfer_and_close(c: &mut Conversation) {
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

fn syns_without_options(c: &mut Conversation) {
    c.connection.offers = Offers::NONE;
    c.open();
    for _ in 0..3 {
        c.data(FromGuest, 536);
        c.ack(ToGuest);
        c.data(ToGuest, 536);
        c.ack(FromGuest);
    }
}

/// Only what both offer is in force.
fn syns_without_some_options(c: &mut Conversation) {
    c.connection.offers = Offers { wscale: None, ..Offers::default() };
    c.syn(0);
    c.connection.offers =
        Offers { wscale: Some(9), timestamps: false, sack: false, ..Offers::default() };
    c.syn_ack(ECE);
    c.ack(c.opener());
    c.data(FromGuest, 1000);
    c.send(ToGuest, |p| p.window = 60_000);
    c.data(FromGuest, 1000);
    c.ack(ToGuest);
}

/// RFC 3168, 6.1.1.1.
fn syn_again_without_ecn(c: &mut Conversation) {
    let opener = c.opener();
    let iss = c.connection.packet(opener).seq;
    c.syn(0);
    for _ in 0..2 {
        // The other end does not know the first number yet: a SYN again is the same SYN.
        *c.connection.next_of(opener) = iss;
        c.syn(0);
    }
    c.syn_ack(0);
    c.ack(opener);
    c.data(FromGuest, 500);
    c.ack(ToGuest);
}

/// SYN-ACKs that cross the ACK which ends the handshake.
fn repeated_handshake(c: &mut Conversation) {
    let (opener, listener) = (c.opener(), c.opener().other());
    let syn = c.syn(0);
    let ece = syn.flags() & ECE;
    let iss = c.connection.packet(listener).seq;
    c.syn_ack(ece);
    *c.connection.next_of(listener) = iss;
    c.syn_ack(ece);
    c.ack(opener);
    *c.connection.next_of(listener) = iss;
    c.syn_ack(ece);
    c.ack(opener);
    c.data(FromGuest, 500);
    c.ack(ToGuest);
}

/// RFC 9293, 3.5, figure 7.
fn simultaneous_open(c: &mut Conversation) {
    let (guest_iss, peer_iss) = (c.connection.guest_next, c.connection.peer_next);
    for opener in Direction::BOTH {
        c.connection.shape.opener = opener;
        c.syn(0);
    }
    for (listener, iss) in [(FromGuest, guest_iss), (ToGuest, peer_iss)] {
        c.connection.shape.opener = listener.other();
        *c.connection.next_of(listener) = iss;
        c.syn_ack(0);
    }
    c.ack(FromGuest);
    c.ack(ToGuest);
    c.data(FromGuest, MSS_BYTES);
    c.ack(ToGuest);
}

fn refused_ecn(c: &mut Conversation) {
    c.syn(0);
    c.syn_ack(0);
    c.ack(c.opener());
    c.data(FromGuest, MSS_BYTES);
    c.send(ToGuest, |p| p.flags |= ECE);
    c.send(ToGuest, |p| (p.traffic_class, p.payload) = (CE, payload(300)));
    c.ack(FromGuest);
}

/// A middlebox that sends the SYN's reserved bits back accepts nothing.
fn reflected_ecn(c: &mut Conversation) {
    c.syn(0);
    c.syn_ack(ECE | CWR);
    c.ack(c.opener());
    c.data(FromGuest, MSS_BYTES);
    c.ack(ToGuest);
}

fn guest_with_ecn(c: &mut Conversation) {
    c.open_with_ecn();
    for _ in 0..3 {
        c.send(FromGuest, |p| (p.traffic_class, p.payload) = (ECT_0, payload(MSS_BYTES)));
    }
    c.send(ToGuest, |p| p.flags |= ECE);
    let cwr = ACK | CWR;
    c.send(FromGuest, |p| (p.traffic_class, p.flags, p.payload) = (ECT_0, cwr, payload(1000)));
    c.send(ToGuest, |p| (p.traffic_class, p.payload) = (CE, payload(1000)));
    c.send(FromGuest, |p| p.flags |= ECE);
    c.send(ToGuest, |p| (p.traffic_class, p.flags, p.payload) = (ECT_0, cwr, payload(1000)));
    c.ack(FromGuest);
}

/// RFC 9768, 3.1.
fn guest_with_accecn(c: &mut Conversation) {
    let opener = c.opener();
    c.syn(AE | CWR | ECE);
    c.syn_ack(AE | CWR);
    c.send(opener, |p| p.flags |= ECE);
    c.send(FromGuest, |p| (p.traffic_class, p.payload) = (ECT_1, payload(MSS_BYTES)));
    c.send(ToGuest, |p| p.flags |= AE | CWR);
    c.send(ToGuest, |p| (p.traffic_class, p.payload) = (CE, payload(100)));
    c.send(FromGuest, |p| p.flags |= AE);
}

/// Sender half: ECE of a classic receiver comes until CWR has reached it.
fn echoed_congestion(c: &mut Conversation) {
    c.open();
    for _ in 0..10 {
        c.data(FromGuest, MSS_BYTES);
    }
    for segs in (0..10).rev() {
        c.ack_but(segs * MSS, |p| p.flags |= ECE);
        c.data(FromGuest, MSS_BYTES);
    }
    for segs in (0..10).rev() {
        c.ack_but(segs * MSS, |p| p.flags |= if segs > 6 { ECE } else { 0 });
    }
    c.data(FromGuest, MSS_BYTES);
    c.ack(ToGuest);
}

/// Receiver half: CE until the peer says CWR, in one segment in either order.
fn marked_data(c: &mut Conversation) {
    c.open();
    c.send(ToGuest, |p| (p.traffic_class, p.payload) = (ECT_0, payload(MSS_BYTES)));
    c.ack(FromGuest);
    c.send(ToGuest, |p| (p.traffic_class, p.payload) = (CE, payload(MSS_BYTES)));
    c.ack(FromGuest);
    c.data(FromGuest, 10);
    c.send(ToGuest, |p| (p.traffic_class, p.payload) = (ECT_0, payload(MSS_BYTES)));
    c.ack(FromGuest);
    let cwr = ACK | CWR;
    c.send(ToGuest, |p| (p.traffic_class, p.flags, p.payload) = (CE, cwr, payload(MSS_BYTES)));
    c.ack(FromGuest);
    c.send(ToGuest, |p| (p.traffic_class, p.flags, p.payload) = (ECT_0, cwr, payload(MSS_BYTES)));
    c.ack(FromGuest);
    // CE on an empty ACK is no mark of data (RFC 3168, 6.1.4).
    c.send(ToGuest, |p| p.traffic_class = CE);
    c.ack(FromGuest);
}

/// RFC 6582: three duplicates, a partial ACK, the end of the recovery.
fn lost_segment_without_sack(c: &mut Conversation) {
    c.connection.offers = Offers { sack: false, ..Offers::default() };
    c.open();
    for _ in 0..10 {
        c.data(FromGuest, MSS_BYTES);
    }
    c.ack_but(9 * MSS, |_| {});
    for duplicates in 1..=5 {
        c.ack_but(9 * MSS, |_| {});
        if duplicates == 3 {
            c.again(9 * MSS, MSS_BYTES);
        }
    }
    c.ack_but(4 * MSS, |_| {});
    c.again(4 * MSS, MSS_BYTES);
    c.data(FromGuest, MSS_BYTES);
    c.ack(ToGuest);
    c.data(FromGuest, MSS_BYTES);
    c.ack(ToGuest);
}

fn lost_segment_with_sack(c: &mut Conversation) {
    c.open();
    for _ in 0..8 {
        c.data(FromGuest, MSS_BYTES);
    }
    let lost = c.connection.guest_next.wrapping_sub(7 * MSS);
    for segs in 1..=5 {
        // The window moves with each: by its blocks it is a duplicate all the same.
        c.ack_but(7 * MSS, |p| {
            p.window -= segs as u16;
            let after_lost = lost.wrapping_add(MSS);
            let block = (after_lost, after_lost.wrapping_add(segs * MSS));
            let sack = [options::nops(2), options::sack(&[block])].concat();
            p.options = [p.options.clone(), sack].concat();
        });
    }
    c.again(7 * MSS, MSS_BYTES);
    c.ack_but(MSS, |_| {});
    c.ack(ToGuest);
    c.data(FromGuest, MSS_BYTES);
    c.ack(ToGuest);
}

/// RFC 2883: below the acknowledgement (4.1), then within the second block (4.2), both sent again
/// for nothing; and blocks that only look alike.
fn segments_that_overtook_each_other(c: &mut Conversation) {
    c.open();
    for _ in 0..8 {
        c.data(FromGuest, MSS_BYTES);
    }
    c.again(8 * MSS, MSS_BYTES);
    c.again(4 * MSS, MSS_BYTES);
    let end = c.connection.guest_next;
    let at = |back_segs: u32| end.wrapping_sub(back_segs * MSS);
    let blocks: [&[(u32, u32)]; 6] = [
        &[(at(3), at(2))],
        &[(at(4), at(3)), (at(2), at(1))],
        &[(at(7), at(8))],
        &[(at(8), at(7))],
        &[(at(4), at(3)), (at(4), at(2))],
        &[(at(8), at(7)), (at(4), at(2))],
    ];
    for blocks in blocks {
        c.ack_but(4 * MSS, |p| {
            p.options = [&p.options[..], &options::nops(2), &options::sack(blocks)].concat();
        });
    }
    c.ack(ToGuest);
    c.data(FromGuest, MSS_BYTES);
    c.ack(ToGuest);
}

/// The tail (a probe, perhaps), the middle, the first, what was acknowledged, a keep-alive.
fn retransmissions(c: &mut Conversation) {
    c.open();
    for _ in 0..6 {
        c.data(FromGuest, MSS_BYTES);
    }
    c.again(MSS, MSS_BYTES);
    c.again(3 * MSS, MSS_BYTES);
    c.again(6 * MSS, MSS_BYTES);
    c.ack(ToGuest);
    c.again(2 * MSS, MSS_BYTES);
    c.again(1, 0);
    c.ack(ToGuest);
    c.again(1, 1);
    c.ack(ToGuest);
    // Half of it old, half new.
    c.again(500, 1000);
    c.ack(ToGuest);
}

/// Updates, none at all, one that the clamp hides, one of the largest size.
fn windows(c: &mut Conversation) {
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

/// Of bytes that were never sent, of old ones, and none at all.
fn odd_acknowledgements(c: &mut Conversation) {
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

fn reset_by_guest(c: &mut Conversation) {
    c.open();
    c.data(FromGuest, 400);
    c.send(FromGuest, |p| p.flags = RST | ACK);
    c.ack(ToGuest);
    c.data(ToGuest, 10);
    // It goes on, so the RST was not its own (RFC 5961, 3.2).
    c.data(FromGuest, 400);
    c.ack(ToGuest);
}

fn reset_by_peer(c: &mut Conversation) {
    c.open();
    c.data(FromGuest, 400);
    c.send(ToGuest, |p| (p.flags, p.ack, p.window) = (RST, 0, 0));
    c.send(ToGuest, |p| (p.flags, p.window) = (RST | ACK, 0));
    c.data(FromGuest, 400);
    c.ack(ToGuest);
}

fn refused_connection(c: &mut Conversation) {
    let listener = c.opener().other();
    c.syn(0);
    c.send(listener, |p| (p.flags, p.window, p.options) = (RST | ACK, 0, Vec::new()));
    // The next attempt from the same port succeeds.
    c.connection.guest_next = c.connection.guest_next.wrapping_add(70_000);
    c.connection.peer_next = c.connection.peer_next.wrapping_add(90_000);
    c.open();
    c.data(FromGuest, 400);
    c.ack(ToGuest);
}

fn port_reuse(c: &mut Conversation) {
    c.open();
    c.data(FromGuest, MSS_BYTES);
    c.ack(ToGuest);
    c.send(FromGuest, |p| p.flags |= FIN);
    c.send(ToGuest, |p| p.flags |= FIN);
    c.ack(FromGuest);
    c.connection.guest_next = c.connection.guest_next.wrapping_add(1_000_000);
    c.connection.peer_next = c.connection.peer_next.wrapping_sub(1_000_000);
    c.connection.offers = Offers { wscale: Some(2), timestamps: false, ..Offers::default() };
    c.open();
    c.data(FromGuest, MSS_BYTES);
    c.ack(ToGuest);
}

/// The guest has forgotten the connection, as after a crash, and opens it anew.
fn guest_opens_anew(c: &mut Conversation) {
    c.open();
    c.data(FromGuest, MSS_BYTES);
    c.connection.shape.opener = FromGuest;
    c.connection.guest_next = c.connection.guest_next.wrapping_add(1_000_000);
    c.connection.peer_next = c.connection.peer_next.wrapping_add(1_000_000);
    c.open();
    c.data(FromGuest, MSS_BYTES);
    c.ack(ToGuest);
}

/// A SYN into a live connection, perhaps forged: the guest decides. By a challenge ACK it stays
/// with the old one (RFC 5961, 4.2), by a SYN-ACK it takes the new one.
fn peer_opens_anew(c: &mut Conversation) {
    c.open();
    c.data(FromGuest, MSS_BYTES);
    let peer_next = c.connection.peer_next;
    c.connection.shape.opener = ToGuest;
    c.connection.peer_next = peer_next.wrapping_add(1_000_000);
    c.syn(0);
    c.connection.peer_next = peer_next;
    c.ack(FromGuest);
    c.ack(ToGuest);
    c.data(FromGuest, MSS_BYTES);
    c.connection.peer_next = peer_next.wrapping_add(1_000_000);
    c.syn(0);
    c.connection.guest_next = c.connection.guest_next.wrapping_add(1_000_000);
    c.syn_ack(0);
    c.ack(ToGuest);
    c.data(FromGuest, MSS_BYTES);
    c.ack(ToGuest);
    assert_eq!(c.state().snd_una, c.connection.guest_next);
}

fn sequence_wrap(c: &mut Conversation) {
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
fn super_segments(c: &mut Conversation) {
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
/// duplicate (RFC 5681, 2): it is dropped, and a later one that says more is not.
#[test]
fn an_update_that_the_clamp_hides_is_dropped() {
    if !testing::can_attach() {
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
    c.run.assert_all();
}

fn run(underlay: &str, mode: Mode, feedback: bool) {
    let treatment = Treatment {
        underlay: underlay.parse().expect("an underlay of the engine"),
        mode,
        feedback,
        ..Treatment::default()
    };
    let mut run = DualRun::new(&usually(treatment));
    let mut guest_port = 10_000;
    for (name, scenario) in SCENARIOS {
        for shape in Shape::all() {
            guest_port += 1;
            run.doing = format!("{name}, {shape:?}");
            scenario(&mut Conversation::new(&mut run, shape, guest_port));
        }
    }
    run.assert_all();
}

macro_rules! every_scenario {
    ($($name:ident: $underlay:literal, $mode:ident, $feedback:literal;)*) => {
        $(#[test]
        fn $name() {
            if testing::can_attach() {
                run($underlay, Mode::$mode, $feedback);
            }
        })*
    };
}

every_scenario! {
    reno_ecn_enforced: "reno-ecn", Enforce, false;
    reno_ecn_with_offers: "reno-ecn", Enforce, true;
    reno_ecn_in_shadow: "reno-ecn", Shadow, true;
    reno_enforced: "reno", Enforce, true;
    reno_in_shadow: "reno", Shadow, true;
    cubic_enforced: "cubic", Enforce, true;
    dctcp_enforced: "dctcp", Enforce, false;
    dctcp_with_offers: "dctcp", Enforce, true;
    dctcp_in_shadow: "dctcp", Shadow, true;
    dctcp_priority_enforced: "dctcp-priority", Enforce, true;
    transparent_enforced: "transparent", Enforce, true;
    transparent_in_shadow: "transparent", Shadow, true;
}

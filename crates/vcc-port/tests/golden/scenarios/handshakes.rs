//! Handshakes, and connections that are opened anew.

use vcc_frames::wire::*;

use crate::conversation::{Conversation, MSS_BYTES, Offers};
use crate::direction::Direction::{self, FromGuest, ToGuest};

pub(super) fn syns_without_options(c: &mut Conversation) {
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
pub(super) fn syns_without_some_options(c: &mut Conversation) {
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

/// SYN-ACKs that cross the ACK which ends the handshake.
pub(super) fn repeated_handshake(c: &mut Conversation) {
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
pub(super) fn simultaneous_open(c: &mut Conversation) {
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

pub(super) fn port_reuse(c: &mut Conversation) {
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
pub(super) fn guest_opens_anew(c: &mut Conversation) {
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
pub(super) fn peer_opens_anew(c: &mut Conversation) {
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

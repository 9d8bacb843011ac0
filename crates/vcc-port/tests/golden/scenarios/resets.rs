//! Resets, and refused connections.

use vcc_frames::wire::*;

use crate::conversation::Conversation;
use crate::direction::Direction::{FromGuest, ToGuest};

pub(super) fn reset_by_guest(c: &mut Conversation) {
    c.open();
    c.data(FromGuest, 400);
    c.send(FromGuest, |p| p.flags = RST | ACK);
    c.ack(ToGuest);
    c.data(ToGuest, 10);
    // It continues, so the RST was not its own (RFC 5961, 3.2).
    c.data(FromGuest, 400);
    c.ack(ToGuest);
}

pub(super) fn reset_by_peer(c: &mut Conversation) {
    c.open();
    c.data(FromGuest, 400);
    c.send(ToGuest, |p| (p.flags, p.ack, p.window) = (RST, 0, 0));
    c.send(ToGuest, |p| (p.flags, p.window) = (RST | ACK, 0));
    c.data(FromGuest, 400);
    c.ack(ToGuest);
}

pub(super) fn refused_connection(c: &mut Conversation) {
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

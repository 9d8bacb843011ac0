//! ECN: its negotiation, its echo, and its use by the guest.

use vcc_frames::payload;
use vcc_frames::wire::*;

use super::*;
use crate::conversation::{Conversation, MSS_BYTES};
use crate::direction::Direction::{FromGuest, ToGuest};

/// RFC 3168, 6.1.1.1.
pub(super) fn syn_again_without_ecn(c: &mut Conversation) {
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

pub(super) fn refused_ecn(c: &mut Conversation) {
    c.syn(0);
    c.syn_ack(0);
    c.ack(c.opener());
    c.data(FromGuest, MSS_BYTES);
    c.send(ToGuest, |p| p.flags |= ECE);
    c.send(ToGuest, |p| (p.traffic_class, p.payload) = (CE, payload(300)));
    c.ack(FromGuest);
}

/// A middlebox that sends the SYN's reserved bits back accepts nothing.
pub(super) fn reflected_ecn(c: &mut Conversation) {
    c.syn(0);
    c.syn_ack(ECE | CWR);
    c.ack(c.opener());
    c.data(FromGuest, MSS_BYTES);
    c.ack(ToGuest);
}

pub(super) fn guest_with_ecn(c: &mut Conversation) {
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
pub(super) fn guest_with_accecn(c: &mut Conversation) {
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
pub(super) fn echoed_congestion(c: &mut Conversation) {
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
pub(super) fn marked_data(c: &mut Conversation) {
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

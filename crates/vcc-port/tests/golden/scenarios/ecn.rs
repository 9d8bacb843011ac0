//! ECN: its negotiation, its echo, and its use by the guest.

use vcc_frames::wire::*;
use vcc_frames::{options, payload};

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
    for own in [ECT_0, ECT_1, CE] {
        c.send(FromGuest, |p| (p.traffic_class, p.payload) = (own, payload(MSS_BYTES)));
        let flags = ACK | CWR | ECE;
        c.send(FromGuest, |p| (p.traffic_class, p.flags, p.payload) = (own, flags, payload(100)));
        c.send(FromGuest, |p| p.traffic_class = own);
    }
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

/// RFC 9768 between the port and the peer: the field, the option in its forms, super-segments.
pub(super) fn peer_with_accecn(c: &mut Conversation) {
    let opener = c.opener();
    c.syn(if opener == FromGuest { 0 } else { AE | CWR | ECE });
    c.syn_ack(if opener == FromGuest { CWR } else { 0 });
    c.send(opener, |p| p.flags |= if opener == FromGuest { 0 } else { CWR });
    for _ in 0..12 {
        c.data(FromGuest, MSS_BYTES);
    }
    c.ack_but(11 * MSS, |p| p.flags |= AE | ECE);
    c.ack_but(10 * MSS, |p| p.flags |= AE | CWR);
    let mss = MSS;
    for (segs, option) in [
        (8, options::accecn(OPTION_ACCECN1, &[1, 2 * mss, 1])),
        (6, options::accecn(OPTION_PACK, &[1 + mss, 3 * mss, 1])),
        (5, options::pack(1 + mss, 4 * mss)),
        (4, options::accecn(OPTION_ACCECN1, &[1, 5 * mss])),
        (3, options::accecn(OPTION_ACCECN1, &[1])),
        (2, options::accecn(OPTION_PACK, &[])),
        (1, options::accecn(OPTION_ACCECN1, &[1, 0x40_0000])),
    ] {
        c.ack_but(segs * MSS, |p| {
            p.flags |= AE | CWR | ECE;
            p.options = options::join(&[p.options.clone(), option]);
        });
    }
    for class in [CE, ECT_0, CE, CE, ECT_1, CE] {
        c.send(ToGuest, |p| {
            (p.traffic_class, p.payload) = (class, payload(MSS_BYTES));
            p.flags |= AE | ECE;
        });
        c.ack(FromGuest);
        c.send_gso(FromGuest, MSS, |p| p.payload = payload(2 * MSS_BYTES));
    }
    c.send(ToGuest, |p| (p.traffic_class, p.flags) = (CE, ACK | AE));
    c.ack(FromGuest);
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

/// Receiver half: CE until the peer sends CWR, in one segment in either order.
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

//! A card that holds what its guest sends.

use std::net::SocketAddr;

use vcc_domain::Port;
use vcc_engine::{Params, sys};
use vcc_frames::{MACS, Packet, options, payload};

use crate::frame;
use crate::guest::*;
use crate::host::{Host, eventually};

const PLAIN: [u8; 12] = [0; 12];
const MSS_BYTES: u16 = 1000;
/// The guest's first data and the peer's.
const GUEST_SEQ: u32 = 1000;
const PEER_SEQ: u32 = 5000;
const WINDOW: u16 = 60_000;
const BUFFERS: u16 = 8;

fn from_guest() -> Packet {
    let [guest, peer] = ends();
    Packet { seq: GUEST_SEQ, ack: PEER_SEQ, window: WINDOW, ..Packet::new(guest, peer) }
}

fn to_guest() -> Packet {
    let [guest, peer] = ends();
    let packet = Packet::new(peer, guest);
    Packet { macs: [MACS[1], MACS[0]], seq: PEER_SEQ, ack: GUEST_SEQ, window: WINDOW, ..packet }
}

fn ends() -> [SocketAddr; 2] {
    ["10.0.0.1:1000", "10.0.0.2:80"].map(|end| end.parse().expect("an end"))
}

/// A guest that does not read: the last ACK waits for it, and takes one buffer.
#[test]
fn acks_do_not_take_the_room_of_a_guest_that_does_not_read() {
    let params = Params::with(|params| params.act = sys::ACT_HOLD as u8);
    let host = Host::with(Port::new(params, 64));
    let mut guest = Guest::new(2);
    let mut front_end = FrontEnd::of(&guest, &host.socket, USUAL | EVENT_IDX);
    guest.offer_buffers(RECEIVE, BUFFERS, 2048);
    let arrives = |packet: &Packet| {
        host.wire.send(&[&PLAIN[..], &packet.frame()].concat()).expect("sent");
    };
    let syn = Packet { flags: sys::TCP_SYN as u16, seq: GUEST_SEQ - 1, ack: 0, ..from_guest() };
    guest.send(PLAIN, &Packet { options: options::mss(MSS_BYTES), ..syn }.frame());
    host.sent();
    let flags = (sys::TCP_SYN | sys::TCP_ACK) as u16;
    arrives(&Packet { flags, seq: PEER_SEQ - 1, options: options::mss(MSS_BYTES), ..to_guest() });
    // And the window that the buffer has for it.
    eventually("the SYN-ACK", || guest.used(RECEIVE) == 2);
    for number in 0..3 {
        let seq = GUEST_SEQ + number * u32::from(MSS_BYTES);
        let data = Packet { seq, payload: payload(MSS_BYTES.into()), ..from_guest() };
        guest.send(PLAIN, &data.frame());
        host.sent();
    }
    for number in 0..BUFFERS - 2 {
        host.wire.send(&[&PLAIN[..], &frame(number)].concat()).expect("sent");
    }
    eventually("a full ring", || guest.used(RECEIVE) == BUFFERS);
    for number in 1..=3 {
        arrives(&Packet { ack: GUEST_SEQ + number * u32::from(MSS_BYTES), ..to_guest() });
    }
    front_end.settle();
    guest.offer_buffers_quietly(RECEIVE, BUFFERS, 2048);
    eventually("the last ACK", || guest.used(RECEIVE) == BUFFERS + 1);
    front_end.settle();
    assert_eq!(guest.used(RECEIVE), BUFFERS + 1);
    let shown = guest.received(RECEIVE, BUFFERS, 1);
    let ack = shown[12 + 14 + 20 + 8..][..4].try_into().map(u32::from_be_bytes);
    assert_eq!(ack.ok(), Some(GUEST_SEQ + 3 * u32::from(MSS_BYTES)));
}

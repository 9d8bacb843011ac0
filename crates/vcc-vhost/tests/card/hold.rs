//! A card that holds what its guest sends.

use vcc_domain::Port;
use vcc_engine::{Params, sys};
use vcc_frames::{Packet, payload};
use vcc_vhost::testing::*;

use crate::PLAIN;
use crate::frame;
use crate::host::{Host, eventually};
use crate::talk::*;

const BUFFERS: u16 = 8;

/// A guest that does not read: the last ACK waits for it, and takes one buffer.
#[test]
fn acks_do_not_take_the_room_of_a_guest_that_does_not_read() {
    let params = Params::with(|params| params.act = sys::ACT_HOLD as u8);
    let host = Host::with(Port::new(params, 64));
    let mut guest = Guest::new(2);
    let mut front_end = FrontEnd::ready(&guest, &host.socket, USUAL | EVENT_IDX);
    guest.offer_buffers(RECEIVE, BUFFERS, 2048);
    let arrives = |packet: &Packet| {
        host.wire.send(&plain(packet)).expect("sent");
    };
    guest.send(PLAIN, &syn().frame());
    host.sent();
    arrives(&syn_ack());
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

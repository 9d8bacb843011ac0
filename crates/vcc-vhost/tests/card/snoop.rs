//! A card that acknowledges for its guest what lies in the guest's ring.

use vcc_domain::Port;
use vcc_engine::{Params, sys};
use vcc_frames::{MACS, Packet, payload};
use vcc_vhost::testing::*;

use crate::PLAIN;
use crate::host::{Host, eventually};
use crate::talk::*;

/// A guest with a connection, and receive buffers, of which the handshake takes one.
struct Talk {
    host: Host,
    guest: Guest,
    front_end: FrontEnd,
}

impl Talk {
    fn open(buffers: u16) -> Self {
        let host = Host::with(Port::new(Params::with(|params| params.receive = 1), 64));
        let mut guest = Guest::new(2);
        let front_end = FrontEnd::ready(&guest, &host.socket, USUAL | EVENT_IDX);
        guest.offer_buffers(RECEIVE, buffers, 2048);
        guest.send(PLAIN, &syn().frame());
        host.sent();
        host.wire.send(&plain(&syn_ack())).expect("sent");
        eventually("the SYN-ACK", || guest.used(RECEIVE) == 1);
        guest.send(PLAIN, &from_guest().frame());
        host.sent();
        Talk { host, guest, front_end }
    }

    /// The next acknowledgement on the wire, and its window.
    fn acknowledged(&self) -> (u32, u16) {
        let tcp = &self.host.sent()[12 + 14 + 20..];
        let ack = tcp[8..12].try_into().map(u32::from_be_bytes).expect("a TCP header");
        (ack - PEER_SEQ, u16::from_be_bytes([tcp[14], tcp[15]]))
    }
}

/// Data of the peer, with its checksums.
fn data(bytes: usize) -> Vec<u8> {
    let flags = (sys::TCP_ACK | sys::TCP_PSH) as u16;
    plain(&Packet { flags, payload: payload(bytes), ..to_guest() })
}

#[test]
fn what_lies_in_the_ring_is_acknowledged() {
    let talk = Talk::open(128);
    talk.host.wire.send(&data(1000)).expect("sent");
    assert_eq!(talk.acknowledged(), (1000, WINDOW - 1000));
    assert_eq!(talk.guest.used(RECEIVE), 2);
}

/// Longer than the MTU, in several buffers, its checksum to be completed by the guest's card.
#[test]
fn a_super_segment_is_acknowledged_whole() {
    let talk = Talk::open(64);
    let mut segment = data(30_000);
    segment[..10].copy_from_slice(&[1, 1, 54, 0, 0xe8, 3, 34, 0, 16, 0]);
    talk.host.wire.send(&segment).expect("sent");
    assert_eq!(talk.acknowledged(), (30_000, WINDOW - 30_000));
    assert!(talk.guest.received(RECEIVE, 1, 15).ends_with(&payload(30_000)));
}

/// What the guest would discard is its own to answer.
#[test]
fn a_wrong_checksum_is_not_acknowledged() {
    let mut talk = Talk::open(64);
    let mut segment = data(1000);
    *segment.last_mut().expect("a payload") ^= 1;
    talk.host.wire.send(&segment).expect("sent");
    eventually("placed", || talk.guest.used(RECEIVE) == 2);
    talk.front_end.settle();
    assert_eq!(talk.host.sent_more(), None);
}

/// As of what the host's card has verified, the port has no doubt (VIRTIO_NET_HDR_F_DATA_VALID).
#[test]
fn what_the_host_has_verified_is_acknowledged() {
    let talk = Talk::open(128);
    let mut segment = data(1000);
    segment[0] = 2;
    // It shows that the port does not look.
    *segment.last_mut().expect("a payload") ^= 1;
    talk.host.wire.send(&segment).expect("sent");
    assert_eq!(talk.acknowledged(), (1000, WINDOW - 1000));
    assert_eq!(talk.guest.received(RECEIVE, 1, 1)[0], 2, "nor does the guest");
}

/// It has not come to the guest's memory, which is all that outlives this process. The window is the
/// guest's own, because there is room for it behind the ring.
#[test]
fn what_has_no_buffer_is_not_acknowledged() {
    let mut talk = Talk::open(1);
    talk.host.wire.send(&data(1000)).expect("sent");
    talk.front_end.settle();
    assert_eq!(talk.host.sent_more(), None);
    talk.guest.offer_buffers_quietly(RECEIVE, 20, 2048);
    assert_eq!(talk.acknowledged(), (1000, WINDOW - 1000));
    assert_eq!(talk.guest.used(RECEIVE), 2);
}

/// A guest that kicks only if it is asked to.
#[test]
fn an_acknowledgement_waits_for_room_behind_the_ring() {
    let mut talk = Talk::open(1);
    talk.host.wire.send(&data(1000)).expect("sent");
    // All but a few segments of what may wait.
    for bytes in [[60_000; 17].as_slice(), &[20_000]].concat() {
        talk.host.wire.send(&[&PLAIN[..], &broadcast(bytes)].concat()).expect("sent");
    }
    talk.front_end.settle();
    talk.guest.offer_buffers_quietly(RECEIVE, 1, 2048);
    eventually("placed", || talk.guest.used(RECEIVE) == 2);
    talk.front_end.settle();
    assert_eq!(talk.host.sent_more(), None);
    talk.guest.offer_buffers_quietly(RECEIVE, 100, 2048);
    assert_eq!(talk.acknowledged().0, 1000);
}

/// A frame of so many bytes that is no one's in particular.
fn broadcast(bytes: usize) -> Vec<u8> {
    let mut frame = vec![0; bytes];
    frame[..12].copy_from_slice(&[MACS[1], MACS[0]].concat());
    frame[12..14].copy_from_slice(&0x88b5_u16.to_be_bytes());
    frame
}

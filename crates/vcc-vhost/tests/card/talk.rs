//! The segments of a connection between the guest and a peer.

use std::net::SocketAddr;

use vcc_engine::sys;
use vcc_frames::{MACS, Packet, options};

use crate::PLAIN;

pub const MSS_BYTES: u16 = 1000;
/// The guest's first data and the peer's.
pub const GUEST_SEQ: u32 = 1000;
pub const PEER_SEQ: u32 = 5000;
pub const WINDOW: u16 = 60_000;

pub fn from_guest() -> Packet {
    let [guest, peer] = ends();
    Packet { seq: GUEST_SEQ, ack: PEER_SEQ, window: WINDOW, ..Packet::new(guest, peer) }
}

pub fn to_guest() -> Packet {
    let [guest, peer] = ends();
    let packet = Packet::new(peer, guest);
    Packet { macs: [MACS[1], MACS[0]], seq: PEER_SEQ, ack: GUEST_SEQ, window: WINDOW, ..packet }
}

pub fn syn() -> Packet {
    let options = options::mss(MSS_BYTES);
    Packet { flags: sys::TCP_SYN as u16, seq: GUEST_SEQ - 1, ack: 0, options, ..from_guest() }
}

pub fn syn_ack() -> Packet {
    let flags = (sys::TCP_SYN | sys::TCP_ACK) as u16;
    Packet { flags, seq: PEER_SEQ - 1, options: options::mss(MSS_BYTES), ..to_guest() }
}

/// As the card has it.
pub fn plain(packet: &Packet) -> Vec<u8> {
    [&PLAIN[..], &packet.frame()].concat()
}

pub fn ends() -> [SocketAddr; 2] {
    ["10.0.0.1:1000", "10.0.0.2:80"].map(|end| end.parse().expect("an end"))
}

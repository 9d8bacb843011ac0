//! The peer's end of a connection, of which the test makes segments.

use std::net::{SocketAddr, SocketAddrV4};

use vcc_frames::wire::*;
use vcc_frames::{Packet, options};

use crate::application::pattern;
use crate::bed::{GATEWAY_MAC, GUEST_MAC};
use crate::option::{Cookie, Known, TcpOption, decode};
use crate::segment::{Initial, Segment, absolute};
use crate::wire::Seen;

const WINDOW_UNLESS_SAID: u16 = 0xffff;

pub struct Peer {
    pub guest: SocketAddrV4,
    pub address: SocketAddrV4,
    pub initial: Initial,
    /// The guest's SYN asked the fabric for ECN.
    asked_ecn: bool,
    /// The guest's last. A Linux that listens takes the echo of its SYN-ACK only, not of what it
    /// answers to strays before it has the ACK.
    tsval: u32,
    has_acked: bool,
    cookie: Vec<u8>,
}

impl Peer {
    pub fn new(guest: SocketAddrV4, address: SocketAddrV4, isn: u32) -> Self {
        let initial = Initial { guest: None, peer: isn };
        Self {
            guest,
            address,
            initial,
            asked_ecn: false,
            tsval: 0,
            has_acked: false,
            cookie: Vec::new(),
        }
    }

    /// Whether a segment is of this connection's ends.
    pub fn knows(&self, packet: &Packet) -> bool {
        let address = SocketAddr::from(self.address).ip();
        packet.from.ip() == address || packet.to.ip() == address
    }

    /// A segment from the guest, as it left the guest and as it reached the fabric.
    pub fn learn(&mut self, inner: &Seen, outer: &Seen) {
        let takes_time = self.has_acked || inner.packet.flags & SYN != 0;
        if inner.packet.flags & SYN != 0 {
            self.initial.guest.get_or_insert(inner.packet.seq);
            self.asked_ecn = outer.packet.flags & (ECE | CWR) == ECE | CWR;
        }
        for option in decode(&inner.packet.options, 0) {
            match option {
                TcpOption::Timestamps { value: Some(value), .. } if takes_time => {
                    self.tsval = value;
                }
                TcpOption::FastOpen(Cookie::Is(cookie)) => self.cookie = cookie,
                _ => {}
            }
        }
    }

    /// An empty ACK to the guest.
    pub fn blank(&self) -> Packet {
        let macs = [GUEST_MAC, GATEWAY_MAC];
        Packet { macs, ..Packet::new(self.address.into(), self.guest.into()) }
    }

    pub fn packet(&mut self, segment: &Segment) -> Result<Packet, String> {
        let initial_guest = self.initial.guest.unwrap_or(0);
        let known = Known { tsval: self.tsval, cookie: &self.cookie, initial_guest };
        let parts = segment.options.iter().flatten().map(|option| option.encode(&known));
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        self.has_acked |= segment.flags & ACK != 0;
        let ece = if segment.ece_if_asked && self.asked_ecn { ECE } else { 0 };
        Ok(Packet {
            traffic_class: segment.mark.unwrap_or(0),
            seq: absolute(segment.seq, self.initial.peer),
            ack: segment.ack.map_or(0, |ack| absolute(ack, initial_guest)),
            flags: segment.flags | ece,
            window: segment.window.unwrap_or(WINDOW_UNLESS_SAID),
            urgent: segment.urgent.unwrap_or(0),
            options: options::join(&parts),
            payload: pattern(segment.stream_offset(), segment.bytes as usize),
            ..self.blank()
        })
    }
}

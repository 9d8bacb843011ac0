//! Both ends of a TCP connection, and scripts of their segments.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use vcc_engine::FlowState;
use vcc_frames::wire::*;
use vcc_frames::{Packet, options, payload};

use crate::direction::Direction::{self, FromGuest, ToGuest};
use crate::direction::Key;
use crate::dual::{DualRun, Outcome};
use crate::layout::fill_checksums;

/// Payload of a full segment.
pub const MSS_BYTES: usize = 1448;

/// Address family, VLAN and opener of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub ipv6: bool,
    pub vlan: Option<u16>,
    pub opener: Direction,
}

impl Shape {
    pub fn all() -> impl Iterator<Item = Shape> {
        [false, true].into_iter().flat_map(|ipv6| {
            [None, Some(7)].into_iter().flat_map(move |vlan| {
                Direction::BOTH.into_iter().map(move |opener| Shape { ipv6, vlan, opener })
            })
        })
    }

    pub fn plain(opener: Direction) -> Shape {
        Shape { ipv6: false, vlan: None, opener }
    }

    pub fn guest(&self) -> IpAddr {
        match self.ipv6 {
            true => Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, 2).into(),
            false => Ipv4Addr::new(10, 0, 0, 2).into(),
        }
    }

    pub fn peer(&self) -> IpAddr {
        match self.ipv6 {
            true => Ipv6Addr::new(0xfd00, 0, 0, 2, 0xaaaa, 0, 0, 9).into(),
            false => Ipv4Addr::new(192, 168, 77, 9).into(),
        }
    }
}

/// The options of both ends' SYNs.
#[derive(Clone, Debug)]
pub struct Offers {
    pub mss_bytes: Option<u16>,
    pub wscale: Option<u8>,
    pub sack: bool,
    pub timestamps: bool,
}

impl Default for Offers {
    /// The options of Linux.
    fn default() -> Self {
        Offers { mss_bytes: Some(1460), wscale: Some(7), sack: true, timestamps: true }
    }
}

impl Offers {
    pub const NONE: Offers =
        Offers { mss_bytes: None, wscale: None, sack: false, timestamps: false };

    fn options(&self) -> Vec<u8> {
        let sack = self.sack.then(options::sack_permitted);
        let timestamps = self.timestamps.then(|| options::timestamps(1000, 0));
        let wscale = self.wscale.map(|scale| [options::nops(1), options::wscale(scale)].concat());
        let parts = [self.mss_bytes.map(options::mss), sack, timestamps, wscale];
        options::join(&parts.into_iter().flatten().collect::<Vec<_>>())
    }
}

/// The two ends.
pub struct Connection {
    pub shape: Shape,
    pub offers: Offers,
    guest: SocketAddr,
    peer: SocketAddr,
    /// The next sequence number of each end.
    pub guest_next: u32,
    pub peer_next: u32,
}

impl Connection {
    pub fn new(shape: Shape, guest_port: u16) -> Self {
        Connection {
            shape,
            offers: Offers::default(),
            guest: SocketAddr::new(shape.guest(), guest_port),
            peer: SocketAddr::new(shape.peer(), 443),
            guest_next: 0x1000_0000,
            peer_next: 0x9000_0000,
        }
    }

    pub fn key(&self) -> Key {
        (self.guest, self.peer, self.shape.vlan)
    }

    pub fn next_of(&mut self, side: Direction) -> &mut u32 {
        match side {
            FromGuest => &mut self.guest_next,
            ToGuest => &mut self.peer_next,
        }
    }

    /// An ACK of all data that the other end has sent.
    pub fn packet(&self, from: Direction) -> Packet {
        let (sender, receiver, seq, ack) = match from {
            FromGuest => (self.guest, self.peer, self.guest_next, self.peer_next),
            ToGuest => (self.peer, self.guest, self.peer_next, self.guest_next),
        };
        let mut packet = Packet::new(sender, receiver);
        packet.tags = self.shape.vlan.map(|id| (ETHERTYPE_VLAN, id)).into_iter().collect();
        (packet.seq, packet.ack) = (seq, ack);
        packet.window = 502;
        if self.offers.timestamps {
            packet.options = options::join(&[options::nops(2), options::timestamps(2000, 1000)]);
        }
        packet
    }

    pub fn syn(&self) -> Packet {
        let mut packet = self.packet(self.shape.opener);
        (packet.flags, packet.ack, packet.window) = (SYN, 0, 64_240);
        packet.options = self.offers.options();
        packet
    }

    pub fn syn_ack(&self) -> Packet {
        let mut packet = self.packet(self.shape.opener.other());
        (packet.flags, packet.window) = (SYN | ACK, 65_160);
        packet.options = self.offers.options();
        packet
    }

    /// A super-segment beyond 64 KiB, two full segments of it: its IP header has length 0 (RFC 2675).
    pub fn big_super_segment(&self, from: Direction) -> Vec<u8> {
        let mut packet = self.packet(from);
        packet.payload = payload(2 * MSS_BYTES);
        let mut frame = packet.frame();
        let length = if self.shape.ipv6 { 4 } else { 2 };
        write_u16(&mut frame, ETHERNET_BYTES + 4 * packet.tags.len() + length, 0);
        fill_checksums(&mut frame);
        frame
    }

    /// Records that an end has sent a packet.
    pub fn sent(&mut self, from: Direction, packet: &Packet) {
        let marks = u32::from(packet.flags & SYN != 0) + u32::from(packet.flags & FIN != 0);
        let end = packet.seq.wrapping_add(packet.payload.len() as u32 + marks);
        let next = self.next_of(from);
        if end.wrapping_sub(*next) as i32 > 0 {
            *next = end;
        }
    }
}

/// A connection whose segments go through a datapath.
pub struct Conversation<'run> {
    pub run: &'run mut DualRun,
    pub connection: Connection,
}

impl<'run> Conversation<'run> {
    pub fn new(run: &'run mut DualRun, shape: Shape, guest_port: u16) -> Self {
        Conversation { run, connection: Connection::new(shape, guest_port) }
    }

    pub fn state(&self) -> &FlowState {
        self.run.state(&self.connection.key()).expect("the flow is there")
    }

    pub fn send_packet(&mut self, from: Direction, gso_size: u32, packet: &Packet) -> Outcome {
        self.connection.sent(from, packet);
        let outcome = self.run.send(from, &packet.frame(), gso_size);
        outcome.unwrap_or_else(|| panic!("{}: the flow is not known", self.run.doing))
    }

    /// Sends what `edit` makes of [`Connection::packet`], as a super-segment unless `gso_size`
    /// is 0.
    pub fn send_gso(
        &mut self,
        from: Direction,
        gso_size: u32,
        edit: impl FnOnce(&mut Packet),
    ) -> Outcome {
        let mut packet = self.connection.packet(from);
        edit(&mut packet);
        self.send_packet(from, gso_size, &packet)
    }

    pub fn send(&mut self, from: Direction, edit: impl FnOnce(&mut Packet)) -> Outcome {
        self.send_gso(from, 0, edit)
    }

    pub fn data(&mut self, from: Direction, bytes: usize) -> Outcome {
        self.send(from, |p| p.payload = payload(bytes))
    }

    pub fn ack(&mut self, from: Direction) -> Outcome {
        self.send(from, |_| {})
    }

    pub fn opener(&self) -> Direction {
        self.connection.shape.opener
    }

    pub fn syn(&mut self, flags: u16) -> Outcome {
        let mut packet = self.connection.syn();
        packet.flags |= flags;
        self.send_packet(self.opener(), 0, &packet)
    }

    pub fn syn_ack(&mut self, flags: u16) -> Outcome {
        let mut packet = self.connection.syn_ack();
        packet.flags |= flags;
        self.send_packet(self.opener().other(), 0, &packet)
    }

    /// A handshake in which the listener accepts ECN if it is offered.
    pub fn open(&mut self) {
        let syn = self.syn(0);
        self.syn_ack(syn.flags() & ECE);
        self.ack(self.opener());
    }

    /// A handshake in which the opener offers ECN.
    pub fn open_with_ecn(&mut self) {
        self.syn(ECE | CWR);
        self.syn_ack(ECE);
        self.ack(self.opener());
    }

    /// Retransmits data of the guest, from `back_bytes` before its end.
    pub fn again(&mut self, back_bytes: u32, bytes: usize) -> Outcome {
        let seq = self.connection.guest_next.wrapping_sub(back_bytes);
        self.send(FromGuest, |p| (p.seq, p.payload) = (seq, payload(bytes)))
    }

    /// The peer acknowledges all but the last `missing_bytes` of what the guest has sent.
    pub fn ack_but(&mut self, missing_bytes: u32, edit: impl FnOnce(&mut Packet)) -> Outcome {
        let ack = self.connection.guest_next.wrapping_sub(missing_bytes);
        self.send(ToGuest, |p| {
            p.ack = ack;
            edit(p);
        })
    }
}

//! Frames and connections for this crate's tests.

use std::net::{IpAddr, SocketAddr};

use vcc_engine::{FlowState, Params, sys};

use crate::checksum;
use crate::frame::{Checksum, Direction, Frame, Verdict};
use crate::key::FlowKey;
use crate::parse::{Parsed, parse};
use crate::port::Port;
use crate::wire::*;

pub(crate) const GUEST_MAC: [u8; MAC_BYTES] = [2, 0, 0, 0, 0, 1];
pub(crate) const NEXT_HOP_MAC: [u8; MAC_BYTES] = [2, 0, 0, 0, 0, 2];

pub(crate) const SYN: u16 = sys::TCP_SYN as u16;
pub(crate) const ACK: u16 = sys::TCP_ACK as u16;
pub(crate) const ECE: u16 = sys::TCP_ECE as u16;

/// A TCP segment; ends and numbers are those of its sender.
#[derive(Clone)]
pub(crate) struct Tcp {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub seq: u32,
    pub ack: u32,
    pub flags: u16,
    pub window: u16,
    /// Whole words.
    pub options: Vec<u8>,
    pub payload_bytes: usize,
    pub ecn: u8,
}

impl Tcp {
    /// Its frame, checksums full.
    pub(crate) fn frame(&self) -> Frame {
        let mut tcp = vec![0; TCP_BYTES];
        write_u16(&mut tcp, 0, self.from.port());
        write_u16(&mut tcp, 2, self.to.port());
        write_u32(&mut tcp, TCP_SEQ_AT, self.seq);
        write_u32(&mut tcp, TCP_ACK_AT, self.ack);
        let word = tcp_offset_flags(TCP_BYTES + self.options.len(), self.flags);
        write_u16(&mut tcp, TCP_OFFSET_FLAGS_AT, word);
        write_u16(&mut tcp, TCP_WINDOW_AT, self.window);
        tcp.extend(&self.options);
        // Even, so that all of it is words.
        assert_eq!(self.payload_bytes % 2, 0);
        tcp.extend((0..self.payload_bytes).map(|at| at as u8));
        let key = FlowKey::new(self.from, self.to, None);
        let check = checksum::of_tcp(&key.as_raw().guest_addr, &key.as_raw().peer_addr, &tcp);
        write_u16(&mut tcp, TCP_CHECK_AT, check);
        let (ethertype, ip) = self.ip(tcp.len());
        let bytes = [&NEXT_HOP_MAC[..], &GUEST_MAC, &ethertype.to_be_bytes(), &ip, &tcp].concat();
        Frame::full(bytes)
    }

    fn ip(&self, tcp_bytes: usize) -> (u16, Vec<u8>) {
        match (self.from.ip(), self.to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let mut ip = vec![0x45, self.ecn, 0, 0, 0, 1, 0x40, 0, 64, PROTOCOL_TCP, 0, 0];
                write_u16(&mut ip, 2, (IPV4_BYTES + tcp_bytes) as u16);
                ip.extend(from.octets());
                ip.extend(to.octets());
                let check = checksum::of(&[&ip]);
                write_u16(&mut ip, 10, check);
                (ETHERTYPE_IPV4, ip)
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let mut ip = vec![0x60, self.ecn << 4, 0, 0, 0, 0, PROTOCOL_TCP, 64];
                write_u16(&mut ip, 4, tcp_bytes as u16);
                ip.extend(from.octets());
                ip.extend(to.octets());
                (ETHERTYPE_IPV6, ip)
            }
            mixed => panic!("a segment between two families: {mixed:?}"),
        }
    }
}

/// Payload of a full segment, which is what [`Talk`]'s ends agree on.
pub(crate) const MSS_BYTES: usize = 1000;

/// A connection of a guest without SACK, through a port.
pub(crate) struct Talk {
    pub port: Port,
    pub now_ns: u64,
    pub guest: SocketAddr,
    pub peer: SocketAddr,
    pub guest_next: u32,
    pub peer_next: u32,
}

impl Talk {
    /// Of each family, with the usual parameters.
    pub(crate) fn v4() -> Self {
        Self::new(Params::default())
    }

    pub(crate) fn v6() -> Self {
        let [guest, peer] =
            ["[fd00::2]:40000", "[fd00::9]:80"].map(|end| end.parse().expect("an end"));
        Talk { guest, peer, ..Self::v4() }
    }

    pub(crate) fn new(params: Params) -> Self {
        Talk {
            port: Port::new(params, 16),
            now_ns: 0,
            guest: ([10, 0, 0, 2], 40_000).into(),
            peer: ([10, 0, 0, 9], 80).into(),
            guest_next: 1_000,
            peer_next: 5_000,
        }
    }

    pub(crate) fn key(&self) -> FlowKey {
        FlowKey::new(self.guest, self.peer, None)
    }

    pub(crate) fn flow(&self) -> &FlowState {
        self.port.flow(&self.key()).expect("the flow is there")
    }

    /// An empty ACK of all that the other end has sent.
    pub(crate) fn segment(&self, from_guest: bool) -> Tcp {
        let ends = [(self.guest, self.guest_next), (self.peer, self.peer_next)];
        let [(from, seq), (to, ack)] = if from_guest { ends } else { [ends[1], ends[0]] };
        let (options, payload_bytes) = (Vec::new(), 0);
        Tcp { from, to, seq, ack, flags: ACK, window: 60_000, options, payload_bytes, ecn: 0 }
    }

    pub(crate) fn send(&mut self, from_guest: bool, frame: Frame) -> (Verdict, Frame, Vec<Frame>) {
        let (mut frame, mut also) = (frame, Vec::new());
        let verdict = match from_guest {
            true => self.port.from_guest(self.now_ns, &mut frame, &mut also),
            false => self.port.to_guest(self.now_ns, &mut frame),
        };
        (verdict, frame, also)
    }

    /// What leaves, which must be one frame.
    pub(crate) fn pass(&mut self, from_guest: bool, segment: &Tcp) -> Frame {
        let (verdict, frame, also) = self.send(from_guest, segment.frame());
        assert_eq!((verdict, also.len()), (Verdict::Pass, 0));
        frame
    }

    /// The guest opens; options of the peer's answer come behind the MSS.
    pub(crate) fn open(&mut self, answer: &[u8]) {
        let mss = [&[2, 4][..], &(MSS_BYTES as u16).to_be_bytes()].concat();
        let syn = Tcp { flags: SYN, ack: 0, options: mss.clone(), ..self.segment(true) };
        self.pass(true, &syn);
        self.guest_next += 1;
        let options = [mss, answer.to_vec()].concat();
        let syn_ack = Tcp { flags: SYN | ACK | ECE, options, ..self.segment(false) };
        self.pass(false, &syn_ack);
        self.peer_next += 1;
        self.pass(true, &self.segment(true));
    }

    pub(crate) fn data_from_guest(&mut self) {
        let segment = Tcp { payload_bytes: MSS_BYTES, ..self.segment(true) };
        self.pass(true, &segment);
        self.guest_next += MSS_BYTES as u32;
    }

    pub(crate) fn wait(&mut self, ns: u64) {
        self.now_ns += ns;
    }

    /// Lets the port act on what is due by now.
    pub(crate) fn advance(&mut self) -> Vec<Frame> {
        let mut to_guest = Vec::new();
        self.port.advance(self.now_ns, &mut to_guest);
        to_guest
    }
}

/// Leaves what a card leaves to the next device: the sum of the pseudo-header.
pub(crate) fn make_partial(mut frame: Frame, tcp_at: usize) -> Frame {
    // Pseudo-header and segment sum up to -0, so each is the other's complement.
    let pseudo = checksum::of(&[&frame.bytes[tcp_at..]]);
    write_u16(&mut frame.bytes, tcp_at + TCP_CHECK_AT, pseudo);
    frame.checksum = Checksum::Partial;
    frame
}

/// What the next device does.
pub(crate) fn complete(mut frame: Frame, tcp_at: usize) -> Frame {
    assert_eq!(frame.checksum, Checksum::Partial);
    let check = checksum::of(&[&frame.bytes[tcp_at..]]);
    write_u16(&mut frame.bytes, tcp_at + TCP_CHECK_AT, check);
    frame.checksum = Checksum::Full;
    frame
}

/// Are IPv4's and TCP's checksums as a receiver wants them?
pub(crate) fn is_right(frame: &Frame) -> bool {
    let Ok(Parsed { ip, .. }) = parse(frame, Direction::FromGuest) else { return false };
    let tcp = &frame.bytes[ip.tcp_at..ip.tcp_at + ip.tcp_bytes];
    let header_is_right = ip.ipv6 || checksum::of(&[&frame.bytes[ip.at..ip.tcp_at]]) == 0;
    header_is_right && checksum::of_tcp(&ip.source, &ip.destination, tcp) == 0
}

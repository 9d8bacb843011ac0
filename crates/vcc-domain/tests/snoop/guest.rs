//! A guest behind a port that snoops, and one connection of a peer to it, played by hand.

use std::net::SocketAddr;

use vcc_domain::{Checksum, Frame, Out, Port, ReceiveRing, Verdict};
use vcc_engine::{FlowKey, FlowState, Params, sys};
use vcc_frames::wire::*;
use vcc_frames::{MACS, Packet, checksum, options};

use crate::common::watch::pattern;

pub const SEG_BYTES: u32 = 1000;
pub const ISS: u32 = 0xffff_f000;
pub const IRS: u32 = 0xffff_fc00;
const SCALE: u8 = 7;
/// Of the guest's windows.
pub const UNIT: u32 = 1 << SCALE;
/// Of the SYN-ACK, which is not scaled.
pub const FIRST_WINDOW: u32 = 60_000;
const NS_PER_MS: u64 = 1_000_000;

pub fn snooping() -> Params {
    Params(sys::vcc_params { receive: sys::RECEIVE_RING as u8, ..Params::default().0 })
}

pub struct Guest {
    pub port: Port,
    pub now_ns: u64,
    pub guest: SocketAddr,
    pub peer: SocketAddr,
    /// The clocks of both ends; none without timestamps.
    pub stamps: Option<(u32, u32)>,
    pub sack: bool,
    /// Of the guest's windows.
    pub scale: u8,
    pub ring_segs: u32,
    /// Frames more that are kept behind the ring.
    pub behind_segs: u32,
    /// Flags of ECN on the SYN and the SYN-ACK.
    pub ecn: [u16; 2],
    /// More options of the SYNs.
    pub syn_options: Vec<u8>,
    /// Of all that the guest sends.
    pub ip_options: Vec<u8>,
}

/// What a port has sent.
#[derive(Debug, Default)]
pub struct Sent {
    pub passed: bool,
    pub to_fabric: Vec<Said>,
    pub to_guest: Vec<Said>,
}

/// Of [`Sent::acks`].
pub const NO_ACKS: [u32; 0] = [];

/// A segment as its receiver reads it, relative to its connection's first data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The peer's.
    pub port: u16,
    pub seq: u32,
    pub ack: u32,
    pub flags: u16,
    pub window: u32,
    pub options: Vec<u8>,
    pub payload_bytes: usize,
}

impl Guest {
    pub fn new() -> Self {
        Self::with(snooping())
    }

    pub fn with(params: Params) -> Self {
        Guest {
            port: Port::new(params, 16),
            now_ns: 0,
            guest: ([10, 0, 0, 2], 80).into(),
            peer: ([10, 0, 0, 9], 40_000).into(),
            stamps: None,
            sack: true,
            scale: SCALE,
            ring_segs: 256,
            behind_segs: 0,
            ecn: [0; 2],
            syn_options: Vec::new(),
            ip_options: Vec::new(),
        }
    }

    pub fn v6() -> Self {
        let [guest, peer] =
            ["[fd00::2]:80", "[fd00::9]:40000"].map(|end| end.parse().expect("an end"));
        Guest { guest, peer, ..Self::new() }
    }

    /// A connection that the peer opens.
    pub fn accept(mut self) -> Self {
        self.open();
        self
    }

    /// Turns to another connection of the peer's, which has it open.
    pub fn at_peer(&mut self, port: u16) -> &mut Self {
        self.peer.set_port(port);
        self
    }

    pub fn open(&mut self) {
        let own = [
            options::mss(SEG_BYTES as u16),
            options::wscale(self.scale),
            options::sack_permitted(),
        ];
        let own = options::join(&own[..if self.sack { 3 } else { 2 }]);
        let options = |guest: &Self, value, echo| {
            let stamps = guest.stamps.map_or(Vec::new(), |_| options::timestamps(value, echo));
            options::join(&[own.clone(), stamps, guest.syn_options.clone()])
        };
        let (ours, theirs) = self.stamps.unwrap_or_default();
        let syn = Packet {
            seq: IRS,
            flags: SYN | self.ecn[0],
            options: options(self, theirs, 0),
            ..self.peer_packet(0, 0)
        };
        assert!(self.receive(&Packet { ack: 0, ..syn }).passed);
        let syn_ack = Packet {
            seq: ISS,
            flags: SYN | ACK | self.ecn[1],
            window: FIRST_WINDOW as u16,
            options: options(self, ours, theirs),
            ..self.guest_packet(0, 0)
        };
        assert!(self.send(&syn_ack).passed);
        assert!(self.receive(&self.peer_packet(0, 0)).passed);
    }

    pub fn flow(&self) -> &FlowState {
        self.port.flow(&FlowKey::new(self.guest, self.peer, None)).expect("the flow is there")
    }

    /// A segment of the peer with `bytes` at an offset of its stream.
    pub fn peer_packet(&self, offset: u32, bytes: u32) -> Packet {
        let (ours, theirs) = self.stamps.unwrap_or_default();
        let payload = (offset..offset + bytes).map(|at| pattern(0, at.into())).collect();
        Packet {
            seq: IRS.wrapping_add(1).wrapping_add(offset),
            ack: ISS.wrapping_add(1),
            // The guest's Ethernet address is the source of its own frames.
            macs: [MACS[1], MACS[0]],
            options: self
                .stamps
                .map_or(Vec::new(), |_| options::join(&[options::timestamps(theirs, ours)])),
            payload,
            ..Packet::new(self.peer, self.guest)
        }
    }

    /// A segment of the guest that acknowledges `ack` bytes and offers a window of so many.
    pub fn guest_packet(&self, ack: u32, window_bytes: u32) -> Packet {
        let (ours, theirs) = self.stamps.unwrap_or_default();
        Packet {
            seq: ISS.wrapping_add(1),
            ack: IRS.wrapping_add(1).wrapping_add(ack),
            window: (window_bytes >> self.scale) as u16,
            options: self
                .stamps
                .map_or(Vec::new(), |_| options::join(&[options::timestamps(ours, theirs)])),
            ip_options: self.ip_options.clone(),
            ..Packet::new(self.guest, self.peer)
        }
    }

    fn decoded(&self, frame: &Frame, of_guest: bool) -> Said {
        let ipv6 = self.guest.is_ipv6();
        let bytes = &frame.bytes;
        let ipv4_bytes = usize::from(bytes[ETHERNET_BYTES] & 0xf) * 4;
        let l4 = ETHERNET_BYTES + if ipv6 { IPV6_BYTES } else { ipv4_bytes };
        let at = vcc_frames::Headers { ipv6, l3: ETHERNET_BYTES, l4, end: bytes.len() };
        assert!(frame.checksum == Checksum::Partial || checksum::verify(bytes, &at));
        let payload_at = l4 + usize::from(bytes[l4 + 12] >> 4) * 4;
        let (iss, irs) = if of_guest { (ISS, IRS) } else { (IRS, ISS) };
        let flags = read_u16(bytes, l4 + 12) & ALL_FLAGS;
        let scale = if flags & SYN == 0 && of_guest { self.scale } else { 0 };
        let port = read_u16(bytes, if of_guest { l4 + 2 } else { l4 });
        Said {
            port,
            seq: read_u32(bytes, l4 + 4).wrapping_sub(iss.wrapping_add(1)),
            ack: read_u32(bytes, l4 + 8).wrapping_sub(irs.wrapping_add(1)),
            flags,
            window: u32::from(read_u16(bytes, l4 + 14)) << scale,
            options: bytes[l4 + TCP_BYTES..payload_at].to_vec(),
            payload_bytes: bytes.len() - payload_at,
        }
    }

    fn sent(&self, passed: Option<&Frame>, of_guest: bool, out: &Out) -> Sent {
        let mut sent = Sent { passed: passed.is_some(), ..Sent::default() };
        sent.to_fabric.extend(passed.filter(|_| of_guest).map(|frame| self.decoded(frame, true)));
        sent.to_fabric.extend(out.to_fabric.iter().map(|frame| self.decoded(frame, true)));
        sent.to_guest.extend(out.to_guest.iter().map(|frame| self.decoded(frame, false)));
        sent
    }

    /// What has left, decoded.
    pub fn sent_of(&self, out: &Out) -> Sent {
        self.sent(None, true, out)
    }

    pub fn send(&mut self, packet: &Packet) -> Sent {
        let (mut frame, mut out) = (Frame::full(packet.frame()), Out::default());
        let verdict = self.port.from_guest(self.now_ns, &mut frame, &mut out);
        self.sent((verdict == Verdict::Pass).then_some(&frame), true, &out)
    }

    /// The guest acknowledges so many bytes and offers a window.
    pub fn acks(&mut self, ack: u32, window_bytes: u32) -> Sent {
        self.send(&self.guest_packet(ack, window_bytes))
    }

    pub fn receive(&mut self, packet: &Packet) -> Sent {
        self.receive_frame(Frame::full(packet.frame()))
    }

    /// A frame that the ring takes.
    pub fn receive_frame(&mut self, mut frame: Frame) -> Sent {
        let mut out = Out::default();
        let (verdict, receipt) = self.port.to_guest(self.now_ns, &mut frame, &mut out);
        assert_eq!(out, Out::default(), "not before the ring has it");
        if verdict == Verdict::Pass {
            self.port.set_room(self.now_ns, self.ring(), &mut out);
            self.port.placed(self.now_ns, frame.clone(), receipt, &mut out);
        }
        self.sent((verdict == Verdict::Pass).then_some(&frame), false, &out)
    }

    /// All of its ring's buffers are without a frame.
    fn ring(&self) -> ReceiveRing {
        let Guest { ring_segs, behind_segs, .. } = *self;
        ReceiveRing { size_segs: ring_segs, free_segs: ring_segs, behind_segs }
    }

    /// Data of the peer.
    pub fn data(&mut self, offset: u32, bytes: u32) -> Sent {
        self.receive(&self.peer_packet(offset, bytes))
    }

    /// The guest has read so many of its ring's frames.
    pub fn reads(&mut self, ring_segs: u32) -> Sent {
        self.ring_segs = ring_segs;
        let mut out = Out::default();
        self.port.set_room(self.now_ns, self.ring(), &mut out);
        self.sent(None, true, &out)
    }

    pub fn wait_ms(&mut self, ms: u64) -> Sent {
        let (until_ns, mut out) = (self.now_ns + ms * NS_PER_MS, Out::default());
        while let Some(at_ns) = self.port.next_deadline_ns().filter(|&at_ns| at_ns <= until_ns) {
            self.now_ns = at_ns;
            self.port.advance(self.now_ns, &mut out);
        }
        self.now_ns = until_ns;
        self.sent(None, true, &out)
    }
}

impl Sent {
    /// The acknowledgements to the peer.
    pub fn acks(&self) -> Vec<u32> {
        self.to_fabric.iter().map(|decoded| decoded.ack).collect()
    }
}

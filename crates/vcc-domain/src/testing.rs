//! Frames and connections for this crate's tests.

use std::net::SocketAddr;

use vcc_engine::{FlowState, Params, sys};
use vcc_frames::{Headers, MACS, Packet, checksum, payload};

use crate::frame::{Checksum, Direction, Frame, Out, Verdict};
use crate::parse::{Parsed, parse};
use crate::port::Port;
use vcc_engine::FlowKey;

/// The generator of the engine's tests.
#[allow(dead_code, reason = "the unit tests use a part")]
#[path = "../../vcc-engine/tests/common/sim/rng.rs"]
pub(crate) mod rng;

/// The MAC addresses of frames from the guest.
pub(crate) const NEXT_HOP_MAC: [u8; 6] = MACS[0];
pub(crate) const GUEST_MAC: [u8; 6] = MACS[1];

pub(crate) const SYN: u16 = sys::TCP_SYN as u16;
pub(crate) const ACK: u16 = sys::TCP_ACK as u16;
pub(crate) const ECE: u16 = sys::TCP_ECE as u16;

/// A segment as it crosses a port, with full checksums.
pub(crate) fn framed(segment: &Packet) -> Frame {
    Frame::full(segment.frame())
}

/// The MSS of both ends of a [`Talk`].
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
    /// Over IPv4, with default parameters.
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

    /// An empty ACK of all data that the other end has sent.
    pub(crate) fn segment(&self, from_guest: bool) -> Packet {
        let ends = [(self.guest, self.guest_next), (self.peer, self.peer_next)];
        let [(from, seq), (to, ack)] = if from_guest { ends } else { [ends[1], ends[0]] };
        Packet { seq, ack, window: 60_000, ..Packet::new(from, to) }
    }

    pub(crate) fn send(&mut self, from_guest: bool, frame: Frame) -> (Verdict, Frame, Vec<Frame>) {
        let (verdict, frame, out) = self.cross(from_guest, frame);
        assert_eq!(out.to_guest, []);
        (verdict, frame, out.to_fabric)
    }

    /// Passes a frame through the port.
    pub(crate) fn cross(&mut self, from_guest: bool, frame: Frame) -> (Verdict, Frame, Out) {
        let (mut frame, mut out) = (frame, Out::default());
        let verdict = match from_guest {
            true => self.port.from_guest(self.now_ns, &mut frame, &mut out),
            false => self.port.to_guest(self.now_ns, &mut frame, &mut out).0,
        };
        (verdict, frame, out)
    }

    /// Sends a segment that must pass as one frame; returns that.
    pub(crate) fn pass(&mut self, from_guest: bool, segment: &Packet) -> Frame {
        let (verdict, frame, also) = self.send(from_guest, framed(segment));
        assert_eq!((verdict, also.len()), (Verdict::Pass, 0));
        frame
    }

    /// A handshake that the guest opens; `answer` are the options of the SYN-ACK behind the MSS.
    pub(crate) fn open(&mut self, answer: &[u8]) {
        let mss = [&[2, 4][..], &(MSS_BYTES as u16).to_be_bytes()].concat();
        let syn = Packet { flags: SYN, ack: 0, options: mss.clone(), ..self.segment(true) };
        self.pass(true, &syn);
        self.guest_next += 1;
        let options = [mss, answer.to_vec()].concat();
        let syn_ack = Packet { flags: SYN | ACK | ECE, options, ..self.segment(false) };
        self.pass(false, &syn_ack);
        self.peer_next += 1;
        self.pass(true, &self.segment(true));
    }

    pub(crate) fn data_from_guest(&mut self) {
        let segment = Packet { payload: payload(MSS_BYTES), ..self.segment(true) };
        self.pass(true, &segment);
        self.guest_next += MSS_BYTES as u32;
    }

    pub(crate) fn wait(&mut self, ns: u64) {
        self.now_ns += ns;
    }

    /// Runs the timers that are due.
    pub(crate) fn advance(&mut self) -> Vec<Frame> {
        let mut out = Out::default();
        self.port.advance(self.now_ns, &mut out);
        out.to_guest
    }
}

/// Gives a frame the partial checksum of a sender with checksum offload.
pub(crate) fn make_partial(mut frame: Frame) -> Frame {
    let at = headers(&frame);
    checksum::make_partial(&mut frame.bytes, &at);
    frame.checksum = Checksum::Partial;
    frame
}

/// Completes a partial checksum, as the next device does.
pub(crate) fn complete(mut frame: Frame) -> Frame {
    assert_eq!(frame.checksum, Checksum::Partial);
    let at = headers(&frame);
    checksum::complete(&mut frame.bytes, &at);
    frame.checksum = Checksum::Full;
    frame
}

/// Whether a receiver accepts the checksums.
pub(crate) fn is_right(frame: &Frame) -> bool {
    checksum::verify(&frame.bytes, &headers(frame))
}

fn headers(frame: &Frame) -> Headers {
    let Parsed { ip, .. } = parse(frame, Direction::FromGuest).expect("a TCP segment");
    Headers { ipv6: ip.ipv6, l3: ip.at, l4: ip.tcp_at, end: ip.tcp_at + ip.tcp_bytes }
}

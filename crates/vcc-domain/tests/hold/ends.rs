//! The two ends of a connection through a port under `hold`, played by hand.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use vcc_domain::{BufferSpec, Checksum, Frame, Out, Port, ReceiveRing, Verdict};
use vcc_engine::{FlowKey, FlowState, Params, sys};
use vcc_frames::wire::*;
use vcc_frames::{Packet, checksum, options};

use crate::common::segment::Segment;
use crate::common::watch::{Watch, distance, pattern};

/// A multiple of the unit of the windows shown, so that the port does not round it.
pub const MSS_BYTES: usize = 1000;
const WINDOW_MAX_BYTES: u32 = 500_000;
pub const SALT: u8 = 0x33;
/// The buffers of a guest's receive ring.
pub const RING_SEGS: u32 = 256;
/// The congestion window of a new connection.
pub const INITIAL_WINDOW_BYTES: u32 = 10 * MSS_BYTES as u32;
const NS_PER_MS: u64 = 1_000_000;

pub fn holding() -> Params {
    let (act, window_max_bytes) = (sys::ACT_HOLD as u8, WINDOW_MAX_BYTES);
    Params(sys::vcc_params { act, window_max_bytes, ..Params::default().0 })
}

/// A guest's port and the network beyond.
pub struct Guest {
    pub port: Port,
    pub watch: Watch,
    pub now_ns: u64,
    /// What has left for the fabric and reached the guest since the last [`Guest::take`].
    pub left: Vec<Frame>,
    pub shown: Vec<Frame>,
}

impl Guest {
    pub fn new() -> Self {
        Self::with_buffer(BufferSpec::default())
    }

    pub fn with_buffer(buffer: BufferSpec) -> Self {
        Self::with(holding(), buffer)
    }

    pub fn with(params: Params, buffer: BufferSpec) -> Self {
        Guest {
            port: Port::with_buffer(params, 64, buffer),
            watch: Watch::new(SALT),
            now_ns: 0,
            left: Vec::new(),
            shown: Vec::new(),
        }
    }

    pub fn send(&mut self, packet: &Packet) -> Verdict {
        self.send_frame(Frame::full(packet.frame()))
    }

    /// As a card with segmentation and checksum offload does.
    pub fn send_super(&mut self, packet: &Packet, gso_size: usize) -> Verdict {
        let mut bytes = packet.frame();
        checksum::make_partial(&mut bytes, &packet.headers());
        let gso_size = gso_size as u16;
        self.send_frame(Frame { bytes, gso_size, checksum: Checksum::Partial })
    }

    pub fn send_frame(&mut self, frame: Frame) -> Verdict {
        self.watch.see_from_guest(&frame.bytes);
        self.send_stray(frame)
    }

    /// A frame that is not of the guest's stream.
    pub fn send_stray(&mut self, mut frame: Frame) -> Verdict {
        let mut out = Out::default();
        let verdict = self.port.from_guest(self.now_ns, &mut frame, &mut out);
        if verdict == Verdict::Pass {
            out.to_fabric.insert(0, frame);
        }
        self.carry(out);
        if self.port.next_deadline_ns().is_some_and(|due_ns| due_ns <= self.now_ns) {
            self.advance();
        }
        verdict
    }

    pub fn receive(&mut self, packet: &Packet) -> Verdict {
        self.watch.see_from_peer(&packet.frame());
        self.cross(packet, false)
    }

    /// A segment that is not the peer's, and that the guest discards.
    pub fn receive_forged(&mut self, packet: &Packet) -> Verdict {
        self.cross(packet, true)
    }

    /// A segment whose checksum is wrong, so that the guest discards it.
    pub fn receive_corrupt(&mut self, packet: &Packet) {
        let mut bytes = packet.frame();
        bytes[packet.headers().l4 + TCP_CHECK_AT] ^= 1;
        let (mut frame, mut out) = (Frame::full(bytes.clone()), Out::default());
        let (verdict, _) = self.port.to_guest(self.now_ns, &mut frame, &mut out);
        assert_eq!((verdict, frame.bytes), (Verdict::Pass, bytes));
        assert!(out.to_fabric.is_empty() && out.to_guest.is_empty());
    }

    fn cross(&mut self, packet: &Packet, forged: bool) -> Verdict {
        self.cross_frame(Frame::full(packet.frame()), forged)
    }

    /// A frame that is no segment.
    pub fn receive_frame(&mut self, frame: Frame) -> Verdict {
        self.cross_frame(frame, false)
    }

    fn cross_frame(&mut self, mut frame: Frame, forged: bool) -> Verdict {
        let mut out = Out::default();
        let (verdict, _) = self.port.to_guest(self.now_ns, &mut frame, &mut out);
        if verdict == Verdict::Pass {
            self.watch.see_to_guest(&self.port, &frame, forged);
            self.shown.push(frame);
        }
        self.carry(out);
        verdict
    }

    /// So many buffers of the guest's receive ring have no frame.
    pub fn set_room(&mut self, free_segs: u32) {
        let (ring, mut out) =
            (ReceiveRing { size_segs: RING_SEGS, free_segs, behind_segs: 0 }, Out::default());
        self.port.set_room(self.now_ns, ring, &mut out);
        self.carry(out);
    }

    /// The port ends in order.
    pub fn end_port(&mut self) {
        let mut out = Out::default();
        self.port.end(self.now_ns, &mut out);
        self.carry(out);
    }

    pub fn wait_ms(&mut self, ms: u64) {
        let until_ns = self.now_ns + ms * NS_PER_MS;
        while let Some(at_ns) = self.port.next_deadline_ns().filter(|&at_ns| at_ns <= until_ns) {
            self.now_ns = at_ns;
            self.advance();
        }
        self.now_ns = until_ns;
        self.advance();
    }

    fn advance(&mut self) {
        let mut out = Out::default();
        self.port.advance(self.now_ns, &mut out);
        self.carry(out);
    }

    fn carry(&mut self, out: Out) {
        for frame in &out.to_fabric {
            self.watch.leaves(&self.port, frame);
        }
        for frame in &out.to_guest {
            self.watch.see_to_guest(&self.port, frame, false);
        }
        self.left.extend(out.to_fabric);
        self.shown.extend(out.to_guest);
    }
}

/// One connection of the guest.
pub struct Ends {
    pub guest: SocketAddr,
    pub peer: SocketAddr,
    pub iss: u32,
    pub irs: u32,
    /// Scales of the guest's and of the peer's windows.
    pub scales: [u8; 2],
    /// Timestamps on each segment, or none.
    pub stamp: Option<u32>,
    pub sack: bool,
    /// What the peer has received, as ranges of offsets, and how much of it in sequence.
    received: BTreeMap<u32, u32>,
    pub in_sequence: u32,
    /// A FIN arrived in sequence.
    pub finished: bool,
}

impl Ends {
    pub fn new(number: u16) -> Self {
        Ends {
            guest: ([10, 0, 0, 2], 40_000 + number).into(),
            peer: ([10, 0, 0, 9], 80).into(),
            iss: 0xffff_0000u32.wrapping_add(u32::from(number) << 12),
            irs: 0x7fff_fff0,
            scales: [7, 7],
            stamp: None,
            sack: false,
            received: BTreeMap::new(),
            in_sequence: 0,
            finished: false,
        }
    }

    pub fn key(&self) -> FlowKey {
        FlowKey::new(self.guest, self.peer, None)
    }

    pub fn flow<'port>(&self, guest: &'port Guest) -> &'port FlowState {
        guest.port.flow(&self.key()).expect("a flow")
    }

    fn stamps(&self) -> Vec<u8> {
        match self.stamp {
            Some(stamp) => options::join(&[options::timestamps(stamp, stamp)]),
            None => Vec::new(),
        }
    }

    fn syn_options(&self, scale: u8) -> Vec<u8> {
        // Less the timestamps that each segment carries (RFC 6691, 3).
        let mss_bytes = MSS_BYTES + self.stamps().len();
        let mut all = vec![options::mss(mss_bytes as u16), options::wscale(scale)];
        all.extend(self.stamp.map(|stamp| options::timestamps(stamp, 0)));
        all.extend(self.sack.then(options::sack_permitted));
        options::join(&all)
    }

    pub fn syn(&self) -> Packet {
        let options = self.syn_options(self.scales[0]);
        Packet { seq: self.iss, options, ..Packet::syn(self.guest, self.peer) }
    }

    /// The peer's SYN-ACK with this window, which is unscaled.
    pub fn syn_ack(&self, window: u16) -> Packet {
        Packet {
            flags: SYN | ACK,
            seq: self.irs,
            ack: self.iss.wrapping_add(1),
            window,
            options: self.syn_options(self.scales[1]),
            ..Packet::new(self.peer, self.guest)
        }
    }

    /// A handshake that the guest opens.
    pub fn open(&self, guest: &mut Guest, window: u16) {
        let _ = guest.send(&self.syn());
        let _ = guest.receive(&self.syn_ack(window));
        let _ = guest.send(&self.guest_ack(0));
    }

    /// A handshake that the peer opens.
    pub fn accept(&self, guest: &mut Guest, window_bytes: u32) {
        let _ = guest.receive(&self.peer_syn());
        let _ = guest.send(&self.answer());
        let _ = guest.receive(&self.peer_ack(0, window_bytes));
    }

    pub fn peer_syn(&self) -> Packet {
        let options = self.syn_options(self.scales[1]);
        Packet { seq: self.irs, options, ..Packet::syn(self.peer, self.guest) }
    }

    /// The guest's SYN-ACK.
    pub fn answer(&self) -> Packet {
        let ack = self.irs.wrapping_add(1);
        Packet { flags: SYN | ACK, ack, ..self.syn() }
    }

    /// An empty ACK of the guest, which has sent `sent` bytes.
    pub fn guest_ack(&self, sent: u32) -> Packet {
        Packet {
            seq: self.seq(sent),
            ack: self.irs.wrapping_add(1),
            window: 60_000,
            options: self.stamps(),
            ..Packet::new(self.guest, self.peer)
        }
    }

    pub fn data(&self, offset: u32, bytes: usize) -> Packet {
        let at = u64::from(offset);
        let payload = (at..at + bytes as u64).map(|at| pattern(SALT, at)).collect();
        Packet { payload, ..self.guest_ack(offset) }
    }

    pub fn seq(&self, offset: u32) -> u32 {
        self.iss.wrapping_add(1).wrapping_add(offset)
    }

    /// The peer's ACK of `offset` bytes. Its window is rounded down to its scale.
    pub fn peer_ack(&self, offset: u32, window_bytes: u32) -> Packet {
        Packet {
            seq: self.irs.wrapping_add(1),
            ack: self.seq(offset),
            window: (window_bytes >> self.scales[1]) as u16,
            options: self.stamps(),
            ..Packet::new(self.peer, self.guest)
        }
    }

    /// A range that the peer has received out of sequence, for a SACK block.
    pub fn beyond_hole(&self) -> Option<(u32, u32)> {
        self.received.iter().next().map(|(&from, &to)| (self.seq(from), self.seq(to)))
    }

    /// The peer receives what has left; returns whether there was any of this connection.
    pub fn take(&mut self, guest: &mut Guest) -> bool {
        let mut any = false;
        guest.left.retain(|frame| {
            let segment = Segment::read(&frame.bytes).expect("TCP");
            if (segment.from, segment.to) != (self.guest, self.peer) {
                return true;
            }
            any = true;
            let from = distance(self.seq(0), segment.seq);
            let to = distance(self.seq(0), segment.payload_end());
            if to > from.max(0) {
                let end = self.received.entry(from.max(0) as u32).or_default();
                *end = (*end).max(to as u32);
            }
            while let Some(entry) = self.received.first_entry() {
                if *entry.key() > self.in_sequence {
                    break;
                }
                self.in_sequence = self.in_sequence.max(entry.remove());
            }
            if segment.has(FIN) && to == i64::from(self.in_sequence) {
                self.finished = true;
            }
            false
        });
        any
    }

    /// The peer takes and acknowledges what leaves, until nothing more does.
    pub fn drain(&mut self, guest: &mut Guest, window_bytes: u32) {
        while self.take(guest) {
            guest.wait_ms(1);
            let ack = self.peer_ack(self.in_sequence + u32::from(self.finished), window_bytes);
            let _ = guest.receive(&ack);
        }
    }
}

//! A guest with a receiver of its own, which runs when a test lets it, behind a port with a buffer, and
//! what may be said in its name.

use std::collections::VecDeque;

use vcc_domain::{Frame, Out, ReceiveRing, Verdict};
use vcc_engine::{Params, sys};
use vcc_frames::wire::*;
use vcc_frames::{Packet, options};

use crate::common::segment::Segment;
use crate::common::watch::pattern;
use crate::guest::{FIRST_WINDOW, Guest, IRS, ISS, SEG_BYTES, Sent};

pub fn buffering() -> Params {
    Params::with(|params| params.receive = sys::RECEIVE_BUFFER as u8)
}

/// Of one connection.
pub const MOST_BYTES: u32 = sys::RECEIVE_BUFFER_MAX_BYTES;

/// Numbers are offsets in the peer's stream.
pub struct Receiver {
    pub guest: Guest,
    pub ring: VecDeque<Vec<u8>>,
    pub ring_segs: usize,
    /// Of its receive buffer.
    pub space_bytes: u32,
    /// What it has received; of this, its application has read so much.
    pub nxt: u32,
    pub read_bytes: u32,
    pub application_reads: bool,
    pub fin: bool,
    pub reset: bool,
    /// The highest edge that it has offered, and the last one.
    pub edge: u32,
    /// Put into its ring, in sequence.
    pub given: u32,
    ts_recent: u32,
    last_ack: u32,
    /// What its own data was acknowledged up to.
    pub una: u32,
    pub own_nxt: u32,
    /// What the peer has sent in sequence, and the end of its stream with FIN.
    pub complete: u32,
    arrived: Vec<(u32, u32)>,
    pub fin_at: Option<u32>,
    /// What the peer has heard.
    pub acked: u32,
    pub told: u32,
    pub heard: Vec<crate::guest::Said>,
    /// Windows may shrink, by a guest that draws its own back.
    pub is_honest: bool,
    /// The port stores no more for it, and shows its own window.
    pub may_shrink: bool,
    /// Frames with data that were given, and segments without.
    pub given_frames: Vec<(u32, usize)>,
    pub paws: u32,
    pub duplicates: u32,
}

impl Receiver {
    pub fn new(guest: Guest) -> Self {
        let mut guest = guest;
        guest.open();
        Receiver {
            guest,
            ring: VecDeque::new(),
            ring_segs: 256,
            space_bytes: FIRST_WINDOW,
            nxt: 0,
            read_bytes: 0,
            application_reads: true,
            fin: false,
            reset: false,
            edge: FIRST_WINDOW,
            given: 0,
            ts_recent: 0,
            last_ack: 0,
            una: 0,
            own_nxt: 0,
            complete: 0,
            arrived: Vec::new(),
            fin_at: None,
            acked: 0,
            told: FIRST_WINDOW,
            heard: Vec::new(),
            is_honest: true,
            may_shrink: false,
            given_frames: Vec::new(),
            paws: 0,
            duplicates: 0,
        }
        .with_room()
    }

    pub fn buffering() -> Self {
        Self::new(Guest::with(buffering()))
    }

    fn with_room(mut self) -> Self {
        self.tell_room();
        self
    }

    pub fn tell_room(&mut self) {
        let mut out = Out::default();
        let ring = self.room();
        self.guest.port.set_room(self.guest.now_ns, ring, &mut out);
        self.carry(out);
    }

    fn room(&self) -> ReceiveRing {
        let free_segs = self.ring_segs.saturating_sub(self.ring.len()) as u32;
        ReceiveRing { size_segs: self.ring_segs as u32, free_segs, behind_segs: 0 }
    }

    /// A segment of the peer reaches the port.
    pub fn arrive(&mut self, packet: &Packet) {
        let from = packet.seq.wrapping_sub(IRS.wrapping_add(1));
        let end = from.wrapping_add(packet.payload.len() as u32);
        self.arrived.push((from, end));
        while let Some(&(_, end)) = self
            .arrived
            .iter()
            .find(|(from, end)| *from <= self.complete && *end > self.complete && *end < 1 << 30)
        {
            self.complete = end;
        }
        let complete = self.complete;
        self.arrived.retain(|(_, end)| *end > complete);
        self.pass(Frame::full(packet.frame()));
    }

    /// A super-segment, up to there.
    pub fn arrive_frame(&mut self, frame: Frame, end: u32) {
        self.complete = self.complete.max(end);
        self.pass(frame);
    }

    /// The guest continues behind another port.
    pub fn go_on(&mut self) {
        self.tell_room();
        let mut out = Out::default();
        self.guest.port.go_on(self.guest.now_ns, &mut out);
        self.carry(out);
    }

    fn pass(&mut self, mut frame: Frame) {
        let mut out = Out::default();
        let (verdict, receipt) = self.guest.port.to_guest(self.guest.now_ns, &mut frame, &mut out);
        if verdict == Verdict::Pass && self.place(&frame.bytes) {
            let ring = self.room();
            self.guest.port.set_room(self.guest.now_ns, ring, &mut out);
            self.guest.port.placed(self.guest.now_ns, frame, receipt, &mut out);
        }
        self.carry(out);
    }

    /// Data of the peer's, from there.
    pub fn data(&mut self, offset: u32, bytes: u32) {
        let packet = self.peer_packet(offset, bytes);
        self.arrive(&packet);
    }

    pub fn peer_packet(&self, offset: u32, bytes: u32) -> Packet {
        let packet = self.guest.peer_packet(offset, bytes);
        Packet { ack: packet.ack.wrapping_add(self.own_nxt), ..packet }
    }

    /// The peer sends what it may of a stream of so many bytes. Returns what it has sent by then.
    pub fn send_up_to(&mut self, mut sent: u32, end: u32) -> u32 {
        while sent < end && sent + SEG_BYTES.min(end - sent) <= self.told {
            let bytes = SEG_BYTES.min(end - sent);
            self.data(sent, bytes);
            sent += bytes;
        }
        sent
    }

    fn place(&mut self, frame: &[u8]) -> bool {
        if self.ring.len() >= self.ring_segs {
            return false;
        }
        self.check_given(frame);
        self.ring.push_back(frame.to_vec());
        true
    }

    fn check_given(&mut self, frame: &[u8]) {
        let segment = Segment::read(frame).expect("a segment");
        assert!(segment.is_right(frame, false), "a checksum is wrong");
        let from = segment.seq.wrapping_sub(IRS.wrapping_add(1));
        let end = from.wrapping_add(segment.payload.len() as u32);
        if segment.has(RST) {
            return;
        }
        if !segment.payload.is_empty() {
            self.given_frames.push((from, segment.payload.len()));
            for (at, byte) in (from..).zip(segment.payload) {
                assert_eq!(*byte, pattern(0, at.into()), "at {at}");
            }
            if from <= self.given {
                self.given = self.given.max(end);
            }
        }
        if segment.has(FIN) && Some(end) == self.fin_at {
            assert_eq!(self.given, end, "a FIN before data that is missing");
        }
    }

    /// What the port lets go.
    fn carry(&mut self, out: Out) {
        for frame in &out.to_guest {
            let segment = Segment::read(&frame.bytes).expect("a segment");
            let from = segment.seq.wrapping_sub(IRS.wrapping_add(1));
            let end = from.wrapping_add(segment.payload.len() as u32);
            assert!(
                segment.payload.is_empty() || end <= self.edge || !self.is_honest,
                "{end} is given, beyond the guest's edge at {}",
                self.edge
            );
            self.place(&frame.bytes);
        }
        let Sent { to_fabric, .. } = self.guest.sent_of(&out);
        for said in to_fabric {
            self.hear(said);
        }
    }

    fn hear(&mut self, said: crate::guest::Said) {
        if said.flags & (SYN | RST) != 0 {
            self.heard.push(said);
            return;
        }
        let fin = u32::from(self.fin_at == Some(self.complete) && self.fin);
        if self.is_honest {
            assert!(
                said.ack <= self.complete + fin,
                "law 16: {} of {} is acknowledged",
                said.ack,
                self.complete
            );
        }
        let unit = 1 << self.guest.scale;
        let edge = said.ack + said.window;
        if said.ack >= self.acked {
            let is_kept = edge + 2 * unit > self.told;
            let may_shrink = self.may_shrink || !self.is_honest;
            assert!(is_kept || may_shrink, "the edge moved from {} to {edge}", self.told);
            self.acked = said.ack;
            self.told = if self.may_shrink { edge } else { self.told.max(edge) };
        }
        let most = self.edge.max(self.nxt + MOST_BYTES);
        assert!(edge <= most + 2 * unit || !self.is_honest, "{edge} is offered, beyond {most}");
        self.heard.push(said);
    }

    fn window(&self) -> u32 {
        let unread_bytes = self.nxt - self.read_bytes;
        // As a real one, it does not draw its window back.
        let window = self.space_bytes.saturating_sub(unread_bytes);
        if self.is_honest { window.max(self.edge.saturating_sub(self.nxt)) } else { window }
    }

    /// The guest runs: it reads its ring, and acknowledges. Returns whether it has read anything.
    pub fn run(&mut self) -> bool {
        let mut answers = false;
        let had = !self.ring.is_empty();
        while let Some(frame) = self.ring.pop_front() {
            answers |= self.read(&frame);
        }
        if self.application_reads && self.read_bytes < self.nxt {
            self.read_bytes = self.nxt;
            answers = true;
        }
        self.tell_room();
        if answers && !self.reset {
            self.acknowledge();
        }
        had
    }

    /// Until nothing happens any more.
    pub fn run_to_rest(&mut self) {
        while self.run() || !self.ring.is_empty() {}
    }

    fn read(&mut self, frame: &[u8]) -> bool {
        let segment = Segment::read(frame).expect("a segment");
        let from = segment.seq.wrapping_sub(IRS.wrapping_add(1)) as i32;
        let end = from + segment.payload.len() as i32;
        if segment.has(RST) {
            assert_eq!(from, self.nxt as i32, "RFC 5961: the guest would answer the RST");
            self.reset = true;
            return false;
        }
        if let Some(tsval) = tsval_of(frame) {
            if (tsval.wrapping_sub(self.ts_recent) as i32) < 0 {
                self.paws += 1;
                return true;
            }
            // RFC 7323, 4.3.
            if from <= self.last_ack as i32 {
                self.ts_recent = tsval;
            }
        }
        let edge = self.edge.max(self.nxt) as i32;
        if segment.has(ACK) && from <= edge {
            let ack = segment.ack.wrapping_sub(ISS.wrapping_add(1));
            if ack <= self.own_nxt {
                self.una = self.una.max(ack);
            }
        }
        if end <= self.nxt as i32 {
            let is_old = from < self.nxt as i32;
            self.duplicates += u32::from(!segment.payload.is_empty());
            if segment.has(FIN) && end == self.nxt as i32 {
                self.fin = true;
                return true;
            }
            return is_old || !segment.payload.is_empty();
        }
        if from > self.nxt as i32 || end > edge {
            return true;
        }
        self.nxt = end as u32;
        if segment.has(FIN) {
            self.fin = true;
        }
        true
    }

    pub fn acknowledge(&mut self) {
        let packet = self.own_packet();
        self.speak(&packet);
    }

    pub fn own_packet(&mut self) -> Packet {
        let window = self.window() >> self.guest.scale << self.guest.scale;
        self.edge =
            if self.is_honest { self.edge.max(self.nxt + window) } else { self.nxt + window };
        let fin = u32::from(self.fin);
        self.last_ack = self.nxt + fin;
        let packet = self.guest.guest_packet(self.nxt + fin, window);
        Packet { seq: packet.seq.wrapping_add(self.own_nxt), ..packet }
    }

    /// The guest sends a segment.
    pub fn speak(&mut self, packet: &Packet) {
        let mut frame = Frame::full(packet.frame());
        let mut out = Out::default();
        let verdict = self.guest.port.from_guest(self.guest.now_ns, &mut frame, &mut out);
        if verdict == Verdict::Pass {
            out.to_fabric.insert(0, frame);
        }
        self.carry(out);
    }

    pub fn wait_ms(&mut self, ms: u64) {
        let until_ns = self.guest.now_ns + ms * 1_000_000;
        while let Some(at_ns) =
            self.guest.port.next_deadline_ns().filter(|&at_ns| at_ns <= until_ns)
        {
            self.guest.now_ns = at_ns.max(self.guest.now_ns);
            let mut out = Out::default();
            self.guest.port.advance(self.guest.now_ns, &mut out);
            self.carry(out);
        }
        self.guest.now_ns = until_ns;
    }
}

/// Of options as these tests make them.
fn tsval_of(frame: &[u8]) -> Option<u32> {
    let tcp_at = ETHERNET_BYTES + IPV4_BYTES;
    let end = tcp_at + usize::from(frame[tcp_at + 12] >> 4) * 4;
    let mark = &options::timestamps(0, 0)[..2];
    let options = &frame[tcp_at + TCP_BYTES..end];
    let at = options.windows(2).position(|bytes| bytes == mark)?;
    Some(read_u32(options, at + 2))
}

//! A TCP host without I/O, for either end: small, and independent of the engine. Streams are
//! addressed by 64-bit offsets from the first byte of data, so this model cannot share the engine's
//! mistakes about the wrap of sequence numbers.

mod handshake;
mod options;
mod receiver;
mod sender;

use vcc_engine::{Segment, sys};

pub use options::{HostConfig, Runts};

use options::Negotiated;
use receiver::Receiver;
use sender::Sender;

const SYN: u16 = sys::TCP_SYN as u16;
const ACK: u16 = sys::TCP_ACK as u16;
const FIN: u16 = sys::TCP_FIN as u16;
const RST: u16 = sys::TCP_RST as u16;
const PSH: u16 = sys::TCP_PSH as u16;
const ECE: u16 = sys::TCP_ECE as u16;
const CWR: u16 = sys::TCP_CWR as u16;
const AE: u16 = sys::TCP_AE as u16;

/// A segment, with contents that the engine does not read.
#[derive(Clone, Copy)]
pub struct Packet {
    pub segment: Segment,
    /// A SACK block, with `OPT_SACK`.
    pub sack: (u32, u32),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    Closed,
    SynSent,
    SynReceived,
    Established,
    Reset,
}

pub struct Host {
    pub config: HostConfig,
    pub stage: Stage,
    pub out: Vec<Packet>,
    syns_sent: u32,
    syn_sent_us: u64,
    pub negotiated: Negotiated,
    pub sender: Sender,
    pub receiver: Receiver,
}

impl Host {
    pub fn new(config: HostConfig) -> Self {
        Host {
            stage: Stage::Closed,
            out: Vec::new(),
            syns_sent: 0,
            syn_sent_us: 0,
            negotiated: Negotiated::default(),
            sender: Sender::default(),
            receiver: Receiver::new(&config),
            config,
        }
    }

    /// Has all of its data been acknowledged, FIN included?
    pub fn sent_all(&self) -> bool {
        self.sender.una > self.config.total_bytes
    }

    pub fn sent_fin(&self) -> bool {
        self.sender.nxt > self.config.total_bytes
    }

    pub fn received_all(&self) -> bool {
        self.receiver.peer_fin.is_some_and(|fin| self.receiver.rcv_nxt > fin)
    }

    pub fn next_timer(&self) -> Option<u64> {
        if matches!(self.stage, Stage::Closed | Stage::Reset) {
            return None;
        }
        let writes =
            (self.sender.written < self.config.total_bytes).then_some(self.sender.write_at);
        let reads = (!self.received_all()).then_some(self.receiver.read_changes_at);
        [self.sender.rto_at, self.sender.probe_at, self.receiver.ack_at, writes, reads]
            .into_iter()
            .flatten()
            .min()
    }

    fn wire_seq(&self, offset: i64) -> u32 {
        self.config.iss.wrapping_add(1).wrapping_add(offset as u32)
    }

    /// The stream offset of a sequence number, nearest to `near`.
    fn offset(iss: u32, number: u32, near: i64) -> i64 {
        let near_number = iss.wrapping_add(1).wrapping_add(near as u32);
        near + i64::from(number.wrapping_sub(near_number) as i32)
    }

    /// The header of a segment after the handshake.
    fn header(&mut self, now_us: u64) -> Packet {
        let scale = if self.negotiated.use_wscale { self.config.wscale } else { 0 };
        let mut edge = self.receiver.rcv_nxt + self.window_bytes();
        if !self.config.shrinks {
            edge = edge.max(self.receiver.rcv_edge);
        }
        // Out-of-order data occupies the offered buffer: the window is what is left.
        let window = ((edge - self.receiver.rcv_nxt) >> scale).min(65535) as u16;
        self.receiver.rcv_edge = self.receiver.rcv_nxt + (i64::from(window) << scale);
        self.receiver.rcv_wup = self.receiver.rcv_nxt;
        self.receiver.furthest_edge = self.receiver.furthest_edge.max(self.receiver.rcv_edge);
        let ack =
            self.negotiated.peer_iss.wrapping_add(1).wrapping_add((self.receiver.rcv_nxt) as u32);
        self.receiver.unacked_segs = 0;
        self.receiver.ack_at = None;
        let flags = ACK | if self.receiver.ece_latched { ECE } else { 0 };
        let segment = Segment {
            now_us,
            seq: self.wire_seq(self.sender.nxt),
            ack,
            window,
            flags,
            options: self.config.options & sys::OPT_TIMESTAMPS as u16,
            option_room_bytes: self.config.option_room_bytes,
            ..Segment::default()
        };
        Packet { segment, sack: (0, 0) }
    }

    pub fn receive(&mut self, now_us: u64, packet: &Packet) {
        let segment = &packet.segment;
        if self.stage == Stage::Reset {
            return;
        }
        if segment.flags & SYN != 0 {
            self.receive_syn(now_us, segment);
            return;
        }
        if segment.flags & RST != 0 {
            // Accepted only at exactly rcv_nxt (RFC 5961, 3.2).
            if Self::offset(self.negotiated.peer_iss, segment.seq, self.receiver.rcv_nxt)
                == self.receiver.rcv_nxt
            {
                self.stage = Stage::Reset;
            }
            return;
        }
        if self.stage == Stage::SynReceived && Self::offset(self.config.iss, segment.ack, 0) >= 0 {
            self.establish(now_us);
            self.sender.send_edge = i64::from(segment.window) << self.negotiated.peer_wscale;
        }
        if self.stage != Stage::Established {
            return;
        }
        if !self.config.ecn {
            self.note_leaks(segment);
        }
        if !self.accepts(segment) {
            self.send_ack(now_us, None);
            return;
        }
        self.receive_data(now_us, segment);
        self.receive_ack(now_us, packet);
        self.transmit(now_us);
    }

    pub fn timer(&mut self, now_us: u64) {
        self.receiver_timer(now_us);
        self.application_timer(now_us);
        self.sender_timer(now_us);
        self.transmit(now_us);
    }
}

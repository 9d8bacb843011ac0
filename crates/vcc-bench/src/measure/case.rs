//! A segment to measure, and how it follows from the one before.

use vcc_frames::Packet;
use vcc_frames::wire::{ETHERNET_BYTES, IPV4_BYTES};
use vcc_port::Program;

const TEMPLATE_MAX_BYTES: usize = 80;
/// The data offset and the flags (RFC 9293, 3.1) of a frame of IPv4.
const HEADER_WORD_AT: usize = ETHERNET_BYTES + IPV4_BYTES + 12;
/// Runs of one case in a row. Then the other cases have their turn, so that a disturbance of the
/// machine hits all alike.
pub(super) const RUNS_PER_ROUND: u32 = 10_000;

pub(super) struct Case {
    pub name: &'static str,
    pub what: &'static str,
    pub program: Program,
    pub frame: Vec<u8>,
    pub cursor: Cursor,
    pub next: Next,
    pub restore: Option<Restore>,
    pub at_once: u32,
}

impl Case {
    pub(super) fn new(
        name: &'static str,
        what: &'static str,
        program: Program,
        packet: &Packet,
        cursor: Cursor,
    ) -> Self {
        Self {
            name,
            what,
            program,
            frame: packet.frame(),
            cursor,
            next: match program {
                Program::ParseFromGuest => Next::Parse,
                _ => Next::Translate,
            },
            restore: None,
            at_once: RUNS_PER_ROUND,
        }
    }
}

/// The program that the harness calls; mirrors `enum next` of advance.bpf.c.
#[derive(Clone, Copy)]
pub(super) enum Next {
    None = 0,
    Translate,
    Parse,
    /// The yardstick of rewriter.bpf.c.
    Rewrite,
    /// No program: the harness itself sends a clone of the frame back to where it came from.
    Clone,
}

/// Mirrors `struct cursor` of advance.bpf.c.
#[derive(Clone, Copy)]
pub(super) struct Cursor {
    pub seq: u32,
    pub ack: u32,
    pub seq_step: u32,
    pub ack_step: u32,
    pub window: u16,
}

impl Cursor {
    pub(super) fn bytes(self, frame: &[u8], next: Next) -> Vec<u8> {
        let words = [self.seq, self.ack, self.seq_step, self.ack_step];
        let halves = [self.window, next as u16].into_iter().flat_map(u16::to_ne_bytes);
        let words = words.into_iter().flat_map(u32::to_ne_bytes).chain(halves);
        words.chain(frame[HEADER_WORD_AT..][..2].iter().copied()).chain([0; 2]).collect()
    }

    pub(super) fn advance(&mut self, runs: u32) {
        self.seq = self.seq.wrapping_add(self.seq_step.wrapping_mul(runs));
        self.ack = self.ack.wrapping_add(self.ack_step.wrapping_mul(runs));
    }
}

/// State to restore before each run, if the datapath changes the length of the frame or acts on the
/// state of the flow; see `struct restored` of advance.bpf.c.
#[derive(Clone, Copy)]
pub(super) struct Restore {
    /// The flow's.
    pub tag: [u8; 8],
    pub ect0_bytes: u32,
    /// The offset of the PACK in the frame; 0 without one.
    pub pack_at: u32,
    pub flow_flags: u32,
    pub mark: u32,
}

impl Restore {
    pub(super) fn bytes(&self, cursor: Cursor, frame: &[u8], next: Next) -> Vec<u8> {
        let Cursor { seq, ack, seq_step, ack_step, .. } = cursor;
        let template = &frame[..frame.len().min(TEMPLATE_MAX_BYTES)];
        let lengths = [frame.len() as u32, template.len() as u32];
        let words = [seq, ack, seq_step, ack_step, self.ect0_bytes, self.pack_at, self.flow_flags];
        let words = words.into_iter().chain([self.mark, next as u32]).chain(lengths);
        let mut bytes: Vec<u8> =
            self.tag.into_iter().chain(words.flat_map(u32::to_ne_bytes)).collect();
        bytes.extend(template);
        // With the padding behind 11 words.
        bytes.resize(bytes.len() - template.len() + TEMPLATE_MAX_BYTES + 4, 0);
        bytes
    }
}

//! Repeats a program over many connections; see vary.bpf.c.

use std::time::Duration;

use vcc_port::harness::{Harness, Unloaded};
use vcc_port::{Host, Program, Result};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/vary.bpf.o"));
const WHAT: &str = "the benchmark's harness";
const ONLY_ENTRY: [u8; 4] = [0; 4];
pub(super) const CONNECTIONS_A_PORT: u32 = 25_000;

/// Mirrors `enum next` of vary.bpf.c.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    None = 0,
    Translate,
    Touch,
    Enter,
}

/// Segments over connections in turn; mirrors `struct cursor` of vary.bpf.c.
#[derive(Clone, Copy)]
pub(super) struct Cursor {
    pub seq: u32,
    pub ack: u32,
    /// From one round of all connections to the next.
    pub seq_step: u32,
    pub ack_step: u32,
    pub begin: u32,
    pub end: u32,
    pub window: u16,
    pub shuffled: bool,
}

impl Cursor {
    fn bytes(self, next: Next) -> Vec<u8> {
        let words = [self.seq, self.ack, self.seq_step, self.ack_step, self.begin, self.end];
        let words = words.into_iter().chain([self.begin]).flat_map(u32::to_ne_bytes);
        let rest = self.window.to_ne_bytes().into_iter().chain([next as u8, self.shuffled.into()]);
        words.chain(rest).collect()
    }

    pub(super) fn advance(&mut self, rounds: u32) {
        self.seq = self.seq.wrapping_add(self.seq_step.wrapping_mul(rounds));
        self.ack = self.ack.wrapping_add(self.ack_step.wrapping_mul(rounds));
    }
}

pub(super) struct Vary(Harness);

impl Vary {
    /// For the first connections of a host, by the order given.
    pub(super) fn load(host: &Host, order: &[u32]) -> Result<Self> {
        let mut unloaded = Unloaded::open(OBJECT, WHAT)?;
        unloaded.set_room("touched", host.flow_capacity())?;
        unloaded.set_room("order", order.len() as u32)?;
        unloaded.share_calls(host)?;
        let vary = unloaded.load()?;
        vary.fill("order", order)?;
        Ok(Self(vary))
    }

    /// Mean nanoseconds per run.
    pub(super) fn run(
        &self,
        program: Program,
        frame: &[u8],
        cursor: Cursor,
        next: Next,
        runs: u32,
    ) -> Result<Duration> {
        let name = match program {
            Program::ToGuest => "vary_to_guest",
            _ => "vary_from_guest",
        };
        self.0.write("cursor", &ONLY_ENTRY, &cursor.bytes(next))?;
        self.0.run(name, frame, runs)
    }
}

//! Repeats a program over many connections; see vary.bpf.c.

use std::time::Duration;

use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, ProgramInput};

use crate::{Error, Host, Program, Result, maps, object};

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

pub(super) struct Vary {
    object: Object,
    cursor: MapHandle,
}

impl Vary {
    /// For the first connections of a host, by the order given.
    pub(super) fn load(host: &Host, order: &[u32]) -> Result<Self> {
        const DOING: &str = "prepare the benchmark's harness";
        let failed = |e| Error::system(DOING, e);
        let mut open = object::open(OBJECT, WHAT)?;
        let entries = host.maps.flows.max_entries();
        for (name, room) in [("touched", entries), ("order", order.len() as u32)] {
            object::map(&mut open, name)?.set_max_entries(room).map_err(failed)?;
        }
        host.maps.lend_calls(&mut open)?;
        let object = object::load(open, WHAT)?;
        let words = |words: &mut dyn Iterator<Item = u32>| -> Vec<u8> {
            words.flat_map(u32::to_ne_bytes).collect()
        };
        let (count, numbers) = (order.len() as u32, words(&mut order.iter().copied()));
        maps::find(&object, "order")?
            .update_batch(&words(&mut (0..count)), &numbers, count, MapFlags::ANY, MapFlags::ANY)
            .map_err(failed)?;
        Ok(Self { cursor: maps::find(&object, "cursor")?, object })
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
        let failed = |e| Error::system("measure many connections", e);
        let name = match program {
            Program::ToGuest => "vary_to_guest",
            _ => "vary_from_guest",
        };
        self.cursor.update(&ONLY_ENTRY, &cursor.bytes(next), MapFlags::ANY).map_err(failed)?;
        let program = object::program(&self.object, name)?;
        let input = ProgramInput { data_in: Some(frame), repeat: runs, ..ProgramInput::default() };
        Ok(program.test_run(input).map_err(failed)?.duration)
    }
}

//! Repeats a program over segments that follow each other; see advance.bpf.c.

use vcc_port::harness::{self, Unloaded};
use vcc_port::{Datapath, Program, Result};

use super::case::{Case, Next};
use super::rewriter::Rewriter;

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/advance.bpf.o"));
const WHAT: &str = "the benchmark's harness";
const ONLY_ENTRY: [u8; 4] = [0; 4];

pub(super) struct Harness {
    harness: harness::Harness,
    rewriter: Rewriter,
}

impl Harness {
    pub(super) fn load(datapath: &Datapath) -> Result<Self> {
        let mut unloaded = Unloaded::open(OBJECT, WHAT)?;
        unloaded.share_flows(datapath)?;
        let harness = unloaded.load()?;
        let rewriter = Rewriter::load(datapath)?;
        for (array, next, program) in [
            ("next_from_guest", Next::Translate, Program::FromGuest),
            ("next_from_guest", Next::Parse, Program::ParseFromGuest),
            ("next_to_guest", Next::Translate, Program::ToGuest),
        ] {
            harness.lead_to(array, next as u32, datapath, program)?;
        }
        rewriter.follow(&harness, "next_to_guest", Next::Rewrite as u32)?;
        Ok(Self { harness, rewriter })
    }

    /// Mean nanoseconds per run of the harness alone, and of the harness with the case.
    pub(super) fn run(&self, case: &mut Case, runs: u32) -> Result<[f64; 2]> {
        let took = [self.repeat(case, runs, Next::None)?, self.repeat(case, runs, case.next)?];
        case.cursor.advance(runs);
        if let Some(restore) = &mut case.restore {
            let more_bytes = case.cursor.ack_step.wrapping_mul(runs);
            restore.ect0_bytes = restore.ect0_bytes.wrapping_add(more_bytes);
        }
        Ok(took)
    }

    /// The number of windows that the yardstick has replaced.
    pub(super) fn windows_rewritten(&self) -> Result<u64> {
        self.rewriter.replaced()
    }

    fn repeat(&self, case: &Case, runs: u32, next: Next) -> Result<f64> {
        let name = match (case.restore.is_some(), case.program) {
            (true, Program::ToGuest) => "restore_to_guest",
            (true, _) => "restore_from_guest",
            (false, Program::ToGuest) => "advance_to_guest",
            (false, _) => "advance_from_guest",
        };
        let (map, value) = match &case.restore {
            Some(restore) => ("restored", restore.bytes(case.cursor, &case.frame, next)),
            None => ("cursor", case.cursor.bytes(&case.frame, next)),
        };
        self.harness.write(map, &ONLY_ENTRY, &value)?;
        Ok(self.harness.run(name, &case.frame, runs)?.as_nanos() as f64)
    }
}

//! Repeats a program over segments that follow each other.

use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, ProgramInput};

use super::Case;
use crate::{Datapath, Error, Program, Result, datapath};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/advance.bpf.o"));
const ONLY_ENTRY: [u8; 4] = [0; 4];

/// As `struct cursor` of advance.bpf.c.
#[derive(Clone, Copy)]
pub(super) struct Cursor {
    pub seq: u32,
    pub ack: u32,
    pub seq_step: u32,
    pub ack_step: u32,
    pub window: u16,
}

impl Cursor {
    fn bytes(self) -> Vec<u8> {
        let words = [self.seq, self.ack, self.seq_step, self.ack_step, self.window.into()];
        words.into_iter().flat_map(u32::to_ne_bytes).collect()
    }

    fn advance(&mut self, runs: u32) {
        self.seq = self.seq.wrapping_add(self.seq_step.wrapping_mul(runs));
        self.ack = self.ack.wrapping_add(self.ack_step.wrapping_mul(runs));
    }
}

pub(super) struct Harness {
    object: Object,
    cursor: MapHandle,
    next_from_guest: MapHandle,
    next_to_guest: MapHandle,
}

impl Harness {
    pub(super) fn load() -> Result<Self> {
        let object = datapath::load(datapath::open(OBJECT)?)?;
        Ok(Self {
            cursor: datapath::map(&object, "cursor")?,
            next_from_guest: datapath::map(&object, "next_from_guest")?,
            next_to_guest: datapath::map(&object, "next_to_guest")?,
            object,
        })
    }

    /// The mean nanoseconds a run.
    pub(super) fn run(&self, datapath: &Datapath, case: &mut Case, runs: u32) -> Result<f64> {
        let failed = |e| Error::system(format!("measure `{}`", case.name), e);
        let (name, next) = match case.program {
            Some(Program::ToGuest) => ("advance_to_guest", &self.next_to_guest),
            _ => ("advance_from_guest", &self.next_from_guest),
        };
        if let Some(program) = case.program {
            let program = datapath.program(program)?;
            let fd = program.as_fd().as_raw_fd().to_ne_bytes();
            next.update(&ONLY_ENTRY, &fd, MapFlags::ANY).map_err(failed)?;
        }
        self.cursor.update(&ONLY_ENTRY, &case.cursor.bytes(), MapFlags::ANY).map_err(failed)?;

        let program = self.object.progs_mut().find(|p| p.name() == name);
        let program = program.ok_or_else(|| datapath::lacks(name))?;
        let input =
            ProgramInput { data_in: Some(&case.frame), repeat: runs, ..ProgramInput::default() };
        let output = program.test_run(input).map_err(failed)?;
        case.cursor.advance(runs);
        if case.program.is_some() {
            next.delete(&ONLY_ENTRY).map_err(failed)?;
        }
        Ok(output.duration.as_nanos() as f64)
    }
}

//! Repeats a program over segments that follow each other.

use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, ProgramInput};
use vcc_engine::sys;

use super::Case;
use crate::{Datapath, Error, Program, Result, datapath, object};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/advance.bpf.o"));
const WHAT: &str = "the benchmark's harness";
const ONLY_ENTRY: [u8; 4] = [0; 4];
const TEMPLATE_MAX_BYTES: usize = 80;

/// What comes behind the harness.
#[derive(Clone, Copy)]
pub(super) enum Next {
    None = 0,
    Translate,
    Parse,
    /// No program: the harness itself sends a clone of the frame back to where it came from.
    Clone,
}

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
    fn bytes(self, next: Next) -> Vec<u8> {
        let words = [self.seq, self.ack, self.seq_step, self.ack_step];
        let halves = [self.window, next as u16].into_iter().flat_map(u16::to_ne_bytes);
        words.into_iter().flat_map(u32::to_ne_bytes).chain(halves).collect()
    }

    fn advance(&mut self, runs: u32) {
        self.seq = self.seq.wrapping_add(self.seq_step.wrapping_mul(runs));
        self.ack = self.ack.wrapping_add(self.ack_step.wrapping_mul(runs));
    }
}

/// What else there is to do before each run, where the datapath changes a frame's length or acts
/// by what its flow has to say; see `struct restored` of advance.bpf.c.
#[derive(Clone, Copy)]
pub(super) struct Restore {
    pub key: [u8; size_of::<sys::vcc_key>()],
    pub ect0_bytes: u32,
    /// In the frame; 0: it has none.
    pub pack_at: u32,
    pub flow_flags: u32,
    pub mark: u32,
}

impl Restore {
    fn bytes(&self, cursor: Cursor, frame: &[u8], next: Next) -> Vec<u8> {
        let Cursor { seq, ack, seq_step, ack_step, .. } = cursor;
        let template = &frame[..frame.len().min(TEMPLATE_MAX_BYTES)];
        let lengths = [frame.len() as u32, template.len() as u32];
        let words = [seq, ack, seq_step, ack_step, self.ect0_bytes, self.pack_at, self.flow_flags];
        let words = words.into_iter().chain([self.mark, next as u32]).chain(lengths);
        let words = words.flat_map(u32::to_ne_bytes).collect();
        let mut bytes = [self.key.to_vec(), words, template.to_vec()].concat();
        bytes.resize(bytes.len() - template.len() + TEMPLATE_MAX_BYTES, 0);
        bytes
    }
}

pub(super) struct Harness {
    object: Object,
    cursor: MapHandle,
    restored: MapHandle,
}

impl Harness {
    pub(super) fn load(datapath: &Datapath) -> Result<Self> {
        let mut open = object::open(OBJECT, WHAT)?;
        object::map(&mut open, "flows")?
            .reuse_fd(datapath.maps.flows.as_fd())
            .map_err(|e| Error::system("share the flows with the harness", e))?;
        let object = object::load(open, WHAT)?;
        for (map, next, program) in [
            ("next_from_guest", Next::Translate, Program::FromGuest),
            ("next_from_guest", Next::Parse, Program::ParseFromGuest),
            ("next_to_guest", Next::Translate, Program::ToGuest),
        ] {
            let fd = datapath.program(program)?.as_fd().as_raw_fd().to_ne_bytes();
            datapath::map(&object, map)?
                .update(&(next as u32).to_ne_bytes(), &fd, MapFlags::ANY)
                .map_err(|e| Error::system("put the datapath behind the harness", e))?;
        }
        Ok(Self {
            cursor: datapath::map(&object, "cursor")?,
            restored: datapath::map(&object, "restored")?,
            object,
        })
    }

    /// The mean nanoseconds a run of the harness alone, and of the case with it.
    pub(super) fn run(&self, case: &mut Case, runs: u32) -> Result<[f64; 2]> {
        let took = [self.repeat(case, runs, Next::None)?, self.repeat(case, runs, case.next)?];
        case.cursor.advance(runs);
        if let Some(restore) = &mut case.restore {
            let more_bytes = case.cursor.ack_step.wrapping_mul(runs);
            restore.ect0_bytes = restore.ect0_bytes.wrapping_add(more_bytes);
        }
        Ok(took)
    }

    fn repeat(&self, case: &Case, runs: u32, next: Next) -> Result<f64> {
        let failed = |e| Error::system(format!("measure `{}`", case.name), e);
        let name = match (case.restore.is_some(), case.program) {
            (true, Program::ToGuest) => "restore_to_guest",
            (true, _) => "restore_from_guest",
            (false, Program::ToGuest) => "advance_to_guest",
            (false, _) => "advance_from_guest",
        };
        let (map, value) = match &case.restore {
            Some(restore) => (&self.restored, restore.bytes(case.cursor, &case.frame, next)),
            None => (&self.cursor, case.cursor.bytes(next)),
        };
        map.update(&ONLY_ENTRY, &value, MapFlags::ANY).map_err(failed)?;
        let program = self.object.progs_mut().find(|p| p.name() == name);
        let program = program.ok_or_else(|| object::lacks(name))?;
        let input =
            ProgramInput { data_in: Some(&case.frame), repeat: runs, ..ProgramInput::default() };
        Ok(program.test_run(input).map_err(failed)?.duration.as_nanos() as f64)
    }
}

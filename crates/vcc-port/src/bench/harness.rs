//! Repeats a program over segments that follow each other; see advance.bpf.c.

use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, ProgramInput};

use super::case::{Case, Next};
use super::rewriter::Rewriter;
use crate::{Datapath, Error, Program, Result, flows, maps, object};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/advance.bpf.o"));
const WHAT: &str = "the benchmark's harness";
const ONLY_ENTRY: [u8; 4] = [0; 4];

pub(super) struct Harness {
    object: Object,
    cursor: MapHandle,
    restored: MapHandle,
    table: flows::Table,
    rewriter: Rewriter,
}

impl Harness {
    pub(super) fn load(datapath: &Datapath) -> Result<Self> {
        let mut open = object::open(OBJECT, WHAT)?;
        let flows = ("flows", &datapath.maps().flows);
        object::lend(&mut open, [flows], "share the flows with the harness")?;
        let object = object::load(open, WHAT)?;
        let rewriter = Rewriter::load(datapath)?;
        for (map, next, program) in [
            ("next_from_guest", Next::Translate, datapath.program(Program::FromGuest)?),
            ("next_from_guest", Next::Parse, datapath.program(Program::ParseFromGuest)?),
            ("next_to_guest", Next::Translate, datapath.program(Program::ToGuest)?),
            ("next_to_guest", Next::Rewrite, rewriter.program()?),
        ] {
            let fd = program.as_fd().as_raw_fd().to_ne_bytes();
            maps::find(&object, map)?
                .update(&(next as u32).to_ne_bytes(), &fd, MapFlags::ANY)
                .map_err(|e| Error::system("put the datapath behind the harness", e))?;
        }
        Ok(Self {
            cursor: maps::find(&object, "cursor")?,
            restored: maps::find(&object, "restored")?,
            table: flows::Table::of(datapath.maps())?,
            object,
            rewriter,
        })
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
        let failed = |e| Error::system(format!("measure `{}`", case.name), e);
        let name = match (case.restore.is_some(), case.program) {
            (true, Program::ToGuest) => "restore_to_guest",
            (true, _) => "restore_from_guest",
            (false, Program::ToGuest) => "advance_to_guest",
            (false, _) => "advance_from_guest",
        };
        let (map, value) = match &case.restore {
            Some(restore) => {
                let tag = self.table.tag(&restore.key);
                (&self.restored, restore.bytes(tag, case.cursor, &case.frame, next))
            }
            None => (&self.cursor, case.cursor.bytes(&case.frame, next)),
        };
        map.update(&ONLY_ENTRY, &value, MapFlags::ANY).map_err(failed)?;
        let program = object::program(&self.object, name)?;
        let input =
            ProgramInput { data_in: Some(&case.frame), repeat: runs, ..ProgramInput::default() };
        Ok(program.test_run(input).map_err(failed)?.duration.as_nanos() as f64)
    }
}

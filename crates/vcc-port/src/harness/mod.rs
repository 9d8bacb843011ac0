//! For benchmarks: programs of their own in front of the datapath's, run without a device
//! (BPF_PROG_TEST_RUN). Maps of the datapath are lent to them here, and are known to nobody outside.

mod host;
mod yardstick;

use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, OpenObject, ProgramInput, ProgramMut};
use vcc_engine::sys;

pub use crate::emit::{Socket as FrameSocket, Way};
use crate::{Datapath, Error, Host, Program, Result, flows, maps, object};
pub use yardstick::Yardstick;

/// A benchmark's object that is not loaded yet.
pub struct Unloaded {
    open: OpenObject,
    what: &'static str,
}

impl Unloaded {
    /// `what` names the object in messages.
    pub fn open(object: &[u8], what: &'static str) -> Result<Self> {
        Ok(Self { open: object::open(object, what)?, what })
    }

    /// Makes room for as many entries in a map of its own.
    pub fn set_room(&mut self, map: &str, entries: u32) -> Result<()> {
        object::map(&mut self.open, map)?
            .set_max_entries(entries)
            .map_err(|e| Error::system(format!("size the map `{map}` of {}", self.what), e))
    }

    /// Its programs see the flows of the datapath.
    pub fn share_flows(&mut self, datapath: &Datapath) -> Result<()> {
        let flows = ("flows", &datapath.maps().flows);
        object::lend(&mut self.open, [flows], "share the flows with a benchmark")
    }

    /// Its programs call those of the host, as a port's do.
    pub fn share_calls(&mut self, host: &Host) -> Result<()> {
        host.maps.lend_calls(&mut self.open)
    }

    pub fn load(self) -> Result<Harness> {
        Ok(Harness { object: object::load(self.open, self.what)?, what: self.what })
    }
}

/// A benchmark's loaded object.
pub struct Harness {
    object: Object,
    what: &'static str,
}

impl Harness {
    /// Writes to a map of its own.
    pub fn write(&self, map: &str, key: &[u8], value: &[u8]) -> Result<()> {
        let written = self.map(map)?.update(key, value, MapFlags::ANY);
        written.map_err(|e| Error::system(format!("write to the map `{map}` of {}", self.what), e))
    }

    /// Reads from a map of its own.
    pub fn read(&self, map: &str, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let value = self.map(map)?.lookup(key, MapFlags::ANY);
        value.map_err(|e| Error::system(format!("read the map `{map}` of {}", self.what), e))
    }

    /// Fills an array of its own with numbers.
    pub fn fill(&self, map: &str, numbers: &[u32]) -> Result<()> {
        let bytes = |numbers: &mut dyn Iterator<Item = u32>| -> Vec<u8> {
            numbers.flat_map(u32::to_ne_bytes).collect()
        };
        let count = numbers.len() as u32;
        let (keys, values) = (bytes(&mut (0..count)), bytes(&mut numbers.iter().copied()));
        let array = self.map(map)?;
        array
            .update_batch(&keys, &values, count, MapFlags::ANY, MapFlags::ANY)
            .map_err(|e| Error::system(format!("fill the map `{map}` of {}", self.what), e))
    }

    /// Makes a tail call to an entry of a program array lead to a program of the datapath.
    pub fn lead_to(&self, array: &str, at: u32, datapath: &Datapath, to: Program) -> Result<()> {
        self.lead(array, at, &datapath.program(to)?)
    }

    /// The same, to a program of another harness.
    pub fn lead_to_other(&self, array: &str, at: u32, other: &Self, name: &str) -> Result<()> {
        self.lead(array, at, &object::program(&other.object, name)?)
    }

    fn lead(&self, array: &str, at: u32, to: &ProgramMut<'_>) -> Result<()> {
        self.write(array, &at.to_ne_bytes(), &to.as_fd().as_raw_fd().to_ne_bytes())
    }

    /// Runs a program on a frame again and again; the mean time of a run.
    pub fn run(&self, program: &str, frame: &[u8], times: u32) -> Result<Duration> {
        let input = ProgramInput { data_in: Some(frame), repeat: times, ..ProgramInput::default() };
        let ran = object::program(&self.object, program)?.test_run(input);
        let failed = |e| Error::system(format!("run `{program}` of {}", self.what), e);
        Ok(ran.map_err(failed)?.duration)
    }

    fn map(&self, name: &str) -> Result<MapHandle> {
        maps::find(&self.object, name)
    }
}

impl Datapath {
    /// How many flows its table has room for.
    pub fn flow_capacity(&self) -> u32 {
        self.maps().flows.max_entries()
    }

    /// A connection's tag, by which its flow is found.
    pub fn flow_tag(&self, key: &sys::vcc_key) -> Result<[u8; 8]> {
        Ok(flows::Table::from_maps(self.maps())?.tag(key))
    }
}

//! Virtual CPUs that share a core: who runs when.
//!
//! All is integers and virtual time: the same calls give the same order.

mod core;
mod credit;
mod load;
mod round_robin;

pub(crate) use core::Core;
pub use core::CoreSpec;
pub use load::Load;

use credit::Credit;
use round_robin::RoundRobin;

/// Decides which of the virtual CPUs of one core runs. They have numbers from 0 on, and all sleep
/// at first. Times that it is called with never go back.
pub trait Scheduler {
    /// One that slept has something to do.
    fn wake(&mut self, vcpu: usize, now_ns: u64);
    /// The one that runs has nothing more to do.
    fn block(&mut self, now_ns: u64);
    fn running(&self) -> Option<usize>;
    /// When it wants to be asked next, though nothing wakes or blocks.
    fn next_ns(&self) -> u64;
    /// That time has come.
    fn expire(&mut self, now_ns: u64);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchedulerSpec {
    /// Each in its turn, for a slice at the most.
    RoundRobin { slice_ns: u64 },
    /// Xen's credit scheduler: see `credit.rs`. `spare_cores` are those of the machine beside this
    /// one whose time is shared out as credit, and hardly used.
    Credit { slice_ns: u64, spare_cores: u32 },
}

impl SchedulerSpec {
    fn build(self, vcpus: usize) -> Box<dyn Scheduler> {
        match self {
            Self::RoundRobin { slice_ns } => Box::new(RoundRobin::new(slice_ns)),
            Self::Credit { slice_ns, spare_cores } => {
                Box::new(Credit::new(slice_ns, spare_cores, vcpus))
            }
        }
    }
}

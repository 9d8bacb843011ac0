//! Scheduling of virtual CPUs that share a core.
//!
//! Integers and virtual time only: the same calls give the same schedule.

mod core;
mod credit;
mod load;
mod round_robin;

pub(crate) use core::Core;
pub use core::CoreSpec;
pub use load::Load;

use credit::Credit;
use round_robin::RoundRobin;

/// Decides which virtual CPU of a core runs. They are numbered from 0 and initially asleep. The
/// times passed in never decrease.
pub trait Scheduler {
    /// A sleeping one becomes runnable.
    fn wake(&mut self, vcpu: usize, now_ns: u64);
    /// The running one blocks.
    fn block(&mut self, now_ns: u64);
    fn running(&self) -> Option<usize>;
    /// The time to call `expire` next, unless a vCPU wakes or blocks before.
    fn next_ns(&self) -> u64;
    /// Reschedules at the time of `next_ns`.
    fn expire(&mut self, now_ns: u64);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchedulerSpec {
    /// Round robin.
    RoundRobin { slice_ns: u64 },
    /// Xen's credit scheduler: see `credit.rs`. `spare_cores` are other cores of the machine whose
    /// time is distributed as credit and hardly used.
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

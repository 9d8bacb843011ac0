//! Virtual CPUs that share a core, which only virtual time has: this machine's cores are not ours
//! to schedule.

/// A core with all that is on it besides the guests.
#[derive(Debug, Clone, PartialEq)]
pub struct Core {
    pub scheduler: Scheduler,
    pub background: Vec<Share>,
    pub wakeup_ns: u64,
    /// None where the driver domain has a core of its own.
    pub driver_ns: Option<u64>,
}

/// Scheduler of a core's virtual CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduler {
    /// Each in its turn, for a slice at the most.
    RoundRobin { slice_ns: u64 },
    /// Xen's credit scheduler. `spare_cores` are other cores of the machine whose time is shared
    /// out as credit, and hardly used.
    Credit { slice_ns: u64, spare_cores: u32 },
}

/// A compute load, as a share of each period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    pub percent: u32,
    pub period_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vcpu {
    /// Its position among the scenario's.
    pub core: usize,
    pub load: Share,
}

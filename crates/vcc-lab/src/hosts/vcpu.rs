//! Virtual CPUs that share a core. Only virtual time has such: this machine's cores are not ours to
//! schedule.

use vcc_uml::SchedulerSpec;

/// A core with all that is on it beside the guests.
#[derive(Debug, Clone, PartialEq)]
pub struct Core {
    pub scheduler: SchedulerSpec,
    pub background: Vec<Share>,
    pub wakeup_ns: u64,
    /// None where the driver domain has a core of its own.
    pub driver_ns: Option<u64>,
}

/// What is computed of each period.
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

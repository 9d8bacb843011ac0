//! Cores that virtual CPUs share, and what the virtual CPUs compute besides the network.

use crate::experiment::bounded::{Count, CpuUs, Ms, Percent};
use serde::Deserialize;

/// A core that several virtual CPUs share.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Core {
    pub scheduler: SchedulerKind,
    #[serde(default = "xens_slice")]
    pub slice_ms: Ms,
    /// For the credit scheduler: other cores of the machine that are hardly used, as the driver
    /// domain's, and whose time is distributed as credit, too.
    #[serde(default = "none")]
    pub spare_cores: Count,
    /// The core's time that each wake-up of a guest takes.
    #[serde(default = "no_time")]
    pub wakeup_us: CpuUs,
    /// The core's time that the driver domain takes each time frames pass between it and a guest
    /// here; the driver domain has a core of its own if left out.
    #[serde(default)]
    pub driver_us: Option<CpuUs>,
    #[serde(default)]
    pub background: Option<Background>,
    /// Each guest that is put on it has one of its own.
    #[serde(default)]
    pub per_guest: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SchedulerKind {
    RoundRobin,
    /// Xen's.
    Credit,
}

/// Virtual machines that do nothing but compute.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Background {
    pub count: Count,
    #[serde(default = "all")]
    pub load_percent: Percent,
    #[serde(default = "xens_slice")]
    pub load_period_ms: Ms,
}

/// A guest's virtual CPU on a shared core.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vcpu {
    /// One of the file's `cores`.
    pub core: String,
    /// Its compute load, as a share of each period.
    #[serde(default = "no_load")]
    pub load_percent: Percent,
    #[serde(default = "xens_slice")]
    pub load_period_ms: Ms,
}

fn xens_slice() -> Ms {
    Ms::XENS
}

fn all() -> Percent {
    Percent::ALL
}

fn none() -> Count {
    Count::NONE
}

fn no_load() -> Percent {
    Percent::NONE
}

fn no_time() -> CpuUs {
    CpuUs::NONE
}

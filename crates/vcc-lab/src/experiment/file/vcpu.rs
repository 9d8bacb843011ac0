//! Cores that virtual CPUs share, and what the virtual CPUs compute beside the network.

use super::bounded::{Count, CpuUs, Ms, Percent};
use serde::Deserialize;

/// A core that several virtual CPUs share.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Core {
    pub scheduler: SchedulerKind,
    #[serde(default = "xens_slice")]
    pub slice_ms: Ms,
    /// Of the credit scheduler: cores of the machine beside this one whose time is shared out as
    /// credit, and which are hardly used, as the driver domain's.
    #[serde(default = "none")]
    pub spare_cores: Count,
    /// What a guest that slept takes of the core when it is woken.
    #[serde(default = "no_time")]
    pub wakeup_us: CpuUs,
    /// What the driver domain takes of it each time that frames pass between it and a guest here;
    /// it has a core of its own if left out.
    #[serde(default)]
    pub driver_us: Option<CpuUs>,
    #[serde(default)]
    pub background: Option<Background>,
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

/// Of a guest that shares a core.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vcpu {
    /// One of the file's `cores`.
    pub core: String,
    /// What it computes beside the network, of each period.
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

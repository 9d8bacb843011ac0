//! The backends of a run: this machine's kernel in real time, or guest kernels in virtual time.

pub mod live;
pub mod virtual_time;

use crate::base::error::Result;
use crate::base::interrupt;
use crate::base::progress::VirtualTime;
use crate::congestion_controls::CongestionControls;
use crate::scenario::Scenario;
use std::collections::BTreeSet;
use vcc_results::result::{Backend, RunData};
use vcc_uml::Kernel;

/// Checks, before anything is built for a scenario, whether the backend can run it.
pub fn check(backend: Backend, scenario: &Scenario) -> Result<()> {
    match backend {
        Backend::Live => live::check(scenario),
        Backend::Virtual => virtual_time::check(scenario),
    }
}

/// The kernels of the hosts: this machine's, with the congestion controls that were asked for, or
/// one of their own, which has them all.
pub enum HostKernels {
    Live(CongestionControls),
    Virtual(Kernel),
}

impl HostKernels {
    pub fn prepare(backend: Backend, congestion_controls: &BTreeSet<&str>) -> Result<Self> {
        match backend {
            Backend::Live => live::load_congestion_controls(congestion_controls).map(Self::Live),
            Backend::Virtual => virtual_time::prepare().map(Self::Virtual),
        }
    }

    /// The kernel's name for a congestion control.
    pub fn kernel_name<'a>(&'a self, name: &'a str) -> &'a str {
        match self {
            Self::Live(controls) => controls.kernel_name(name),
            Self::Virtual(_) => name,
        }
    }

    /// `tick` receives the seconds that are left, and in virtual time how far the run is.
    pub fn run_once(
        &self,
        scenario: &Scenario,
        seed: u64,
        tick: &mut dyn FnMut(f64, Option<VirtualTime>),
    ) -> Result<RunData> {
        let data = match self {
            Self::Live(_) => live::run_once(scenario, seed, &mut |left_s| tick(left_s, None)),
            Self::Virtual(kernel) => virtual_time::run_once(kernel, scenario, seed, &mut |time| {
                tick(time.left_s(), Some(time));
            }),
        };
        // Data of a run that ended early is not that of a whole one.
        interrupt::or_interrupted(data)
    }
}

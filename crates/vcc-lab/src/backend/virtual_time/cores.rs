//! The cores of a scenario, and its hosts' virtual CPUs. They compute once all flows are connected.

use super::plan::Timeline;
use crate::scenario::{HostSpec, Scenario, Scheduler, Share};
use vcc_net::random::mix;
use vcc_uml::{CoreSpec, Load, SchedulerSpec, VcpuSpec};

/// Draws the times at which loads begin, which nothing else than the seed decides.
pub(super) struct Loads<'a> {
    timeline: &'a Timeline,
    seed: u64,
    drawn: u64,
}

impl<'a> Loads<'a> {
    pub fn new(timeline: &'a Timeline, seed: u64) -> Self {
        Self { timeline, seed, drawn: 0 }
    }

    fn begin(&mut self, share: Share) -> Option<Load> {
        self.drawn += 1;
        let offset_ns = mix(self.seed.rotate_left(32) ^ mix(self.drawn)) % share.period_ns;
        let begins_at_ns = self.timeline.begin_ns + offset_ns;
        (share.percent > 0).then(|| Load::percent(share.percent, share.period_ns, begins_at_ns))
    }

    pub fn cores(&mut self, scenario: &Scenario) -> Vec<CoreSpec> {
        let cores = scenario.cores.iter().map(|core| CoreSpec {
            scheduler: scheduler(core.scheduler),
            background: core.background.iter().filter_map(|&share| self.begin(share)).collect(),
            wakeup_ns: core.wakeup_ns,
            driver_ns: core.driver_ns,
        });
        cores.collect()
    }

    pub fn vcpu(&mut self, host: &HostSpec) -> Option<VcpuSpec> {
        let vcpu = host.vcpu?;
        Some(VcpuSpec { core: vcpu.core, load: self.begin(vcpu.load) })
    }
}

fn scheduler(scheduler: Scheduler) -> SchedulerSpec {
    match scheduler {
        Scheduler::RoundRobin { slice_ns } => SchedulerSpec::RoundRobin { slice_ns },
        Scheduler::Credit { slice_ns, spare_cores } => {
            SchedulerSpec::Credit { slice_ns, spare_cores }
        }
    }
}

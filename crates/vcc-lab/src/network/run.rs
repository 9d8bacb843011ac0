//! Hosts and kernels for runs on an emulated network.

use super::{Case, NetworkKind};
use crate::backend::{self, HostKernels, virtual_time};
use crate::base::error::Result;
use crate::base::system::free_memory_bytes;
use crate::experiment::{Experiment, Independent, Testbed, Tick};
use crate::scenario::Scenario;
use std::collections::BTreeMap;
use vcc_results::measure;
use vcc_results::report::{Conditions, RunReport, Series};
use vcc_results::result::Schedule;

/// Making and removing the hosts of a run.
const OVERHEAD_S: f64 = 1.5;

pub struct NetworkTestbed<'a> {
    experiment: &'a Experiment<NetworkKind>,
    hosts: HostKernels,
    schedule: Schedule,
    seed: u64,
    /// By the names of their cases.
    scenarios: BTreeMap<&'a str, Scenario>,
}

impl<'a> NetworkTestbed<'a> {
    pub fn prepare(
        experiment: &'a Experiment<NetworkKind>,
        cases: &[&'a Case],
        conditions: &Conditions,
    ) -> Result<Self> {
        let Conditions { stack, backend, schedule, seed, .. } = *conditions;
        // A case that the backend cannot run is refused before anything is built.
        let named = |name: &str| name.to_owned();
        for case in cases {
            backend::check(backend, &experiment.scenario(case, &schedule, stack, &named)?)?;
        }
        let controls = cases.iter().flat_map(|case| case.parameters.congestion_controls());
        let hosts = HostKernels::prepare(backend, &controls.collect())?;
        // All scenarios are resolved before the first is run, so that an error comes at once.
        let kernel_name = |name: &str| hosts.kernel_name(name).to_owned();
        let scenarios = cases.iter().map(|case| {
            let scenario = experiment.scenario(case, &schedule, stack, &kernel_name)?;
            Ok((case.name.as_str(), scenario))
        });
        let scenarios = scenarios.collect::<Result<_>>()?;
        Ok(Self { experiment, hosts, schedule, seed, scenarios })
    }
}

impl Testbed<super::Parameters> for NetworkTestbed<'_> {
    fn run_s(&self, _: &Case) -> f64 {
        self.schedule.warm_up_s + self.schedule.measured_s + OVERHEAD_S
    }

    fn run(&mut self, case: &Case, attempt: u32, tick: Tick) -> Result<RunReport> {
        Independent::run(self, case, attempt, tick)
    }

    fn independent(&self) -> Option<&dyn Independent<super::Parameters>> {
        matches!(self.hosts, HostKernels::Virtual(_)).then_some(self as _)
    }
}

impl Independent<super::Parameters> for NetworkTestbed<'_> {
    fn most_at_once(&self) -> Result<usize> {
        let most_bytes = self.scenarios.values().map(virtual_time::memory_bytes).max();
        let runs = free_memory_bytes()? / most_bytes.unwrap_or(0).max(1);
        Ok(usize::try_from(runs).unwrap_or(usize::MAX).max(1))
    }

    fn run(&self, case: &Case, attempt: u32, tick: Tick) -> Result<RunReport> {
        let seed = self.seed.wrapping_add(u64::from(attempt));
        let scenario = &self.scenarios[case.name.as_str()];
        let facts = scenario.facts(&self.experiment.kind.groups());
        let data = self.hosts.run_once(scenario, seed, tick)?;
        let series = Series::from_run(&data);
        let metrics = self.experiment.kind.tables.metrics.iter().filter_map(|metric| {
            Some((metric.name.clone(), measure::value(metric, &facts, &data)?))
        });
        let (validity, metrics) = (measure::validate(&facts, &data), metrics.collect());
        let mut report = RunReport::new(&facts, data, seed, validity, metrics);
        report.series = Some(series);
        Ok(report)
    }
}

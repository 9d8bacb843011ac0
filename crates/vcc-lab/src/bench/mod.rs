//! Wall-clock time per virtual second, for some loads.

use crate::backend::virtual_time::{TimeTaken, prepare, run_timed};
use crate::base::error::{Error, Result};
use crate::base::{interrupt, system};
use crate::experiment::{self, Experiment, Kind};
use crate::network::NetworkKind;
use crate::scenario::Scenario;
use vcc_results::result::Schedule;
use vcc_uml::Kernel;

const SOURCE: &str = include_str!("bench.toml");

/// A load: bulk flows of DCTCP to one receiver, at 10 Gbit/s.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// A case of the file.
    pub name: &'static str,
    pub what: &'static str,
    /// The shorter schedule of the file, with no warm-up.
    is_short: bool,
}

const fn load(name: &'static str, what: &'static str) -> Load {
    Load { name, what, is_short: false }
}

pub const LOADS: [Load; 5] = [
    load("flow-1500", "one bulk flow, MTU 1500"),
    load("flow-9000", "one bulk flow, MTU 9000"),
    load("16-flows-1500", "16 bulk flows, MTU 1500"),
    load("16-flows-9000", "16 bulk flows, MTU 9000"),
    Load { is_short: true, ..load("incast-47", "47 senders begin at once, MTU 9000") },
];

/// The time that a load took.
#[derive(Debug, Clone)]
pub struct Timing {
    pub taken: TimeTaken,
    /// Length of the window of measurement.
    pub virtual_s: f64,
    pub goodput_bps: f64,
}

/// A kernel for the guests, and an eye on Ctrl-C.
pub struct Bench {
    kernel: Kernel,
    experiment: Experiment<NetworkKind>,
    _watch: interrupt::Watch,
}

impl Bench {
    /// # Errors
    /// Not root, or there is no kernel and none can be built.
    pub fn prepare() -> Result<Self> {
        system::require_root()?;
        let experiment = experiment::parse::<NetworkKind>("bench.toml", SOURCE)?;
        let watch = interrupt::Watch::start()?;
        Ok(Self { kernel: prepare()?, experiment, _watch: watch })
    }

    /// # Errors
    /// The run fails, or Ctrl-C ended it.
    pub fn run(&self, load: &Load) -> Result<Timing> {
        let schedule = self.experiment.schedule(load.is_short);
        let scenario = self.scenario(load, &schedule)?;
        let (data, taken) = run_timed(&self.kernel, &scenario, 1, &mut |_| {})?;
        if let Some(flow) = data.flows.iter().position(|flow| !flow.payload_ok) {
            return Err(Error::VirtualGuests(format!(
                "flow {flow}: received payload differs from what was sent"
            )));
        }
        let virtual_s = scenario.measured_s();
        let bytes: u64 = data.flows.iter().map(|flow| flow.received_bytes()).sum();
        Ok(Timing { taken, virtual_s, goodput_bps: bytes as f64 * 8.0 / virtual_s })
    }

    fn scenario(&self, load: &Load, schedule: &Schedule) -> Result<Scenario> {
        let case = self.experiment.cases.iter().find(|case| case.name == load.name);
        let case = case.ok_or_else(|| Error::NoSuchCase {
            experiment: self.experiment.header.id.clone(),
            case: load.name.into(),
            known: String::new(),
        })?;
        let stack = self.experiment.kind.stack(None);
        self.experiment.scenario(case, schedule, stack, &|name| name.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_load_is_a_scenario_that_can_be_run() {
        let experiment = experiment::parse::<NetworkKind>("bench.toml", SOURCE).unwrap();
        let cases: Vec<&str> = experiment.cases.iter().map(|case| case.name.as_str()).collect();
        for load in LOADS {
            assert!(cases.contains(&load.name), "{}", load.name);
        }
    }
}

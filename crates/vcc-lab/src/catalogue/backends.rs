//! The backends that can run an experiment.

use crate::backend;
use crate::experiment::{Experiment, Kind};
use crate::machines::MachinesKind;
use crate::network::NetworkKind;
use crate::wire::WireKind;
use vcc_results::result::Backend;

pub trait Backends: Kind {
    /// Those that can run all cases.
    fn backends(_: &Experiment<Self>) -> Vec<Backend> {
        vec![Backend::Live]
    }
}

impl Backends for WireKind {}

impl Backends for MachinesKind {}

impl Backends for NetworkKind {
    fn backends(experiment: &Experiment<Self>) -> Vec<Backend> {
        let (schedule, stack) = (experiment.schedule(false), experiment.kind.stack(None));
        let scenarios = experiment
            .cases
            .iter()
            .map(|case| experiment.scenario(case, &schedule, stack, &|name: &str| name.to_owned()));
        // What no backend can run, a run refuses with the reason.
        let Ok(scenarios) = scenarios.collect::<Result<Vec<_>, _>>() else { return Vec::new() };
        let can =
            |backend: &Backend| scenarios.iter().all(|it| backend::check(*backend, it).is_ok());
        [Backend::Live, Backend::Virtual].into_iter().filter(can).collect()
    }
}

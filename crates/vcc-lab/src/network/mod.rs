//! Experiments on an emulated network: guests send over links and switch queues, in real or in
//! virtual time.

mod change;
mod check;
mod file;
mod flows;
mod requests;
mod resolve;
mod run;
mod scenario;

use crate::base::error::Result;
use crate::experiment::problem::Problem;
use crate::experiment::{self, Document, Experiment, Kind, Metric, Metrics, Order, Resolved};
use crate::sources;
use file::{CaseTable, Tables};
use resolve::Parameters;
use run::NetworkTestbed;
use std::collections::BTreeMap;
use vcc_results::report::{CaseReport, Conditions, Figure, InShort, Placed, Series};
use vcc_results::result::{Backend, Stack};

/// Attempts of a case beyond the runs asked for, in place of invalid ones.
const SPARE_ATTEMPTS: u32 = 3;

pub type Case = experiment::Case<Parameters>;
type File = experiment::File<NetworkKind>;

#[derive(Debug, Clone)]
pub struct NetworkKind {
    tables: Tables,
    /// Of the measured time.
    phases: u32,
}

impl Kind for NetworkKind {
    type Tables = Tables;
    type CaseTable = CaseTable;
    type Parameters = Parameters;
    type Testbed<'a> = NetworkTestbed<'a>;

    const ORDER: Order = Order::CaseByCase;

    fn resolve(file: File, document: &Document) -> std::result::Result<Resolved<Self>, Problem> {
        let phases = file.header.duration.phases();
        let metrics = file.tables.metrics.iter();
        let metrics = metrics.map(|it| Metric::new(&it.name, &it.text));
        let metrics = Metrics::new(metrics.collect());
        file.header.duration.require_warm_up()?;
        check::check(&file.tables, phases, &metrics)?;
        let cases = resolve::cases(&file, document)?;
        if let Some(spec) = &file.tables.in_short {
            check::check_in_short(spec, &metrics, &cases)?;
        }
        Ok(Resolved { kind: Self { tables: file.tables, phases }, metrics, cases })
    }

    fn lacks(resolved: &Resolved<Self>, case: &Case, metric: &str) -> Option<String> {
        let NetworkKind { tables, phases } = &resolved.kind;
        let metric = tables.metrics.iter().find(|it| it.name == metric)?;
        check::lacks(tables, *phases, &case.parameters, metric)
    }

    fn backend(&self) -> Backend {
        self.tables.backend
    }

    fn sources(backend: Backend) -> sources::Kind {
        match backend {
            Backend::Live => sources::Kind::Live,
            Backend::Virtual => sources::Kind::Virtual,
        }
    }

    fn stack(&self, wanted: Option<Stack>) -> Stack {
        wanted.unwrap_or(self.tables.stack)
    }

    fn most_attempts(runs: u32) -> u32 {
        runs + SPARE_ATTEMPTS
    }

    fn prepare<'a>(
        experiment: &'a Experiment<Self>,
        cases: &[&'a Case],
        conditions: &Conditions,
    ) -> Result<NetworkTestbed<'a>> {
        NetworkTestbed::prepare(experiment, cases, conditions)
    }

    fn figure(
        experiment: &Experiment<Self>,
        reports: &[CaseReport],
        series: &BTreeMap<String, Series>,
    ) -> Figure {
        let placed = |case: &Case| (case.name.clone(), experiment.kind.placed(&case.parameters));
        let placed = experiment.cases.iter().map(placed).collect();
        Figure::build(&experiment.kind.tables.plot, reports, &placed, series)
    }

    fn in_short(&self) -> Option<&InShort> {
        self.tables.in_short.as_ref()
    }
}

impl NetworkKind {
    /// The case's place in the figure.
    fn placed(&self, case: &Parameters) -> Placed {
        let senders = self.tables.flow_groups().enumerate().map(|(number, group)| {
            let own = case.flows.iter().filter(|flow| flow.group == number);
            (group.to_owned(), own.map(|flow| flow.sender).collect())
        });
        Placed {
            x: case.x,
            series: case.series.clone(),
            panel: case.panel.clone(),
            senders: senders.collect(),
        }
    }

    /// Names of the groups of flows, in the order of a case's numbers for them.
    fn groups(&self) -> Vec<&str> {
        self.tables.flow_groups().collect()
    }
}

#[cfg(test)]
mod tests;

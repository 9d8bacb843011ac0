//! From the cases that were run to the report of their experiment.

use super::{
    CaseReport, Expectation, FORMAT_VERSION, Figure, InShort, Machine, Outcome, Report, Sources,
    in_short, origin, verdict,
};
use crate::result::{Backend, Schedule, Stack};
use std::collections::BTreeMap;

/// An experiment and how it was run.
pub struct Study<'a> {
    pub id: &'a str,
    pub title: &'a str,
    pub paper: &'a str,
    pub scale: Option<&'a str>,
    /// Name and definition of each metric, in the order in which verdicts are given.
    pub metrics: Vec<(&'a str, &'a str)>,
    pub in_short: Option<&'a InShort>,
    pub conditions: Conditions,
    /// All cases of the experiment were run.
    pub complete: bool,
}

#[derive(Debug, Clone, Copy)]
pub struct Conditions {
    pub stack: Stack,
    pub backend: Backend,
    pub quick: bool,
    pub seed: u64,
    /// The requested schedule; `full_schedule` is the experiment's own.
    pub schedule: Schedule,
    pub full_schedule: Schedule,
}

impl Study<'_> {
    /// Judges the cases by their expectations, `expected`, and draws the figure of them.
    pub fn report(
        &self,
        mut cases: Vec<CaseReport>,
        expected: &[&BTreeMap<String, Expectation>],
        figure: impl FnOnce(&[CaseReport]) -> Figure,
    ) -> Report {
        let Conditions { stack, backend, quick, seed, schedule, full_schedule } = self.conditions;
        let verdict_takes = full_schedule.for_verdict();
        let runs = schedule.is_enough_for(&verdict_takes).then_some(verdict_takes.runs);
        let metrics: Vec<&str> = self.metrics.iter().map(|(name, _)| *name).collect();
        verdict::Bench { metrics: &metrics, stack, runs }.judge(&mut cases, expected);
        let definitions = self.metrics.iter().map(|(name, text)| ((*name).into(), (*text).into()));
        Report {
            format_version: FORMAT_VERSION,
            experiment: self.id.into(),
            title: self.title.into(),
            paper: self.paper.trim().into(),
            scale: self.scale.map(Into::into),
            stack,
            backend,
            quick,
            seed,
            valid: cases.iter().all(|case| case.valid),
            complete: self.complete,
            outcome: Outcome::from_cases(&cases),
            schedule,
            verdict_takes,
            in_short: self.in_short.and_then(|spec| in_short::sentence(spec, &cases)),
            figure: figure(&cases),
            cases,
            machine: Machine::this(),
            vcc_version: None,
            sources: Sources::default(),
            wall_s: None,
            command: origin::this_command(),
            finished_unix_s: origin::now_unix_s(),
            definitions: definitions.collect(),
        }
    }
}

//! The ledger of an experiment's runs: which one begins next, and what has come of those that are over.

use super::{Case, Order};
use crate::base::progress::VirtualTime;
use std::collections::BTreeMap;
use vcc_results::report::{RunReport, Series};

pub struct Ledger<'a, P> {
    cases: &'a [&'a Case<P>],
    order: Order,
    /// Valid runs of each case.
    wanted: u32,
    most_attempts: u32,
    keep_series: bool,
    /// Of each case, the runs that have begun.
    begun: Vec<u32>,
    /// Of each case, those that are over, by their attempts.
    over: Vec<BTreeMap<u32, RunReport>>,
    /// Those under way, in the order in which they began.
    under_way: Vec<(Turn, Option<Left>)>,
    /// Recordings of the first valid run of each case, with its attempt.
    series: Vec<Option<(u32, Series)>>,
}

/// A run that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    pub case: usize,
    /// From 0 on.
    pub attempt: u32,
    /// Its number for people, from 1 on.
    pub run: u32,
}

/// Seconds of a run under way.
#[derive(Debug, Clone, Copy)]
struct Left {
    left_s: f64,
    /// The whole run, where its length shows only as it passes.
    whole_s: Option<f64>,
}

impl<'a, P> Ledger<'a, P> {
    pub fn new(cases: &'a [&'a Case<P>], order: Order, wanted: u32, most_attempts: u32) -> Self {
        let count = cases.len();
        Self {
            cases,
            order,
            wanted,
            most_attempts,
            keep_series: false,
            begun: vec![0; count],
            over: vec![BTreeMap::new(); count],
            under_way: Vec::new(),
            series: vec![None; count],
        }
    }

    /// Reports of runs keep what was recorded over time.
    pub fn keep_series(self, keep_series: bool) -> Self {
        Self { keep_series, ..self }
    }

    /// The run that begins next, none while none may. Each case is repeated until enough of its runs
    /// are valid, or too many are not. A run begins only if it also would one by one: those before
    /// it are not enough even if all that are under way are valid.
    pub fn begin(&mut self) -> Option<Turn> {
        let mut open = (0..self.cases.len()).filter(|&case| self.to_begin(case) > 0);
        let case = match self.order {
            Order::CaseByCase => open.next(),
            Order::Rounds => open.min_by_key(|&case| self.begun[case]),
        }?;
        let attempt = self.begun[case];
        let run = match self.order {
            Order::CaseByCase => attempt - self.invalid(case) + 1,
            Order::Rounds => attempt + 1,
        };
        self.begun[case] += 1;
        let turn = Turn { case, attempt, run };
        self.under_way.push((turn, None));
        Some(turn)
    }

    /// Runs of a case that are still to begin, unless more of them are invalid.
    fn to_begin(&self, case: usize) -> u32 {
        (self.wanted + self.invalid(case)).min(self.most_attempts) - self.begun[case]
    }

    /// Does another run take the place of one of the case that is found to be invalid now?
    pub fn repeats(&self, case: usize) -> bool {
        self.wanted + self.invalid(case) < self.most_attempts
    }

    fn invalid(&self, case: usize) -> u32 {
        self.over[case].values().filter(|run| !run.valid).count() as u32
    }

    /// A run under way has so many seconds left.
    pub fn note_left(&mut self, turn: Turn, left_s: f64, virtual_time: Option<VirtualTime>) {
        let whole_s = virtual_time.map(|time| time.wall_s + left_s);
        if let Some((_, left)) = self.under_way.iter_mut().find(|(it, _)| *it == turn) {
            *left = Some(Left { left_s, whole_s });
        }
    }

    /// Seconds until all is over if no run has to be repeated, with so many runs at once. `run_s`: the
    /// length of a run of a case, where it is known before.
    pub fn left_s(&self, at_once: usize, run_s: impl Fn(usize) -> f64) -> f64 {
        // In virtual time, runs are assumed to take as long as those under way.
        let known = || self.under_way.iter().filter_map(|(_, left)| left.as_ref());
        let whole: Vec<f64> = known().filter_map(|left| left.whole_s).collect();
        let mean_s = whole.iter().sum::<f64>() / whole.len().max(1) as f64;
        let each_s = |case| if whole.is_empty() { run_s(case) } else { mean_s };
        let under_way = self.under_way.iter();
        let under_way = under_way.map(|(turn, left)| match left {
            Some(left) => left.left_s,
            None => each_s(turn.case),
        });
        let later_s: f64 =
            (0..self.cases.len()).map(|case| f64::from(self.to_begin(case)) * each_s(case)).sum();
        let longest_s = under_way.clone().fold(0.0, f64::max);
        ((under_way.sum::<f64>() + later_s) / at_once as f64).max(longest_s)
    }

    /// The run under way that began first.
    pub fn first_under_way(&self) -> Option<Turn> {
        self.under_way.first().map(|(turn, _)| *turn)
    }

    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    pub fn end(&mut self, turn: Turn, mut report: RunReport) {
        let Turn { case, attempt, .. } = turn;
        self.under_way.retain(|(it, _)| *it != turn);
        if let Some(series) = report.series.take() {
            report.series = self.keep_series.then(|| series.clone());
            let first = &mut self.series[case];
            if report.valid && first.as_ref().is_none_or(|(earlier, _)| attempt < *earlier) {
                *first = Some((attempt, series));
            }
        }
        self.over[case].insert(attempt, report);
    }

    /// The runs of each case in the order of their attempts, and the recordings of its first valid
    /// run by its name.
    pub fn into_runs(self) -> (Vec<Vec<RunReport>>, BTreeMap<String, Series>) {
        let runs = self.over.into_iter().map(|runs| runs.into_values().collect());
        let series = self.cases.iter().zip(self.series);
        let series = series.filter_map(|(case, first)| Some((case.name.clone(), first?.1)));
        (runs.collect(), series.collect())
    }
}

//! Runs the cases of an experiment as often as needed, and reports on them.

use super::{Case, Experiment, Kind, Order, RunOptions, Testbed};
use crate::base::error::{Error, Result};
use crate::base::progress::{Event, Progress};
use crate::base::{interrupt, system};
use std::collections::BTreeMap;
use vcc_results::report::{CaseReport, Conditions, Report, RunReport, Series, Study};
use vcc_results::result::Backend;

/// Everything that it makes is gone when this returns, also after Ctrl-C.
pub fn run<K: Kind>(
    experiment: &Experiment<K>,
    options: &RunOptions,
    progress: &mut dyn Progress,
) -> Result<Report> {
    if let (Some(what), Some(Backend::Virtual)) = (K::LIVE_ONLY, options.backend) {
        return Err(Error::Backend { what: what.into() });
    }
    system::require_root()?;
    let cases = options.chosen(&experiment.header.id, &experiment.cases, |case| &case.name)?;
    let conditions = conditions(experiment, options);
    let _watch = interrupt::Watch::start()?;
    let mut runner = Runner {
        testbed: K::prepare(experiment, &cases, &conditions)?,
        cases: &cases,
        wanted: conditions.schedule.runs,
        keep_series: options.keep_series,
        progress,
        planned: vec![conditions.schedule.runs; cases.len()],
        runs: vec![Vec::new(); cases.len()],
        series: BTreeMap::new(),
    };
    runner.run_all(K::ORDER, K::most_attempts(conditions.schedule.runs))?;
    let Runner { runs, series, .. } = runner;
    let header = &experiment.header;
    let study = Study {
        id: &header.id,
        title: &header.title,
        paper: &header.paper,
        scale: header.scale.as_deref(),
        metrics: experiment.metrics.definitions(),
        in_short: experiment.kind.in_short(),
        conditions,
        complete: cases.len() == experiment.cases.len(),
    };
    let (names, wanted) = (experiment.metrics.names(), conditions.schedule.runs);
    let reports = cases
        .iter()
        .zip(runs)
        .map(|(case, runs)| CaseReport::from_runs(&case.name, wanted, runs, &names, &case.expect));
    let expected: Vec<_> = cases.iter().map(|case| &case.expect).collect();
    let figure = |cases: &[CaseReport]| K::figure(experiment, cases, &series);
    Ok(study.report(reports.collect(), &expected, figure))
}

fn conditions<K: Kind>(experiment: &Experiment<K>, options: &RunOptions) -> Conditions {
    let mut schedule = experiment.schedule(options.quick);
    schedule.runs = options.runs.unwrap_or(schedule.runs);
    Conditions {
        stack: experiment.kind.stack(options.stack),
        backend: options.backend.unwrap_or(experiment.kind.backend()),
        quick: options.quick,
        seed: options.seed,
        schedule,
        full_schedule: experiment.schedule(false),
    }
}

struct Runner<'a, P, T> {
    testbed: T,
    cases: &'a [&'a Case<P>],
    /// Valid runs of each case.
    wanted: u32,
    keep_series: bool,
    progress: &'a mut dyn Progress,
    /// Of each case, the runs that are still to begin.
    planned: Vec<u32>,
    /// Of each case, those that are over.
    runs: Vec<Vec<RunReport>>,
    /// Recordings of the first valid run of each case, for the figure.
    series: BTreeMap<String, Series>,
}

impl<P, T: Testbed<P>> Runner<'_, P, T> {
    /// Repeats each case until enough of its runs are valid, or too many are not.
    fn run_all(&mut self, order: Order, most_attempts: u32) -> Result<()> {
        let cases = 0..self.cases.len();
        match order {
            Order::CaseByCase => {
                for case in cases {
                    for _ in 0..most_attempts {
                        let valid = self.valid(case);
                        if valid == self.wanted {
                            break;
                        }
                        self.run_once(case, valid + 1)?;
                    }
                    self.planned[case] = 0;
                }
            }
            Order::Rounds => {
                for round in 1..=most_attempts {
                    for case in cases.clone() {
                        if self.valid(case) < self.wanted {
                            self.run_once(case, round)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn valid(&self, case: usize) -> u32 {
        self.runs[case].iter().filter(|run| run.valid).count() as u32
    }

    /// `run` is its number for people, from 1 on.
    fn run_once(&mut self, index: usize, run: u32) -> Result<()> {
        let (case, runs, progress) = (self.cases[index], self.wanted, &mut *self.progress);
        let name = case.name.as_str();
        self.planned[index] = runs.saturating_sub(run);
        let later: u32 = self.planned.iter().sum();
        let later_s: f64 = self
            .cases
            .iter()
            .zip(&self.planned)
            .map(|(case, &runs)| f64::from(runs) * self.testbed.run_s(case))
            .sum();
        let attempt = self.runs[index].len() as u32;
        let report = self.testbed.run(case, attempt, &mut |left_s, virtual_time| {
            // In virtual time, runs to come are assumed to take as long as this one.
            let each_s = virtual_time.map(|time| time.wall_s + left_s);
            let left_s = left_s + each_s.map_or(later_s, |each_s| f64::from(later) * each_s);
            progress.note(&Event::Tick { case: name, run, runs, left_s, virtual_time });
        });
        let mut report = interrupt::or_interrupted(report)?;
        if let Some(series) = report.series.take() {
            report.series = self.keep_series.then(|| series.clone());
            if report.valid {
                self.series.entry(name.into()).or_insert(series);
            }
        }
        self.progress.note(&Event::Done {
            case: name,
            run,
            runs,
            valid: report.valid,
            reasons: &report.reasons,
            metrics: &report.metrics,
        });
        self.runs[index].push(report);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Tick;
    use super::*;
    use vcc_results::measure::Validity;

    /// The first two runs of the case `late` are not valid, and none of `never` is.
    #[derive(Default)]
    struct Fake(Vec<String>);

    impl Testbed<()> for Fake {
        fn run_s(&self, _: &Case<()>) -> f64 {
            10.0
        }

        fn run(&mut self, case: &Case<()>, attempt: u32, tick: Tick) -> Result<RunReport> {
            self.0.push(format!("{}-{attempt}", case.name));
            tick(4.0, None);
            let is_valid = match case.name.as_str() {
                "late" => attempt >= 2,
                name => name != "never",
            };
            let reasons = if is_valid { Vec::new() } else { vec!["a reason".into()] };
            let validity = Validity { reasons, warnings: Vec::new() };
            Ok(RunReport::without_network(attempt.into(), validity, BTreeMap::new()))
        }
    }

    /// What a person sees: the case, the number of its run, and the seconds that are left.
    #[derive(Default)]
    struct Seen(Vec<(String, u32, f64)>);

    impl Progress for Seen {
        fn note(&mut self, event: &Event) {
            if let Event::Tick { case, run, left_s, .. } = event {
                self.0.push(((*case).to_owned(), *run, *left_s));
            }
        }
    }

    /// Two valid runs of each case, in at most `most_attempts`.
    fn run_all(names: &[&str], order: Order, most_attempts: u32) -> (Vec<String>, Seen) {
        let case = |name: &&str| Case {
            name: (*name).to_owned(),
            expect: BTreeMap::new(),
            entry: 0,
            parameters: (),
        };
        let cases: Vec<Case<()>> = names.iter().map(case).collect();
        let cases: Vec<&Case<()>> = cases.iter().collect();
        let mut seen = Seen::default();
        let mut runner = Runner {
            testbed: Fake::default(),
            cases: &cases,
            wanted: 2,
            keep_series: false,
            progress: &mut seen,
            planned: vec![2; cases.len()],
            runs: vec![Vec::new(); cases.len()],
            series: BTreeMap::new(),
        };
        runner.run_all(order, most_attempts).unwrap();
        (runner.testbed.0, seen)
    }

    fn tick(case: &str, run: u32, left_s: f64) -> (String, u32, f64) {
        (case.to_owned(), run, left_s)
    }

    #[test]
    fn a_case_is_repeated_until_enough_runs_are_valid() {
        let (runs, seen) = run_all(&["late", "good"], Order::CaseByCase, 5);
        assert_eq!(runs, ["late-0", "late-1", "late-2", "late-3", "good-0", "good-1"]);
        let late = [34.0, 34.0, 34.0, 24.0];
        let late = late.iter().zip([1, 1, 1, 2]).map(|(left_s, run)| tick("late", run, *left_s));
        let good = [tick("good", 1, 14.0), tick("good", 2, 4.0)];
        assert_eq!(seen.0, late.chain(good).collect::<Vec<_>>());
    }

    #[test]
    fn a_case_without_valid_runs_is_given_up() {
        let (runs, seen) = run_all(&["never", "good"], Order::CaseByCase, 3);
        assert_eq!(runs, ["never-0", "never-1", "never-2", "good-0", "good-1"]);
        assert_eq!(seen.0[3], tick("good", 1, 14.0), "no time is left for what is given up");
    }

    #[test]
    fn rounds_have_a_run_of_every_case() {
        let (runs, seen) = run_all(&["never", "good"], Order::Rounds, 2);
        assert_eq!(runs, ["never-0", "good-0", "never-1", "good-1"]);
        let expected =
            [("never", 1, 34.0), ("good", 1, 24.0), ("never", 2, 14.0), ("good", 2, 4.0)];
        assert_eq!(seen.0, expected.map(|(case, run, left_s)| tick(case, run, left_s)));
    }
}

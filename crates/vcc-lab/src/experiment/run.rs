//! Runs the cases of an experiment as often as needed, and reports on them.

use super::ledger::{Ledger, Turn};
use super::{Case, Experiment, Independent, Kind, RunOptions, Testbed};
use crate::base::error::{Doing, Error, Result};
use crate::base::progress::{Event, Progress, VirtualTime};
use crate::base::{interrupt, system};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{self, Sender};
use std::thread;
use vcc_results::report::{CaseReport, Conditions, Report, RunReport, Study};
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
    let jobs = jobs(conditions.backend, options.jobs)?;
    let _watch = interrupt::Watch::start()?;
    let wanted = conditions.schedule.runs;
    let ledger = Ledger::new(&cases, K::ORDER, wanted, K::most_attempts(wanted));
    let mut runner = Runner {
        testbed: K::prepare(experiment, &cases, &conditions)?,
        cases: &cases,
        wanted,
        ledger: ledger.keep_series(options.keep_series),
        progress,
    };
    match jobs {
        1 => runner.one_by_one()?,
        jobs => runner.at_once(jobs)?,
    }
    let (runs, series) = runner.ledger.into_runs();
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
    let names = experiment.metrics.names();
    let reports = cases
        .iter()
        .zip(runs)
        .map(|(case, runs)| CaseReport::from_runs(&case.name, wanted, runs, &names, &case.expect));
    let expected: Vec<_> = cases.iter().map(|case| &case.expect).collect();
    let figure = |cases: &[CaseReport]| K::figure(experiment, cases, &series);
    Ok(study.report(reports.collect(), &expected, figure))
}

/// Runs at once: where time is virtual, no run is slower in another's company.
fn jobs(backend: Backend, wanted: Option<u32>) -> Result<usize> {
    match (backend, wanted) {
        (Backend::Live, None | Some(1)) => Ok(1),
        (Backend::Live, Some(_)) => Err(Error::VirtualOnly { what: "several runs at once" }),
        (Backend::Virtual, Some(jobs)) => Ok(jobs as usize),
        (Backend::Virtual, None) => {
            thread::available_parallelism().map(Into::into).doing(|| "count the CPUs".into())
        }
    }
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
    ledger: Ledger<'a, P>,
    progress: &'a mut dyn Progress,
}

/// What a run says to the thread that watches all of them.
enum Word {
    Tick(f64, Option<VirtualTime>),
    /// It is over, or has panicked.
    Over(Box<thread::Result<Result<RunReport>>>),
}

impl<P: Sync, T: Testbed<P>> Runner<'_, P, T> {
    fn one_by_one(&mut self) -> Result<()> {
        while let Some(turn) = self.ledger.begin() {
            let Self { testbed, cases, wanted, ledger, progress } = self;
            let lengths = lengths(testbed, cases);
            let case = cases[turn.case];
            let report = testbed.run(case, turn.attempt, &mut |left_s, virtual_time| {
                ledger.note_left(turn, left_s, virtual_time);
                let left_s = ledger.left_s(1, |case| lengths[case]);
                let (case, run, runs) = (case.name.as_str(), turn.run, *wanted);
                progress.note(&Event::Tick { case, run, runs, left_s, virtual_time });
            });
            let report = interrupt::or_interrupted(report)?;
            end(ledger, *progress, case, *wanted, turn, report);
        }
        Ok(())
    }

    /// Runs up to `jobs` at once, each in a thread of its own, with which its guests end.
    fn at_once(&mut self, jobs: usize) -> Result<()> {
        let Some(independent) = self.testbed.independent() else { return self.one_by_one() };
        let jobs = jobs.min(independent.most_at_once()?);
        let lengths = lengths(&self.testbed, self.cases);
        let Self { cases, wanted, ledger, progress, .. } = self;
        thread::scope(|scope| {
            let (sender, words) = mpsc::channel();
            loop {
                while ledger.under_way() < jobs
                    && let Some(turn) = ledger.begin()
                {
                    let (case, sender) = (cases[turn.case], sender.clone());
                    scope.spawn(move || carry_out(independent, case, turn, &sender));
                }
                if ledger.under_way() == 0 {
                    return Ok(());
                }
                // `sender` is still open, so there is a word.
                let Ok((turn, word)) = words.recv() else { return Ok(()) };
                match word {
                    Word::Tick(left_s, virtual_time) => {
                        ledger.note_left(turn, left_s, virtual_time);
                        // One of several is shown.
                        if ledger.first_under_way() == Some(turn) {
                            let left_s = ledger.left_s(jobs, |case| lengths[case]);
                            let (case, run) = (cases[turn.case].name.as_str(), turn.run);
                            let runs = *wanted;
                            progress.note(&Event::Tick { case, run, runs, left_s, virtual_time });
                        }
                    }
                    Word::Over(outcome) => {
                        let outcome = (*outcome).map(interrupt::or_interrupted);
                        if !matches!(outcome, Ok(Ok(_))) {
                            // The scope waits for the others.
                            interrupt::end_runs();
                        }
                        let report = outcome.unwrap_or_else(|panic| resume_unwind(panic))?;
                        end(ledger, *progress, cases[turn.case], *wanted, turn, report);
                    }
                }
            }
        })
    }
}

/// Seconds of a run of each case.
fn lengths<P>(testbed: &impl Testbed<P>, cases: &[&Case<P>]) -> Vec<f64> {
    cases.iter().map(|case| testbed.run_s(case)).collect()
}

fn carry_out<P>(
    runs: &dyn Independent<P>,
    case: &Case<P>,
    turn: Turn,
    sender: &Sender<(Turn, Word)>,
) {
    // After an error of another run nobody listens.
    let say = |word| drop(sender.send((turn, word)));
    let mut tick = |left_s, virtual_time| say(Word::Tick(left_s, virtual_time));
    let run = AssertUnwindSafe(|| runs.run(case, turn.attempt, &mut tick));
    let outcome = catch_unwind(run);
    say(Word::Over(Box::new(outcome)));
}

fn end<P>(
    ledger: &mut Ledger<P>,
    progress: &mut dyn Progress,
    case: &Case<P>,
    runs: u32,
    turn: Turn,
    report: RunReport,
) {
    progress.note(&Event::Done {
        case: &case.name,
        run: turn.run,
        runs,
        valid: report.valid,
        is_repeated: !report.valid && ledger.repeats(turn.case),
        reasons: &report.reasons,
        metrics: &report.metrics,
    });
    ledger.end(turn, report);
}

#[cfg(test)]
mod tests {
    use super::super::{Order, Tick};
    use super::*;
    use std::collections::BTreeMap;
    use std::sync::{Condvar, Mutex};
    use std::time::Duration;
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
            Ok(report(&case.name, attempt))
        }
    }

    fn report(case: &str, attempt: u32) -> RunReport {
        let is_valid = match case {
            "late" => attempt >= 2,
            name => name != "never",
        };
        let reasons = if is_valid { Vec::new() } else { vec!["a reason".into()] };
        let validity = Validity { reasons, warnings: Vec::new() };
        RunReport::without_network(attempt.into(), validity, BTreeMap::new())
    }

    fn cases(names: &[&str]) -> Vec<Case<()>> {
        let case = |name: &&str| Case {
            name: (*name).to_owned(),
            expect: BTreeMap::new(),
            entry: 0,
            parameters: (),
        };
        names.iter().map(case).collect()
    }

    /// What a person sees: the case, the number of its run, and the seconds that are left; and of each
    /// invalid run, whether another takes its place.
    #[derive(Default)]
    struct Seen(Vec<(String, u32, f64)>, Vec<bool>);

    impl Progress for Seen {
        fn note(&mut self, event: &Event) {
            match event {
                Event::Tick { case, run, left_s, .. } => {
                    self.0.push(((*case).to_owned(), *run, *left_s));
                }
                Event::Done { valid: false, is_repeated, .. } => self.1.push(*is_repeated),
                Event::Done { .. } => {}
            }
        }
    }

    /// Two valid runs of each case, in at most `most_attempts`.
    fn run_all(names: &[&str], order: Order, most_attempts: u32) -> (Vec<String>, Seen) {
        let cases = cases(names);
        let cases: Vec<&Case<()>> = cases.iter().collect();
        let mut seen = Seen::default();
        let mut runner = Runner {
            testbed: Fake::default(),
            cases: &cases,
            wanted: 2,
            ledger: Ledger::new(&cases, order, 2, most_attempts),
            progress: &mut seen,
        };
        runner.one_by_one().unwrap();
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
        assert_eq!(seen.1, [true, true]);
    }

    #[test]
    fn a_case_without_valid_runs_is_given_up() {
        let (runs, seen) = run_all(&["never", "good"], Order::CaseByCase, 3);
        assert_eq!(runs, ["never-0", "never-1", "never-2", "good-0", "good-1"]);
        assert_eq!(seen.0[3], tick("good", 1, 14.0), "no time is left for what is given up");
        assert_eq!(seen.1, [true, false, false]);
    }

    #[test]
    fn rounds_have_a_run_of_every_case() {
        let (runs, seen) = run_all(&["never", "good"], Order::Rounds, 2);
        assert_eq!(runs, ["never-0", "good-0", "never-1", "good-1"]);
        let expected =
            [("never", 1, 34.0), ("good", 1, 24.0), ("never", 2, 14.0), ("good", 2, 4.0)];
        assert_eq!(seen.0, expected.map(|(case, run, left_s)| tick(case, run, left_s)));
    }

    /// Runs of two at once, of which the first ends after three others.
    #[derive(Default)]
    struct Pairs {
        begun: Mutex<Vec<(String, u32)>>,
        over: Mutex<u32>,
        is_over: Condvar,
    }

    impl Testbed<()> for Pairs {
        fn run_s(&self, _: &Case<()>) -> f64 {
            10.0
        }

        fn run(&mut self, case: &Case<()>, attempt: u32, _: Tick) -> Result<RunReport> {
            panic!("{} {attempt} runs alone", case.name)
        }

        fn independent(&self) -> Option<&dyn Independent<()>> {
            Some(self)
        }
    }

    impl Independent<()> for Pairs {
        fn most_at_once(&self) -> Result<usize> {
            Ok(2)
        }

        fn run(&self, case: &Case<()>, attempt: u32, tick: Tick) -> Result<RunReport> {
            let mut begun = self.begun.lock().unwrap();
            begun.push((case.name.clone(), attempt));
            let is_first = begun.len() == 1;
            drop(begun);
            tick(4.0, None);
            let mut over = self.over.lock().unwrap();
            if is_first {
                let patience = Duration::from_secs(60);
                let waited = self.is_over.wait_timeout_while(over, patience, |over| *over < 3);
                over = waited.unwrap().0;
                assert!(*over >= 3, "nothing else runs");
            }
            *over += 1;
            self.is_over.notify_all();
            Ok(report(&case.name, attempt))
        }
    }

    #[test]
    fn runs_at_once_are_those_of_one_by_one_in_their_order() {
        let names = ["late", "good", "never"];
        let cases = cases(&names);
        let cases: Vec<&Case<()>> = cases.iter().collect();
        let mut seen = Seen::default();
        let mut runner = Runner {
            testbed: Pairs::default(),
            cases: &cases,
            wanted: 2,
            ledger: Ledger::new(&cases, Order::CaseByCase, 2, 5),
            progress: &mut seen,
        };
        runner.at_once(8).unwrap();
        let (runs, _) = runner.ledger.into_runs();
        let seeds = runs.iter().map(|runs| runs.iter().map(|run| run.seed).collect());
        let seeds: Vec<Vec<u64>> = seeds.collect();
        assert_eq!(seeds, [vec![0, 1, 2, 3], vec![0, 1], vec![0, 1, 2, 3, 4]]);
        let mut begun = runner.testbed.begun.into_inner().unwrap();
        assert_eq!(begun.len(), 11);
        begun.truncate(3);
        begun.sort();
        let first = [0, 1, 2].map(|attempt| ("late".to_owned(), attempt));
        assert_eq!(begun, first, "the one that waits may be valid, so one more is needed");
    }
}

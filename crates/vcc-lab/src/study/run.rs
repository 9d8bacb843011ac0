//! Runs an experiment on an emulated network: cases, repetitions, report.

use crate::backend::{self, HostKernels};
use crate::base::error::{Error, Result};
use crate::base::progress::{Event, Progress};
use crate::base::{interrupt, system};
use crate::experiment::{Case, Experiment};
use crate::options::RunOptions;
use crate::scenario::Scenario;
use std::collections::BTreeMap;
use vcc_results::measure;
use vcc_results::report::{CaseReport, Conditions, Figure, Report, RunReport, Series, Study};
use vcc_results::result::{RunFacts, Schedule};

/// Attempts of a case beyond the runs asked for, in place of invalid ones.
const SPARE_ATTEMPTS: u32 = 3;
/// Making and removing the hosts of a run.
const OVERHEAD_S: f64 = 1.5;

/// Everything that it makes is gone when this returns, also after Ctrl-C.
pub fn run(
    experiment: &Experiment,
    options: &RunOptions,
    progress: &mut dyn Progress,
) -> Result<Report> {
    system::require_root()?;
    let cases = options.chosen(experiment.id(), experiment.cases(), |case| &case.name)?;
    let conditions = conditions(experiment, options);
    let Conditions { stack, backend, schedule, .. } = conditions;
    let _watch = interrupt::Watch::start()?;
    // A case that the backend cannot run is refused before anything is built.
    let named = |name: &str| name.to_owned();
    for case in &cases {
        backend::check(backend, &experiment.scenario(case, &schedule, stack, &named)?)?;
    }
    let congestion_controls = cases.iter().flat_map(|case| case.congestion_controls()).collect();
    let hosts = HostKernels::prepare(backend, &congestion_controls)?;
    // All scenarios are resolved before the first is run, so that an error comes at once.
    let kernel_name = |name: &str| hosts.kernel_name(name).to_owned();
    let scenarios: Vec<Scenario> = cases
        .iter()
        .map(|case| experiment.scenario(case, &schedule, stack, &kernel_name))
        .collect::<Result<_>>()?;
    let mut runner = Runner {
        experiment,
        options,
        hosts: &hosts,
        schedule,
        progress,
        runs_left: cases.len() as u32 * schedule.runs,
        series: BTreeMap::new(),
    };
    let mut reports = Vec::new();
    for (case, scenario) in cases.iter().zip(&scenarios) {
        reports.push(runner.case(case, scenario)?);
    }
    let series = runner.series;
    let metrics = experiment.metrics().iter();
    let study = Study {
        id: experiment.id(),
        title: experiment.title(),
        paper: experiment.paper(),
        scale: experiment.scale(),
        metrics: metrics.map(|metric| (metric.name.as_str(), metric.text.as_str())).collect(),
        in_short: experiment.in_short(),
        conditions,
        complete: cases.len() == experiment.cases().len(),
    };
    let expected: Vec<_> = cases.iter().map(|case| &case.expect).collect();
    let placed = cases.iter().map(|case| (case.name.clone(), experiment.placed(case))).collect();
    Ok(study.report(reports, &expected, |cases| {
        Figure::build(experiment.plot(), cases, &placed, &series)
    }))
}

fn conditions(experiment: &Experiment, options: &RunOptions) -> Conditions {
    let mut schedule = experiment.schedule(options.quick);
    schedule.runs = options.runs.unwrap_or(schedule.runs);
    Conditions {
        stack: options.stack.unwrap_or(experiment.stack()),
        backend: options.backend.unwrap_or(experiment.backend()),
        quick: options.quick,
        seed: options.seed,
        schedule,
        full_schedule: experiment.schedule(false),
    }
}

struct Runner<'a> {
    experiment: &'a Experiment,
    options: &'a RunOptions,
    hosts: &'a HostKernels,
    schedule: Schedule,
    progress: &'a mut dyn Progress,
    runs_left: u32,
    /// Recordings of the first valid run of each case, for the figure.
    series: BTreeMap<String, Series>,
}

impl Runner<'_> {
    /// Repeats a case until enough runs are valid, or too many are not.
    fn case(&mut self, case: &Case, scenario: &Scenario) -> Result<CaseReport> {
        let wanted = self.schedule.runs;
        let facts = scenario.facts(&self.experiment.groups());
        let mut runs: Vec<RunReport> = Vec::new();
        let mut valid = 0;
        for attempt in 0..wanted + SPARE_ATTEMPTS {
            if valid == wanted {
                break;
            }
            let run = self.attempt(case, scenario, &facts, valid + 1, u64::from(attempt))?;
            if run.valid {
                valid += 1;
                self.runs_left -= 1;
            }
            runs.push(run);
        }
        self.runs_left -= wanted - valid;
        let metrics: Vec<&str> =
            self.experiment.metrics().iter().map(|metric| metric.name.as_str()).collect();
        Ok(CaseReport::from_runs(&case.name, wanted, runs, &metrics, &case.expect))
    }

    fn attempt(
        &mut self,
        case: &Case,
        scenario: &Scenario,
        facts: &RunFacts,
        run: u32,
        attempt: u64,
    ) -> Result<RunReport> {
        let seed = self.options.seed.wrapping_add(attempt);
        let (name, runs) = (case.name.as_str(), self.schedule.runs);
        let real_s = self.schedule.warm_up_s + self.schedule.measured_s + OVERHEAD_S;
        let later = f64::from(self.runs_left.saturating_sub(1));
        let progress = &mut *self.progress;
        let data = self.hosts.run_once(scenario, seed, &mut |left_s, virtual_time| {
            // Runs to come are assumed to take as long as this one.
            let each_s = virtual_time.map_or(real_s, |time| time.wall_s + left_s);
            let left_s = left_s + later * each_s;
            progress.note(&Event::Tick { case: name, run, runs, left_s, virtual_time });
        });
        // Ctrl-C also ends the programs that a run starts; their errors are no news.
        let data = if interrupt::is_pending() { Err(Error::Interrupted) } else { data }?;
        let series = Series::from_run(&data);
        let metrics = self.experiment.metrics().iter().filter_map(|metric| {
            Some((metric.name.clone(), measure::value(metric, facts, &data)?))
        });
        let (validity, metrics) = (measure::validate(facts, &data), metrics.collect());
        let mut report = RunReport::new(facts, data, seed, validity, metrics);
        if report.valid && !self.series.contains_key(&case.name) {
            self.series.insert(case.name.clone(), series.clone());
        }
        report.series = self.options.keep_series.then_some(series);
        self.progress.note(&Event::Done {
            case: name,
            run,
            runs,
            valid: report.valid,
            reasons: &report.reasons,
            metrics: &report.metrics,
        });
        Ok(report)
    }
}

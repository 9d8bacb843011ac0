//! Running an experiment: cases, repetitions, judgement.

mod controls;
#[cfg(test)]
pub mod made;
mod once;
mod progress;
mod scenario;
mod validity;

pub use once::{Pings, RunData};
pub use progress::{Event, Progress, VirtualTime};
pub use scenario::{Flow, Guest, Receivers, Scenario};

use crate::error::{Error, Result};
use crate::experiment::{Case, Experiment, Schedule, Stack};
use crate::report::{
    CaseReport, FORMAT_VERSION, Figure, FlowReport, Machine, Outcome, Report, RunReport, Series,
    in_short, origin, verdict,
};
use crate::{interrupt, measure, system, virtual_time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::str::FromStr;
use vcc_guest::CongestionControls;
use vcc_uml::Kernel;

/// How often, beyond the runs asked for, a case may try again after one that did not count.
const SPARE_ATTEMPTS: u32 = 3;
/// The emulator keeps up with no more in real time.
const LIVE_MOST_BPS: u64 = 1_000_000_000;
/// Making and removing the hosts of a run.
const OVERHEAD_S: f64 = 1.5;

/// What carries a run's hosts, and its time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// Network namespaces of this machine's kernel, in real time.
    #[default]
    Live,
    /// Kernels of their own, in virtual time.
    Virtual,
}

impl FromStr for Backend {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Self, String> {
        match name {
            "live" => Ok(Self::Live),
            "virtual" => Ok(Self::Virtual),
            _ => Err("there are 'live' and 'virtual'".into()),
        }
    }
}

#[derive(Debug, Clone)]
pub struct RunOptions {
    /// Valid runs of each case; what the experiment says if left out.
    pub runs: Option<u32>,
    /// Shorter runs, fewer of them: for a look, without a verdict.
    pub quick: bool,
    pub stack: Option<Stack>,
    pub seed: u64,
    /// Only these cases; all if empty.
    pub cases: Vec<String>,
    /// What carries hosts and time; what the experiment says if left out.
    pub backend: Option<Backend>,
    /// Keep what was recorded over time in the report of each run.
    pub keep_series: bool,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            runs: None,
            quick: false,
            stack: None,
            seed: 1,
            cases: Vec::new(),
            backend: None,
            keep_series: false,
        }
    }
}

/// Runs an experiment. Everything that it makes is gone when this returns, also after Ctrl-C.
pub fn run(
    experiment: &Experiment,
    options: &RunOptions,
    progress: &mut dyn Progress,
) -> Result<Report> {
    system::require_root()?;
    let cases = chosen(experiment.id(), experiment.cases(), |case| &case.name, &options.cases)?;
    let backend = options.backend.unwrap_or(experiment.backend());
    let _watch = interrupt::Watch::start()?;
    let mut schedule = experiment.schedule(options.quick);
    schedule.runs = options.runs.unwrap_or(schedule.runs);
    let stack = options.stack.unwrap_or(experiment.stack());
    // What cannot be carried is told before anything is built for it.
    let named = |name: &str| name.to_owned();
    for case in &cases {
        check(backend, &experiment.scenario(case, &schedule, stack, &named)?)?;
    }
    let hosts = HostKernels::prepare(backend, &cases)?;
    let mut runner = Runner {
        experiment,
        options,
        hosts: &hosts,
        schedule,
        progress,
        runs_left: cases.len() as u32 * schedule.runs,
        series: BTreeMap::new(),
    };
    // All are made before the first is run: what cannot be is told at once.
    let kernel_name = |name: &str| hosts.kernel_name(name).to_owned();
    let scenarios: Vec<Scenario> = cases
        .iter()
        .map(|case| experiment.scenario(case, &schedule, stack, &kernel_name))
        .collect::<Result<_>>()?;
    let mut reports = Vec::new();
    for (case, scenario) in cases.iter().zip(&scenarios) {
        reports.push(runner.case(case, scenario)?);
    }
    let series = runner.series;
    let metrics: Vec<&str> = experiment.metrics().iter().map(|it| it.name.as_str()).collect();
    let verdict_takes = experiment.schedule(false).for_verdict();
    let runs = schedule.is_enough_for(&verdict_takes).then_some(verdict_takes.runs);
    let expected: Vec<_> = cases.iter().map(|case| &case.expect).collect();
    verdict::Bench { metrics: &metrics, stack, runs }.judge(&mut reports, &expected);
    let valid = reports.iter().all(|case| case.valid);
    let complete = cases.len() == experiment.cases().len();
    Ok(Report {
        format_version: FORMAT_VERSION,
        experiment: experiment.id().into(),
        title: experiment.title().into(),
        paper: experiment.paper().trim().into(),
        scale: experiment.scale().map(Into::into),
        stack,
        backend,
        quick: options.quick,
        seed: options.seed,
        valid,
        complete,
        outcome: Outcome::of(&reports),
        schedule,
        verdict_takes,
        in_short: experiment.in_short().and_then(|spec| in_short(spec, &reports)),
        figure: Figure::build(experiment, &reports, &series),
        cases: reports,
        machine: Machine::this(),
        command: origin::this_command(),
        finished_unix_s: origin::now_unix_s(),
        definitions: experiment
            .metrics()
            .iter()
            .map(|m| (m.name.clone(), m.text.clone()))
            .collect(),
    })
}

/// The cases of these names; all if there are none.
pub(crate) fn chosen<'a, C>(
    experiment: &str,
    all: &'a [C],
    name_of: impl Fn(&C) -> &str,
    names: &[String],
) -> Result<Vec<&'a C>> {
    if let Some(name) = names.iter().find(|name| !all.iter().any(|case| name_of(case) == **name)) {
        let known: Vec<&str> = all.iter().map(&name_of).collect();
        return Err(Error::NoSuchCase {
            experiment: experiment.into(),
            case: name.clone(),
            known: known.join(", "),
        });
    }
    let is_chosen = |case: &&C| names.is_empty() || names.iter().any(|name| name_of(case) == *name);
    Ok(all.iter().filter(is_chosen).collect())
}

/// Whether the backend can carry it.
fn check(backend: Backend, scenario: &Scenario) -> Result<()> {
    let network = &scenario.network;
    let rate_bps = network.rate_bps.max(network.edge_rate_bps);
    match backend {
        Backend::Live if rate_bps > LIVE_MOST_BPS => Err(Error::TooFast {
            rate_mbps: rate_bps / 1_000_000,
            most_mbps: LIVE_MOST_BPS / 1_000_000,
        }),
        Backend::Live => scenario.check_live(),
        Backend::Virtual => virtual_time::check(scenario),
    }
}

/// The kernels of the hosts: this machine's, with the congestion controls that the cases want, or
/// one of their own, which has them all.
enum HostKernels {
    Live(CongestionControls),
    Virtual(Kernel),
}

impl HostKernels {
    fn prepare(backend: Backend, cases: &[&Case]) -> Result<Self> {
        match backend {
            Backend::Live => controls::load(cases).map(Self::Live),
            Backend::Virtual => virtual_time::prepare().map(Self::Virtual),
        }
    }

    fn kernel_name<'a>(&'a self, name: &'a str) -> &'a str {
        match self {
            Self::Live(controls) => controls.kernel_name(name),
            Self::Virtual(_) => name,
        }
    }

    fn run_once(
        &self,
        scenario: &Scenario,
        seed: u64,
        tick: &mut dyn FnMut(f64, Option<VirtualTime>),
    ) -> Result<RunData> {
        match self {
            Self::Live(_) => once::run_once(scenario, seed, &mut |left_s| tick(left_s, None)),
            Self::Virtual(kernel) => virtual_time::run_once(kernel, scenario, seed, &mut |time| {
                tick(time.left_s(), Some(time));
            }),
        }
    }
}

struct Runner<'a> {
    experiment: &'a Experiment,
    options: &'a RunOptions,
    hosts: &'a HostKernels,
    schedule: Schedule,
    progress: &'a mut dyn Progress,
    runs_left: u32,
    /// Of the first valid run of each case, for the figure.
    series: BTreeMap<String, Series>,
}

impl Runner<'_> {
    /// Repeats a case until enough runs count, or too many did not.
    fn case(&mut self, case: &Case, scenario: &Scenario) -> Result<CaseReport> {
        let wanted = self.schedule.runs;
        let mut runs: Vec<RunReport> = Vec::new();
        let mut valid = 0;
        for attempt in 0..wanted + SPARE_ATTEMPTS {
            if valid == wanted {
                break;
            }
            let run = self.attempt(case, scenario, valid + 1, u64::from(attempt))?;
            if run.valid {
                valid += 1;
                self.runs_left -= 1;
            }
            runs.push(run);
        }
        self.runs_left -= wanted - valid;
        let metrics: Vec<&str> =
            self.experiment.metrics().iter().map(|metric| metric.name.as_str()).collect();
        Ok(CaseReport::of(&case.name, wanted, runs, &metrics, &case.expect))
    }

    fn attempt(
        &mut self,
        case: &Case,
        scenario: &Scenario,
        run: u32,
        attempt: u64,
    ) -> Result<RunReport> {
        let seed = self.options.seed.wrapping_add(attempt);
        let (name, runs) = (case.name.as_str(), self.schedule.runs);
        let real_s = self.schedule.warm_up_s + self.schedule.measured_s + OVERHEAD_S;
        let later = f64::from(self.runs_left.saturating_sub(1));
        let progress = &mut *self.progress;
        let data = self.hosts.run_once(scenario, seed, &mut |left_s, virtual_time| {
            // Those to come take as long as this one, as far as can be seen.
            let each_s = virtual_time.map_or(real_s, |time| time.wall_s + left_s);
            let left_s = left_s + later * each_s;
            progress.note(&Event::Tick { case: name, run, runs, left_s, virtual_time });
        });
        // Ctrl-C also ends the programs that a run starts; their complaints are no news.
        let data = if interrupt::is_pending() { Err(Error::Interrupted) } else { data }?;
        let report = self.report(case, scenario, seed, data);
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

    fn report(&mut self, case: &Case, scenario: &Scenario, seed: u64, data: RunData) -> RunReport {
        let groups = self.experiment.groups();
        let judgement = validity::judge(scenario, &data);
        let metrics = self.experiment.metrics().iter().filter_map(|metric| {
            Some((metric.name.clone(), measure::value(metric, &groups, scenario, &data)?))
        });
        let metrics = metrics.collect();
        let flows = scenario.flows.iter().zip(&data.flows).map(|(flow, result)| FlowReport {
            group: groups[flow.group].into(),
            goodput_bps: result.received_bytes() as f64 * 8.0 / flow.active_s(scenario),
            retransmitted_segs: result.retransmitted_segs,
            sent_segs: result.sent_segs,
            ecn: result.guest_has_ecn,
            payload_ok: result.payload_ok,
        });
        let flows = flows.collect();
        let valid = judgement.reasons.is_empty();
        let series = Series::of(&data);
        if valid && !self.series.contains_key(&case.name) {
            self.series.insert(case.name.clone(), series.clone());
        }
        RunReport {
            seed,
            valid,
            reasons: judgement.reasons,
            warnings: judgement.warnings,
            metrics,
            flows,
            lateness: data.emulator.lateness.summary(),
            links: data.emulator.links,
            vcc: data.translated,
            frame_log: data.frame_log,
            series: self.options.keep_series.then_some(series),
        }
    }
}

#[cfg(test)]
mod tests;

//! Runs a CPU experiment: pairs, until enough of them are valid.

use super::case::Case;
use super::devices::Wire;
use super::experiment::Experiment;
use super::half::Half;
use super::metrics::{METRICS, Pair};
use super::pair::{self, Times};
use crate::base::error::{Error, Result};
use crate::base::progress::{Event, Progress};
use crate::base::{interrupt, system};
use crate::options::RunOptions;
use vcc_results::measure::Validity;
use vcc_results::report::{CaseReport, Conditions, Figure, Report, RunReport, Study};
use vcc_results::result::{Backend, Stack};

/// Making devices and connections, for both sides.
const OVERHEAD_S: f64 = 2.0;

/// Without emulated links there is no paper's stack to compare with.
pub const STACK: Stack = Stack::Modern;

/// All namespaces and devices are removed on return, also after Ctrl-C.
pub fn run(
    experiment: &Experiment,
    options: &RunOptions,
    progress: &mut dyn Progress,
) -> Result<Report> {
    system::require_root()?;
    let cases = options.chosen(experiment.id(), experiment.cases(), |case| &case.name)?;
    let _watch = interrupt::Watch::start()?;
    let mut schedule = experiment.schedule(options.quick);
    let stack = options.stack.unwrap_or(STACK);
    schedule.runs = options.runs.unwrap_or(schedule.runs);
    let runs = schedule.runs;
    let times = Times::from(&schedule);
    let pairs_s = |case: &&Case| f64::from(runs) * pair_s(times, case);
    let mut runner = Runner {
        times,
        stack,
        runs,
        later_s: cases.iter().map(pairs_s).sum(),
        seed: options.seed,
        progress,
    };
    let mut reports = Vec::new();
    for case in &cases {
        reports.push(runner.case(case)?);
    }
    let study = Study {
        id: experiment.id(),
        title: experiment.title(),
        paper: experiment.paper(),
        scale: experiment.scale(),
        metrics: METRICS.iter().map(|(name, text, _)| (*name, *text)).collect(),
        in_short: None,
        conditions: Conditions {
            stack,
            backend: Backend::Live,
            quick: options.quick,
            seed: options.seed,
            schedule,
            full_schedule: experiment.schedule(false),
        },
        complete: cases.len() == experiment.cases().len(),
    };
    let expected: Vec<_> = cases.iter().map(|case| &case.expect).collect();
    Ok(study.report(reports, &expected, |cases| Figure::by_case(cases, experiment.plot())))
}

fn metric_names() -> Vec<&'static str> {
    METRICS.iter().map(|(name, ..)| *name).collect()
}

fn pair_s(times: Times, case: &Case) -> f64 {
    times.of_pair(case).as_secs_f64() + OVERHEAD_S
}

struct Runner<'a> {
    times: Times,
    stack: Stack,
    runs: u32,
    /// Time that the cases after this one take.
    later_s: f64,
    seed: u64,
    progress: &'a mut dyn Progress,
}

impl Runner<'_> {
    /// Repeats a case until enough runs are valid, or as many are not.
    fn case(&mut self, case: &Case) -> Result<CaseReport> {
        let wire = || Wire::create(self.stack == Stack::Modern);
        let wires = [wire()?, wire()?];
        self.later_s -= f64::from(self.runs) * pair_s(self.times, case);
        let mut runs: Vec<RunReport> = Vec::new();
        let mut valid = 0;
        for attempt in 0..2 * self.runs {
            if valid == self.runs {
                break;
            }
            let run = self.pair(&wires, case, attempt, valid + 1)?;
            valid += u32::from(run.valid);
            runs.push(run);
        }
        Ok(CaseReport::from_runs(&case.name, self.runs, runs, &metric_names(), &case.expect))
    }

    fn pair(
        &mut self,
        wires: &[Wire; 2],
        case: &Case,
        attempt: u32,
        run: u32,
    ) -> Result<RunReport> {
        let (name, runs, progress) = (case.name.as_str(), self.runs, &mut *self.progress);
        let later_s = self.later_s + f64::from(runs - run) * pair_s(self.times, case);
        let pair = pair::run(wires, case, self.times, attempt, &mut |left_s| {
            let left_s = left_s + later_s;
            progress.note(&Event::Tick { case: name, run, runs, left_s, virtual_time: None });
        });
        // Ctrl-C also ends the programs that a run starts; their errors are not reported.
        let pair = if interrupt::is_pending() { Err(Error::Interrupted) } else { pair }?;
        let report = report(&pair, self.seed);
        self.progress.note(&Event::Done {
            case: &case.name,
            run,
            runs: self.runs,
            valid: report.valid,
            reasons: &report.reasons,
            metrics: &report.metrics,
        });
        Ok(report)
    }
}

fn report(pair: &Pair, seed: u64) -> RunReport {
    let doubts = |name: &'static str, half: &Half| {
        half.doubts.iter().map(move |doubt| format!("{name}: {doubt}")).collect::<Vec<_>>()
    };
    let reasons = [doubts("without", &pair.without), doubts("with", &pair.with)].concat();
    let validity = Validity { reasons, warnings: Vec::new() };
    RunReport::without_network(seed, validity, pair.metrics())
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use vcc_testing::can_attach;

    const SMALL: &str = r#"
id = "small"
title = "t"
paper = "p"
[duration]
warm_up_s = 0.1
measured_s = 0.4
runs = 1
quick = { warm_up_s = 0.1, measured_s = 0.4, runs = 1 }
[wire]
plot = "cpu_added_points"
[[cases]]
name = "with-50"
flows = 50
bursts = { bytes = 20000, every_ms = 50 }
with.sender.vcc = { mode = "enforce", underlay = "dctcp" }
with.receiver.vcc = { mode = "enforce", underlay = "dctcp" }
[[cases]]
name = "without-peer"
flows = 5
bursts = { bytes = 2000, every_ms = 50 }
with.sender.vcc = { mode = "enforce", underlay = "dctcp" }
[[cases]]
name = "limit"
flows = 2
with.rate_limit_mbps = 50
[[cases]]
name = "proxy"
flows = 3
bursts = { bytes = 20000, every_ms = 50 }
without.receiver.ecn = true
with = { proxy = "reno", receiver.ecn = true }
"#;

    fn run_case(name: &str) -> Option<(RunReport, Report)> {
        if !can_attach() {
            return None;
        }
        let experiment = parse("small.toml", SMALL).unwrap();
        let options = RunOptions { cases: vec![name.into()], ..RunOptions::default() };
        let mut report =
            run(&experiment, &options, &mut ()).unwrap_or_else(|error| panic!("{error}"));
        let runs = &mut report.cases[0].runs;
        Some((runs.remove(0), report))
    }

    /// Reasons that are not about a busy machine.
    fn doubts_of_translation(run: &RunReport) -> Vec<&String> {
        run.reasons.iter().filter(|reason| reason.contains("port")).collect()
    }

    #[test]
    fn every_flow_is_translated_at_both_ends() {
        let Some((run, report)) = run_case("with-50") else { return };
        assert!(doubts_of_translation(&run).is_empty(), "{:?}", run.reasons);
        assert!(run.metrics["goodput_with_mbps"] > 0.0);
        assert!(run.metrics["cpu_with_percent"] > 0.0);
        assert!(run.metrics["programs_percent"] > 0.0, "counted in turns of its own");
        assert!(!report.complete);
    }

    /// The receiver refuses ECN, so the run does not measure the cost of the underlay.
    #[test]
    fn a_run_without_ecn_does_not_count() {
        let Some((run, report)) = run_case("without-peer") else { return };
        let doubts = doubts_of_translation(&run);
        assert!(doubts.len() == 1 && doubts[0].contains("0 of 5 flows"), "{:?}", run.reasons);
        assert!(!run.valid && !report.valid);
    }

    /// A proxy forwards all bytes, and stops at the end of the half.
    #[test]
    fn a_proxy_passes_everything_on() {
        if std::process::Command::new("haproxy").arg("-v").output().is_err() {
            return vcc_testing::skip("no haproxy");
        }
        let Some((run, _)) = run_case("proxy") else { return };
        let (without, with) =
            (run.metrics["goodput_without_mbps"], run.metrics["goodput_with_mbps"]);
        assert!(without > 0.0 && with > 0.0, "{without} {with}");
    }

    #[test]
    fn a_limit_holds_back_and_ends_with_its_half() {
        let Some((run, _)) = run_case("limit") else { return };
        let (without, with) =
            (run.metrics["goodput_without_mbps"], run.metrics["goodput_with_mbps"]);
        assert!(with > 20.0 && with < 60.0, "{with}");
        assert!(without > 100.0, "{without}");
    }
}

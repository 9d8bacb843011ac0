//! Runs a case of a CPU experiment: a pair.

use super::devices::Wire;
use super::half::Half;
use super::metrics::Pair;
use super::pair::{self, Times};
use super::{Case, Parameters};
use crate::base::error::Result;
use crate::experiment::{Testbed, Tick};
use vcc_results::measure::Validity;
use vcc_results::report::{Conditions, RunReport};
use vcc_results::result::Stack;

/// Making devices and connections, for both sides.
const OVERHEAD_S: f64 = 2.0;

pub struct WireTestbed {
    times: Times,
    stack: Stack,
    seed: u64,
    /// The devices of both sides, and the name of the case that has them.
    wires: Option<(String, [Wire; 2])>,
}

impl WireTestbed {
    pub fn new(conditions: &Conditions) -> Self {
        let Conditions { stack, seed, schedule, .. } = conditions;
        Self { times: Times::from(schedule), stack: *stack, seed: *seed, wires: None }
    }

    /// Those of all runs of a case. Those of the case before are gone.
    fn wires(&mut self, case: &str) -> Result<&[Wire; 2]> {
        let kept = self.wires.take().filter(|(name, _)| name == case);
        let wires = match kept {
            Some((_, wires)) => wires,
            None => {
                let wire = || Wire::create(self.stack == Stack::Modern);
                [wire()?, wire()?]
            }
        };
        Ok(&self.wires.insert((case.into(), wires)).1)
    }
}

impl Testbed<Parameters> for WireTestbed {
    fn run_s(&self, case: &Case) -> f64 {
        self.times.of_pair(&case.parameters).as_secs_f64() + OVERHEAD_S
    }

    fn run(&mut self, case: &Case, attempt: u32, tick: Tick) -> Result<RunReport> {
        let (times, seed) = (self.times, self.seed);
        let wires = self.wires(&case.name)?;
        let tick = &mut |left_s| tick(left_s, None);
        Ok(report(&pair::run(wires, &case.parameters, times, attempt, tick)?, seed))
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
    use super::super::WireKind;
    use super::*;
    use crate::experiment;
    use crate::experiment::RunOptions;
    use vcc_results::report::Report;
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
        let experiment = experiment::parse::<WireKind>("small.toml", SMALL).unwrap();
        let options = RunOptions { cases: vec![name.into()], ..RunOptions::default() };
        let mut report = experiment::run(&experiment, &options, &mut ())
            .unwrap_or_else(|error| panic!("{error}"));
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
        assert!(run.metrics["cpu_with_percent"] > 0.0, "{:?}", run.metrics);
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

//! The CPU cost of a treatment of the guests' traffic, measured between two guests of one
//! hypervisor. An emulated network between them would cost more than the treatment.
//!
//! Every run is a pair: equal traffic without the treatment and with it, in turns, so that other
//! load on the machine affects both alike.

mod connections;
mod devices;
mod file;
mod half;
mod metrics;
mod pair;
mod parameters;
mod run;
mod side;
mod traffic;
mod translated;

use crate::base::error::Result;
use crate::experiment::problem::{Problem, Step, field};
use crate::experiment::{self, Document, Experiment, Kind, Order, Resolved};
use crate::sources;
use crate::translation::translation;
use file::{CaseTable, Tables};
use parameters::{End, Parameters, Treatment};
use run::WireTestbed;
use std::collections::BTreeMap;
use traffic::Demand;
use vcc_results::report::{CaseReport, Conditions, Figure, Series};
use vcc_results::result::{Backend, Stack};

type Case = experiment::Case<Parameters>;
type File = experiment::File<WireKind>;
type Checked<T> = std::result::Result<T, Problem>;

#[derive(Debug, Clone)]
pub struct WireKind {
    /// The metric that the figure shows.
    plot: String,
}

impl Kind for WireKind {
    type Tables = Tables;
    type CaseTable = CaseTable;
    type Parameters = Parameters;
    type Testbed<'a> = WireTestbed;

    const ORDER: Order = Order::CaseByCase;
    const LIVE_ONLY: Option<&'static str> = Some("experiments on a wire without a network");

    fn resolve(file: File, _: &Document) -> Checked<Resolved<Self>> {
        file.header.duration.refuse_phases()?;
        let wire = file.tables.wire;
        let metrics = metrics::all();
        let plot = metrics.check(&wire.plot);
        plot.map_err(|text| Problem::new(field!["wire", "plot"], text))?;
        let mut cases = Vec::new();
        for (entry, it) in file.entries.into_iter().enumerate() {
            let parameters = parameters(&wire, &it.own, entry)?;
            cases.push(Case { name: it.name, expect: it.expect, entry, parameters });
        }
        Ok(Resolved { kind: Self { plot: wire.plot }, metrics, cases })
    }

    fn lacks(_: &Resolved<Self>, case: &Case, metric: &str) -> Option<String> {
        let Treatment { sender, receiver, .. } = &case.parameters.with;
        let has_programs = sender.translation.is_some() || receiver.translation.is_some();
        let is_lacked = metrics::is_of_programs(metric) && !has_programs;
        is_lacked.then(|| "there is no vcc in its treatment".into())
    }

    fn sources(_: Backend) -> sources::Kind {
        sources::Kind::Wire
    }

    /// Without emulated links there is no paper's stack to compare with.
    fn stack(&self, wanted: Option<Stack>) -> Stack {
        wanted.unwrap_or(Stack::Modern)
    }

    fn most_attempts(runs: u32) -> u32 {
        2 * runs
    }

    fn prepare<'a>(
        _: &'a Experiment<Self>,
        _: &[&'a Case],
        conditions: &Conditions,
    ) -> Result<WireTestbed> {
        Ok(WireTestbed::new(conditions))
    }

    fn figure(
        experiment: &Experiment<Self>,
        cases: &[CaseReport],
        _: &BTreeMap<String, Series>,
    ) -> Figure {
        Figure::by_case(cases, &experiment.kind.plot)
    }
}

fn parameters(wire: &file::Wire, case: &CaseTable, index: usize) -> Checked<Parameters> {
    let half = |own: &Option<file::Treatment>, common: &file::Treatment, name: &str| match own {
        Some(own) => treatment(own, field!["cases", index, name]),
        None => treatment(common, field!["wire", name]),
    };
    Ok(Parameters {
        flows: case.flows.get() as usize,
        demand: Demand::from_bursts(case.bursts),
        without: half(&case.without, &wire.without, "without")?,
        with: half(&case.with, &wire.with, "with")?,
    })
}

fn treatment(treatment: &file::Treatment, place: Vec<Step>) -> Checked<Treatment> {
    let end = |end: &file::End, name: &str| {
        let translation = translation(&end.vcc, &BTreeMap::new()).map_err(|(field, text)| {
            Problem::new([place.clone(), field![name, "vcc", field]].concat(), text)
        })?;
        Ok::<_, Problem>(End { ecn: end.ecn, translation })
    };
    Ok(Treatment {
        sender: end(&treatment.sender, "sender")?,
        receiver: end(&treatment.receiver, "receiver")?,
        rate_limit_bps: treatment.rate_limit_mbps.map(|rate| (rate.get() * 1e6) as u64),
        proxy: treatment.proxy.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"
id = "small"
title = "t"
paper = "p"
[duration]
warm_up_s = 0.1
measured_s = 1
runs = 2
quick = { warm_up_s = 0, measured_s = 0.5, runs = 1 }
[wire]
plot = "cpu_added_points"
without.receiver.ecn = true
with = { sender.vcc.mode = "enforce", receiver.ecn = true }
[[cases]]
name = "with-10"
flows = 10
bursts = { bytes = 1000, every_ms = 10 }
[[cases]]
name = "limit"
flows = 1
with = { rate_limit_mbps = 2000 }
"#;

    fn parse(name: &str, text: &str) -> Result<Experiment<WireKind>> {
        experiment::parse(name, text)
    }

    fn refused(source: &str) -> String {
        parse("small.toml", source).expect_err("must be refused").to_string()
    }

    #[test]
    fn a_case_has_the_files_halves_or_its_own() {
        let experiment = parse("small.toml", SMALL).unwrap();
        let [vcc, limit] = &experiment.cases[..] else { panic!("two cases") };
        let (vcc, limit) = (&vcc.parameters, &limit.parameters);
        assert_eq!((vcc.flows, vcc.demand.bytes_per_s(10)), (10, Some(1e6)));
        assert!(vcc.with.sender.translation.is_some() && vcc.without.sender.translation.is_none());
        assert!(limit.with.sender.translation.is_none() && limit.without.receiver.ecn);
        assert_eq!(limit.with.rate_limit_bps, Some(2_000_000_000));
        assert_eq!(limit.demand, Demand::Bulk);
        assert_eq!(experiment.schedule(true).measured_s, 0.5);
    }

    #[test]
    fn a_matrix_makes_cases_here_too() {
        let more =
            "[[cases]]\nname = \"many-{flows}\"\nflows = \"{flows}\"\nmatrix.flows = [3, 5]\n";
        let experiment = parse("small.toml", &format!("{SMALL}{more}")).unwrap();
        let made = experiment.cases[2..].iter();
        let made = made.map(|case| (case.name.as_str(), case.parameters.flows));
        assert_eq!(made.collect::<Vec<_>>(), [("many-3", 3), ("many-5", 5)]);
        let error = refused(&format!("{SMALL}{more}").replace("5]", "0]"));
        assert!(error.contains(": cases[2](many-0): matrix.flows: 0 is not within"), "{error}");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let wrong = [
            ("flows = 10\n", "flows = 0\n", "small.toml:16: flows: 0 is not within"),
            ("\"enforce\"", "\"enforce\", sender.vcc.underlay = \"x\"", "`x` is not an underlay"),
            ("cpu_added_points", "cpu", "small.toml:11: wire.plot: there is no metric 'cpu'"),
            ("runs = 2", "runs = 0", "small.toml:8: duration.runs: must be more than 0"),
            ("title", "headline = \"x with-10\"\ntitle", "there is no metric 'x'"),
            ("title", "headline = \"cpu_added_points x\"\ntitle", "headline: there is no case 'x'"),
            ("\"limit\"", "\"with-10\"", "two cases are called 'with-10'"),
            ("flows = 1\n", "flows = 1\nexpect.x = { max = 1 }\n", "there is no metric 'x'"),
            (
                "flows = 1\n",
                "flows = 1\nexpect.programs_percent.max = 1\n",
                "small.toml:21: cases[1].expect.programs_percent: no run of 'limit' has it: ",
            ),
        ];
        for (from, to, problem) in wrong {
            let error = refused(&SMALL.replacen(from, to, 1));
            assert!(error.contains(problem), "{error}");
        }
    }
}

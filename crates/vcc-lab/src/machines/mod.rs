//! Virtual machines that take turns on a core: QEMU, a card of several kinds, a peer that is a
//! namespace. Measures single transfers in each direction, or what a port reports about them.

mod card;
mod check;
mod crowd;
mod file;
mod link;
mod metrics;
mod network;
mod run;
mod transfer;
mod turns;
mod verdicts;

use crate::base::error::Result;
use crate::experiment::problem::{Problem, field};
use crate::experiment::{self, Document, Experiment, Kind, Order, Resolved};
use crate::sources;
use file::{Machines, Parameters, Tables};
use run::MachinesTestbed;
use std::collections::BTreeMap;
use vcc_results::report::{CaseReport, Conditions, Figure, Series};
use vcc_results::result::{Backend, Stack};

type Case = experiment::Case<Parameters>;
type File = experiment::File<MachinesKind>;

#[derive(Debug, Clone)]
pub struct MachinesKind {
    machines: Machines,
}

impl Kind for MachinesKind {
    type Tables = Tables;
    type CaseTable = Parameters;
    type Parameters = Parameters;
    type Testbed<'a> = MachinesTestbed<'a>;

    const ORDER: Order = Order::Rounds;
    const LIVE_ONLY: Option<&'static str> = Some("virtual machines");

    fn resolve(file: File, _: &Document) -> std::result::Result<Resolved<Self>, Problem> {
        check::check(&file)?;
        let machines = file.tables.machines;
        let metrics = metrics::all(&machines, file.entries.iter().map(|entry| &entry.own));
        let plot = metrics.check(&machines.plot);
        plot.map_err(|text| Problem::new(field!["machines", "plot"], text))?;
        let cases = file.entries.into_iter().enumerate();
        let cases = cases.map(|(entry, it)| Case {
            name: it.name,
            expect: it.expect,
            entry,
            parameters: it.own,
        });
        Ok(Resolved { kind: Self { machines }, metrics, cases: cases.collect() })
    }

    fn lacks(resolved: &Resolved<Self>, case: &Case, metric: &str) -> Option<String> {
        let has = |case: &Case, metric: &str| {
            let own = metrics::all(&resolved.kind.machines, std::iter::once(&case.parameters));
            own.check(metric).is_ok()
        };
        if !has(case, metric) {
            return Some("it has no such transfers".into());
        }
        // A gain is over another case's throughput.
        let throughput = format!("{}_mbps", metric.strip_suffix("_gain")?);
        let Some(other) = &case.parameters.against else {
            return Some("it has no `against`".into());
        };
        let other = resolved.cases.iter().find(|case| case.name == *other)?;
        (!has(other, &throughput)).then(|| format!("'{}' has no such transfers", other.name))
    }

    fn sources(_: Backend) -> sources::Kind {
        sources::Kind::Machines
    }

    /// The guests' kernel, as Debian has it.
    fn stack(&self, _: Option<Stack>) -> Stack {
        Stack::Modern
    }

    /// A run that is not valid is not made up for.
    fn most_attempts(runs: u32) -> u32 {
        runs
    }

    fn prepare<'a>(
        experiment: &'a Experiment<Self>,
        cases: &[&'a Case],
        conditions: &Conditions,
    ) -> Result<MachinesTestbed<'a>> {
        MachinesTestbed::prepare(&experiment.kind.machines, cases, conditions)
    }

    fn figure(
        experiment: &Experiment<Self>,
        cases: &[CaseReport],
        _: &BTreeMap<String, Series>,
    ) -> Figure {
        Figure::by_case(cases, &experiment.kind.machines.plot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"
id = "small"
title = "t"
paper = "p"
[duration]
measured_s = 8
runs = 3
quick = { measured_s = 2, runs = 1 }
[machines]
slice_ms = 30
neighbours = 2
rate_mbps = 1000
rtt_us = 2000
peer_initial_window_segs = 3
sizes = [100000]
plot = "to_100k_mbps"
[[cases]]
name = "tap"
card = "tap"
[[cases]]
name = "hold"
card = "domain"
options = "--act hold"
congestion_control = "flood"
against = "tap"
expect.from_100k_mbps = { min = 2, relative_to = "tap" }
"#;

    const VERDICTS: &str = "
[machines.verdicts]
asks = 0
ask_bytes = 20000
peer_window_bytes = 96000
[[cases]]";

    fn parse(name: &str, text: &str) -> Result<Experiment<MachinesKind>> {
        experiment::parse(name, text)
    }

    #[test]
    fn a_file_has_its_cases() {
        assert_eq!(parse("small.toml", SMALL).unwrap().cases.len(), 2);
    }

    #[test]
    fn a_matrix_makes_cases_here_too() {
        let more = "[[cases]]\nname = \"busy-{busy}\"\ncard = \"tap\"\nbusy = \"{busy}\"\nmatrix.busy = [3, 5]\n";
        let experiment = parse("small.toml", &format!("{SMALL}{more}")).unwrap();
        let made = experiment.cases[2..].iter();
        let made = made.map(|case| (case.name.as_str(), case.parameters.busy));
        assert_eq!(made.collect::<Vec<_>>(), [("busy-3", 3), ("busy-5", 5)]);
        let wrong = format!("{SMALL}{more}").replace("5]", "101]");
        let error = parse("small.toml", &wrong).unwrap_err().to_string();
        assert!(error.contains(": cases[2](busy-101).busy: must be at most 100"), "{error}");
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let wrong = [
            ("runs = 3", "runs = 0", "small.toml:7: duration.runs: must be more than 0"),
            ("measured_s = 8", "measured_s = 8\nwarm_up_s = 1", "warm_up_s: leave it out"),
            ("neighbours = 2", "neighbours = 0", "must be 1 to 15"),
            ("rtt_us = 2000", "rtt_us = 1000001", "rtt_us: must be at most 1000000"),
            ("window_segs = 3", "window_segs = 0", "window_segs: must be 1 to 1000"),
            ("\"to_100k_mbps\"", "\"to_1m_mbps\"", "there is no metric 'to_1m_mbps'"),
            ("title", "headline = \"x_ms tap\"\ntitle", "headline: there is no metric 'x_ms'"),
            ("title", "headline = \"to_100k_ms x\"\ntitle", "headline: there is no case 'x'"),
            ("[100000]", "[]", "machines.sizes: must be 1000"),
            ("\"hold\"", "\"tap\"", "two cases are called 'tap'"),
            ("card = \"tap\"", "card = \"tap\"\noptions = \"-x\"", "those of `card = \"domain\"`"),
            ("\"flood\"", "\"bbr9\"", "there is no 'bbr9': there are dctcp"),
            ("against = \"tap\"", "against = \"tip\"", "there is no case 'tip'"),
            ("expect.from", "expect.form", "there is no metric 'form_100k_mbps'"),
            (
                "\"flood\"",
                "\"flood\"\nsizes = [5000]",
                "expect.from_100k_mbps: no run of 'hold' has it: it has no such transfers",
            ),
            (
                "card = \"tap\"",
                "card = \"tap\"\nsizes = [5000]",
                "expect.from_100k_mbps: no run of 'tap' has it: it has no such transfers",
            ),
            (
                "card = \"tap\"",
                "card = \"tap\"\nexpect.to_100k_gain.min = 1",
                "small.toml:20: cases[0].expect.to_100k_gain: no run of 'tap' has it: it has no `against`",
            ),
            ("card = \"tap\"", "card = \"tap\"\nqueue_ms = 1001", "queue_ms: must be at most 1000"),
            ("card = \"tap\"", "card = \"tap\"\nbusy = 101", "busy: must be at most 100"),
            ("[[cases]]", VERDICTS, "machines.verdicts.asks: must be 1 to 1000"),
            ("card = \"tap\"", "card = \"tap\"\ntcp.pvtcp = true", "needs a `kernel` with PVTCP"),
            ("card = \"tap\"", "card = \"tap\"\nrto_min_ms = 1", "rto_min_ms: needs Linux 6.11"),
            ("\"flood\"", "\"flood\"\nkernel = \"pvtcp-6.12\"", "have no BPF"),
            ("plot", "tcp_counters = true\nplot", "there is no metric 'to_100k_mbps'"),
        ];
        for (from, to, problem) in wrong {
            let error = parse("small.toml", &SMALL.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
    }

    #[test]
    fn verdicts_are_those_of_a_port() {
        let source = SMALL
            .replacen("[[cases]]", &VERDICTS.replacen("asks = 0", "asks = 30", 1), 1)
            .replacen("to_100k_mbps", "from_100k_by_guest", 1)
            .replacen("expect.from_100k_mbps", "expect.ask_20k_by_both", 1);
        assert!(parse("small.toml", &source).is_ok(), "{:?}", parse("small.toml", &source).err());
        let passt = source.replacen("card = \"tap\"", "card = \"passt\"", 1);
        let error = parse("small.toml", &passt).unwrap_err().to_string();
        assert!(error.contains("card: must be 'tap' or 'domain'"), "{error}");
    }
}

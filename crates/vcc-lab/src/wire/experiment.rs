//! Resolves an experiment file into cases to run.

use super::case::{Case, End, Treatment};
use super::file::{self, File};
use super::metrics;
use super::traffic::Demand;
use crate::base::error::Error;
use crate::experiment::cases::{check_expectations, check_headline, check_names};
use crate::experiment::document::has_key;
use crate::experiment::locate::Source;
use crate::experiment::problem::{Problem, Step, field};
use crate::experiment::translation;
use std::collections::BTreeMap;
use vcc_results::report::Headline;
use vcc_results::result::Schedule;

type Checked<T> = Result<T, Problem>;

/// An experiment that measures the CPU cost of a treatment.
#[derive(Debug, Clone)]
pub struct Experiment {
    file: File,
    cases: Vec<Case>,
}

/// Whether a file is one of this kind.
pub fn is_wire(source: &str) -> bool {
    has_key(source, "wire")
}

pub fn parse(name: &str, text: &str) -> Result<Experiment, Error> {
    let source = Source::new(name, text);
    let read = || -> Checked<Experiment> {
        let file: File = source.document()?.read()?;
        check(&file)?;
        let cases =
            (0..file.cases.len()).map(|index| case(&file, index)).collect::<Checked<_>>()?;
        Ok(Experiment { file, cases })
    };
    read().map_err(|problem| source.error(problem))
}

fn check(file: &File) -> Checked<()> {
    file.duration.check()?;
    check_metric(&file.wire.plot).map_err(|text| Problem::new(field!["wire", "plot"], text))?;
    let names = || file.cases.iter().map(|case| case.name.as_str());
    check_names(names().enumerate())?;
    check_headline(file.headline.as_ref(), check_metric, names())?;
    let check_other = |name: &str| match file.cases.iter().any(|case| case.name == name) {
        true => Ok(()),
        false => Err(format!("there is no case '{name}'")),
    };
    for (index, case) in file.cases.iter().enumerate() {
        check_expectations(index, &case.expect, check_metric, check_other)?;
    }
    Ok(())
}

fn check_metric(name: &str) -> Result<(), String> {
    if metrics::is_known(name) {
        return Ok(());
    }
    let known: Vec<&str> = metrics::METRICS.iter().map(|(name, ..)| *name).collect();
    Err(format!("there is no metric '{name}': there are {}", known.join(", ")))
}

fn case(file: &File, index: usize) -> Checked<Case> {
    let case = &file.cases[index];
    let half = |own: &Option<file::Treatment>, common: &file::Treatment, name: &str| match own {
        Some(own) => treatment(own, field!["cases", index, name]),
        None => treatment(common, field!["wire", name]),
    };
    Ok(Case {
        name: case.name.clone(),
        flows: case.flows.get(),
        demand: Demand::of(case.bursts),
        without: half(&case.without, &file.wire.without, "without")?,
        with: half(&case.with, &file.wire.with, "with")?,
        expect: case.expect.clone(),
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
        rate_limit_bps: treatment.rate_limit_mbps.map(file::LimitMbps::bps),
        proxy: treatment.proxy.clone(),
    })
}

impl Experiment {
    pub fn id(&self) -> &str {
        &self.file.id
    }

    pub fn title(&self) -> &str {
        &self.file.title
    }

    pub fn claim(&self) -> Option<&str> {
        self.file.claim.as_deref()
    }

    pub fn headline(&self) -> Option<&Headline> {
        self.file.headline.as_ref()
    }

    pub(super) fn paper(&self) -> &str {
        &self.file.paper
    }

    pub(super) fn scale(&self) -> Option<&str> {
        self.file.scale.as_deref()
    }

    /// The metric that the figure shows.
    pub(super) fn plot(&self) -> &str {
        &self.file.wire.plot
    }

    pub(super) fn cases(&self) -> &[Case] {
        &self.cases
    }

    pub(super) fn schedule(&self, quick: bool) -> Schedule {
        self.file.duration.schedule(quick)
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

    fn refused(source: &str) -> String {
        parse("small.toml", source).expect_err("must be refused").to_string()
    }

    #[test]
    fn a_case_has_the_files_halves_or_its_own() {
        assert!(is_wire(SMALL));
        let experiment = parse("small.toml", SMALL).unwrap();
        let [vcc, limit] = experiment.cases() else { panic!("two cases") };
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
        let made = experiment.cases()[2..].iter().map(|case| (case.name.as_str(), case.flows));
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
        ];
        for (from, to, told) in wrong {
            let error = refused(&SMALL.replacen(from, to, 1));
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn an_experiment_with_a_network_is_of_the_other_kind() {
        assert!(!is_wire("[network]\nrate_mbps = 10\n"));
        assert!(!is_wire("not = toml = at all"));
    }
}

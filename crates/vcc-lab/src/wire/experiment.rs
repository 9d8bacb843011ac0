//! Resolves an experiment file into cases to run.

use super::case::{Case, End, Treatment};
use super::file::{self, File};
use super::metrics;
use super::traffic::Demand;
use crate::base::error::Error;
use crate::experiment::locate::{Problem, Step, field, has_key};
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

pub fn parse(name: &str, source: &str) -> Result<Experiment, Error> {
    let read = || -> Checked<Experiment> {
        let file: File = toml::from_str(source)?;
        check(&file)?;
        let cases =
            (0..file.cases.len()).map(|index| case(&file, index)).collect::<Checked<_>>()?;
        Ok(Experiment { file, cases })
    };
    read().map_err(|problem| problem.at(name, source))
}

fn check(file: &File) -> Checked<()> {
    file.duration.check()?;
    check_metric(&file.wire.plot, field!["wire", "plot"])?;
    if let Some(it) = &file.headline {
        check_metric(&it.metric, field!["headline"])?;
        if !file.cases.iter().any(|case| case.name == it.case) {
            let text = format!("there is no case '{}'", it.case);
            return Err(Problem::new(field!["headline"], text));
        }
    }
    for (index, case) in file.cases.iter().enumerate() {
        if file.cases[..index].iter().any(|other| other.name == case.name) {
            let text = format!("two cases are called '{}'", case.name);
            return Err(Problem::new(field!["cases", index, "name"], text));
        }
        for (metric, expectation) in &case.expect {
            let place = field!["cases", index, "expect", metric];
            check_metric(metric, place.clone())?;
            if let Some(other) = &expectation.relative_to {
                if !file.cases.iter().any(|case| case.name == *other) {
                    return Err(Problem::new(place, format!("there is no case '{other}'")));
                }
            }
        }
    }
    Ok(())
}

fn check_metric(name: &str, place: Vec<Step>) -> Checked<()> {
    if metrics::is_known(name) {
        return Ok(());
    }
    let known: Vec<&str> = metrics::METRICS.iter().map(|(name, ..)| *name).collect();
    Err(Problem::new(place, format!("there is no metric '{name}': there are {}", known.join(", "))))
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

//! What there is to measure, and the state of its record.

use std::collections::BTreeSet;
use std::path::Path;

use vcc_lab::{Experiment, sources};
use vcc_results::report::bench::BENCHES;
use vcc_results::report::{Age, BenchReport, Folder, Outcome, Record};
use vcc_results::result::Backend;

use crate::time::Time;

/// A record, or an experiment or benchmark without one.
pub struct Item {
    /// Of the record.
    pub name: String,
    /// Those of the `vcc-lab` that measures it.
    pub arguments: Vec<String>,
    /// None if there is no record.
    pub age: Option<Age>,
    pub outcome: Option<Outcome>,
    /// Of its next step: a repetition of the first runs, if one can confirm the record, or all runs.
    pub time: Time,
    pub step: Step,
    pub is_virtual: bool,
}

/// How a record is made current again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// By a repetition of the first run of each case, which shows that newer code changes nothing.
    Confirm,
    Measure,
}

impl Item {
    pub fn is_due(&self) -> bool {
        self.age != Some(Age::Current)
    }

    pub fn state(&self) -> String {
        self.age.as_ref().map_or_else(|| "never run".into(), Age::to_string)
    }
}

/// All records of a folder, then what has none. And why a record is left out. `may_confirm` has the names of records
/// that a repetition may confirm.
pub fn all(
    records: &Path,
    may_confirm: &dyn Fn(&str) -> bool,
) -> anyhow::Result<(Vec<Item>, Vec<String>)> {
    let folder = Folder::read(records)?;
    let (mut items, mut left_out) = (Vec::new(), Vec::new());
    let mut recorded = BTreeSet::new();
    for (name, record) in folder.records() {
        recorded.insert(record.experiment.as_str());
        match vcc_lab::load(&record.experiment) {
            Ok(experiment) => {
                items.push(of_record(name, record, &experiment, may_confirm(name)));
            }
            Err(error) => left_out.push(format!("{name}: cannot be renewed: {error}")),
        }
    }
    for summary in vcc_lab::experiments() {
        if !recorded.contains(summary.id.as_str()) {
            let experiment = vcc_lab::load(&summary.id)?;
            items.push(Item {
                arguments: vec!["run".into(), summary.id.clone()],
                name: summary.id,
                age: None,
                outcome: None,
                time: Time::expected(None, summary.backend, experiment.scheduled_s(None)),
                step: Step::Measure,
                is_virtual: summary.backend == Backend::Virtual,
            });
        }
    }
    let bench = |name| folder.benches().iter().find(|it| it.name() == name);
    items.extend(BENCHES.map(|name| of_bench(name, bench(name))));
    Ok((items, left_out))
}

fn of_record(name: &str, record: &Record, experiment: &Experiment, may_confirm: bool) -> Item {
    // The experiment may have been read from a file that is elsewhere now.
    let options = record.arguments().skip(2).map(str::to_owned);
    let now = experiment.sources(record.backend);
    let age = Age::between(&record.sources, &now);
    let can_be_confirmed = match &age {
        Age::Stale(parts) => sources::can_be_confirmed(parts.iter().map(String::as_str)),
        Age::Current | Age::Unknown => false,
    };
    let step = match may_confirm && can_be_confirmed && record.has_fingerprints() {
        true => Step::Confirm,
        false => Step::Measure,
    };
    let runs = match step {
        Step::Confirm => 1,
        Step::Measure => record.runs,
    };
    Item {
        name: name.into(),
        arguments: ["run".into(), record.experiment.clone()].into_iter().chain(options).collect(),
        age: Some(age),
        outcome: Some(record.outcome),
        time: Time::expected(
            record.wall_s.map(|all_s| all_s * f64::from(runs) / f64::from(record.runs)),
            record.backend,
            experiment.scheduled_s(Some(runs)),
        ),
        step,
        is_virtual: record.backend == Backend::Virtual,
    }
}

fn of_bench(name: &str, report: Option<&BenchReport>) -> Item {
    let again = || vec!["bench".into(), name.into()];
    Item {
        name: format!("bench-{name}"),
        arguments: report.map_or_else(again, BenchReport::arguments),
        age: report.map(|report| Age::between(&report.sources, &sources::of_bench(name))),
        outcome: None,
        time: match report.and_then(|report| report.wall_s) {
            Some(seconds) => Time::Measured(seconds),
            None => Time::Unknown { virtual_s: 0.0 },
        },
        step: Step::Measure,
        is_virtual: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_without_a_record_has_never_been_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let (items, left_out) = all(folder.path(), &|_| true).expect("items");
        assert!(left_out.is_empty() && items.iter().all(Item::is_due));
        let find = |name: &str| items.iter().find(|it| it.name == name).expect("an item");
        let live = find("vcc-fig11");
        assert_eq!((live.state().as_str(), live.is_virtual), ("never run", false));
        assert_eq!(live.arguments, ["run", "vcc-fig11"]);
        assert!(matches!(live.time, Time::Scheduled(seconds) if seconds > 300.0));
        assert!(
            matches!(find("vcc-fig11-1g").time, Time::Unknown { virtual_s } if virtual_s > 1.0)
        );
        assert_eq!(find("bench-domain").arguments, ["bench", "domain"]);
    }
}

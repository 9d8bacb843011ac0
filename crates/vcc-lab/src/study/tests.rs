use super::catalogue::EMBEDDED;
use super::{Experiment, experiments, load};
use crate::base::error::Error;
use crate::{experiment, machines, wire};
use vcc_results::result::Stack;

/// The experiments on an emulated network.
fn networks() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    EMBEDDED.iter().filter(|(_, source)| !wire::is_wire(source) && !machines::is_machines(source))
}

#[test]
fn every_built_in_experiment_is_sound() {
    for (name, source) in networks() {
        let experiment = experiment::parse(name, source).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(format!("{}.toml", experiment.id()), *name);
        assert!(!experiment.paper().trim().is_empty());
        let judged = experiment.cases().iter().any(|case| !case.expect.is_empty());
        assert!(judged, "{name} expects nothing, so it would always count as reproduced");
    }
    assert_eq!(experiments().len(), EMBEDDED.len());
    assert!(EMBEDDED.len() >= 24);
}

/// No experiment asks of vcc what it does not have.
#[test]
fn what_experiments_ask_of_vcc_it_has() {
    let (mut asked, name) = (0, |name: &str| name.to_owned());
    for (file, source) in networks() {
        let experiment = experiment::parse(file, source).unwrap();
        let schedule = experiment.schedule(true);
        for case in experiment.cases() {
            let scenario = experiment.scenario(case, &schedule, Stack::Modern, &name);
            let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
            asked += scenario.guests.iter().filter(|guest| guest.translation.is_some()).count();
        }
    }
    assert!(asked > 0);
}

#[test]
fn an_experiment_is_found_by_id_and_by_path() {
    assert_eq!(load("vcc-fig11").unwrap().id(), "vcc-fig11");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/vcc-fig11.toml");
    assert_eq!(load(path).unwrap().id(), "vcc-fig11");
    assert!(load("vcc-fig0").unwrap_err().to_string().contains("no experiment 'vcc-fig0'"));
    assert!(matches!(load("missing.toml"), Err(Error::Read { .. })));
}

/// The demo is the first that anybody sees of vcc.
#[test]
fn the_demo_ends_with_a_sentence_and_a_picture() {
    let makefile = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Makefile");
    let makefile = std::fs::read_to_string(makefile).unwrap();
    let mut lines = makefile.lines().skip_while(|line| !line.starts_with("demo:"));
    let line = lines.find(|line| line.contains(" run ")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    let after = |word: &str| {
        let places = words.iter().enumerate().filter(|(_, it)| **it == word);
        places.map(|(at, _)| words[at + 1]).collect::<Vec<_>>()
    };
    let Experiment::Network(experiment) = load(after("run")[0]).unwrap() else {
        panic!("it has a network")
    };
    let spec = experiment.in_short().unwrap();
    assert_eq!(after("--case"), [&spec.problem.case, &spec.cure.case]);
    assert_eq!(after("--plot").len(), 1);
    let schedule = experiment.schedule(true);
    let run_s = schedule.warm_up_s + schedule.measured_s;
    assert!(2.0 * f64::from(schedule.runs) * run_s <= 90.0, "about two minutes with the rest");
}

use super::{EMBEDDED, experiments, load};
use crate::base::error::Error;
use crate::experiment::{self, Experiment, Kind, has_key};
use crate::machines::MachinesKind;
use crate::network::NetworkKind;
use crate::wire::WireKind;
use vcc_results::result::Stack;

/// The experiments on an emulated network.
fn networks() -> impl Iterator<Item = (&'static str, Experiment<NetworkKind>)> {
    let is_network = |source| !has_key(source, "wire") && !has_key(source, "machines");
    let files = EMBEDDED.iter().filter(move |(_, source)| is_network(source));
    files.map(|(name, source)| (*name, experiment::parse(name, source).unwrap()))
}

fn check<K: Kind>(name: &str, source: &str) -> Experiment<K> {
    let experiment: Experiment<K> =
        experiment::parse(name, source).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(format!("{}.toml", experiment.header.id), name);
    assert!(!experiment.header.paper.trim().is_empty());
    let runs = experiment.schedule(false).runs;
    assert!(runs >= 5, "{name}: verdicts of {runs} runs are less than 90 % sure");
    experiment
}

#[test]
fn every_built_in_experiment_is_sound() {
    for (name, source) in EMBEDDED {
        if has_key(source, "wire") {
            check::<WireKind>(name, source);
        } else if has_key(source, "machines") {
            check::<MachinesKind>(name, source);
        } else {
            let experiment = check::<NetworkKind>(name, source);
            let judged = experiment.cases.iter().any(|case| !case.expect.is_empty());
            assert!(judged, "{name} expects nothing, so it would always count as reproduced");
        }
    }
    assert_eq!(experiments().len(), EMBEDDED.len());
    assert!(EMBEDDED.len() >= 24);
}

/// A file's kind is that of its table; what is no TOML is refused as a network's.
#[test]
fn a_table_marks_the_kind_of_a_file() {
    assert!(has_key("[wire]\nplot = 'x'\n", "wire"));
    assert!(!has_key("[wire]\nplot = 'x'\n", "machines"));
    assert!(!has_key("not = toml = at all", "wire"));
}

/// No experiment asks of vcc what it does not have.
#[test]
fn what_experiments_ask_of_vcc_it_has() {
    let (mut asked, name) = (0, |name: &str| name.to_owned());
    for (_, experiment) in networks() {
        let schedule = experiment.schedule(true);
        for case in &experiment.cases {
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
    let mut networks = networks();
    let demo = networks.find(|(_, experiment)| experiment.header.id == after("run")[0]);
    let (_, experiment) = demo.expect("it has a network");
    let spec = experiment.kind.in_short().unwrap();
    assert_eq!(after("--case"), [&spec.problem.case, &spec.cure.case]);
    assert_eq!(after("--plot").len(), 1);
    let schedule = experiment.schedule(true);
    let run_s = schedule.warm_up_s + schedule.measured_s;
    assert!(2.0 * f64::from(schedule.runs) * run_s <= 90.0, "about two minutes with the rest");
}

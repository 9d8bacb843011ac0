//! The sources that figures depend on, as they were when this program was built. The build script
//! makes their digests, with the files of this directory and `digest.rs` of vcc-results.

#[cfg(test)]
mod code;
#[cfg(test)]
mod kinds;
#[cfg(test)]
mod workspace;

use vcc_results::digest;
use vcc_results::report::Sources;

/// Of each kind of measurement, the parts that it depends on and their digests.
const SOURCES: &[(&str, &[(&str, &str)])] = include!(concat!(env!("OUT_DIR"), "/sources.rs"));

/// What the figures of an experiment depend on, besides its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Live,
    Virtual,
    Machines,
    Wire,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Virtual => "virtual",
            Self::Machines => "machines",
            Self::Wire => "wire",
        }
    }
}

/// Parts that decide which runs an experiment has, what is measured of them, and how it is judged: equal runs do not
/// show that these are as before.
const UNREPEATED: [&str; 3] = ["experiment", "vcc-lab/runs", "vcc-results"];

/// Whether equal runs show that a change of these parts has changed no figure.
pub fn can_be_confirmed<'a>(mut changed: impl Iterator<Item = &'a str>) -> bool {
    changed.all(|part| !UNREPEATED.contains(&part))
}

/// Those of `vcc-lab bench NAME`.
pub fn of_bench(name: &str) -> Sources {
    sources_of(&format!("bench-{name}"))
}

/// Those of an experiment, whose file is this text.
pub fn of_experiment(kind: Kind, text: &str) -> Sources {
    let mut sources = sources_of(kind.name());
    sources.add("experiment", of_file(text));
    sources
}

fn sources_of(kind: &str) -> Sources {
    let kind = SOURCES.iter().find(|(name, _)| *name == kind);
    kind.into_iter().flat_map(|(_, parts)| parts.iter().copied()).collect()
}

/// Keys of an experiment's file that change only how it is shown.
const WORDS: [&str; 7] = ["title", "paper", "scale", "claim", "headline", "in_short", "plot"];

fn of_file(text: &str) -> String {
    let mut digest = digest::Digest::default();
    match text.parse::<toml::Table>() {
        Ok(mut table) => {
            WORDS.iter().for_each(|key| drop(table.remove(*key)));
            digest.add(&table.to_string());
        }
        Err(_) => digest.add(text),
    }
    digest.text()
}

#[cfg(test)]
mod tests {
    use super::*;
    use vcc_results::report::bench::BENCHES;

    #[test]
    fn every_measurement_has_sources() {
        let kinds = [Kind::Live, Kind::Virtual, Kind::Machines, Kind::Wire];
        let kinds = kinds.map(|kind| of_experiment(kind, ""));
        for sources in BENCHES.map(of_bench).iter().chain(&kinds) {
            assert!(sources.parts().any(|part| part == "engine"), "{sources:?}");
        }
        assert!(of_bench("verifier").are_unknown());
        let has = |kind: Kind, name| of_experiment(kind, "").parts().any(|part| part == name);
        assert!(has(Kind::Live, "datapath") && !has(Kind::Live, "vcc-domain"));
        assert!(has(Kind::Virtual, "vcc-domain") && !has(Kind::Virtual, "datapath"));
        assert!(has(Kind::Machines, "vcc-vhost") && has(Kind::Wire, "experiment"));
        assert!(UNREPEATED.iter().all(|part| has(Kind::Virtual, part)));
    }

    #[test]
    fn a_change_of_what_is_measured_cannot_be_confirmed_by_equal_runs() {
        assert!(can_be_confirmed(["engine", "vcc-domain"].into_iter()));
        assert!(!can_be_confirmed(["engine", "vcc-results"].into_iter()));
        assert!(!can_be_confirmed(["experiment"].into_iter()));
    }

    #[test]
    fn words_of_an_experiment_change_no_figure() {
        let file = "title = \"a\"\n[duration]\nruns = 3\n[plot]\nkind = \"goodput\"\n";
        let same = "# Why.\ntitle = \"b\"\nclaim = \"c\"\n[duration]\nruns = 3 # How.\n";
        assert_eq!(of_file(file), of_file(same));
        assert_ne!(of_file(file), of_file(&file.replace('3', "5")));
    }
}

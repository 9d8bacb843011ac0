//! Checks an experiment file.

use super::file::{CardKind, File};
use super::metrics;
use crate::base::error::Error;
use crate::experiment::cases::{check_expectations, check_headline, check_names};
use crate::experiment::document::has_key;
use crate::experiment::locate::Source;
use crate::experiment::problem::{Problem, field};
use vcc_results::report::Headline;

#[derive(Debug, Clone)]
pub struct Experiment(File);

/// Whether a file is one of this kind.
pub fn is_machines(source: &str) -> bool {
    has_key(source, "machines")
}

pub fn parse(name: &str, text: &str) -> Result<Experiment, Error> {
    let source = Source::new(name, text);
    let read = || -> Result<Experiment, Problem> {
        let file: File = source.document()?.read()?;
        check(&file)?;
        Ok(Experiment(file))
    };
    read().map_err(|problem| source.error(problem))
}

fn check(file: &File) -> Result<(), Problem> {
    file.duration.check()?;
    for (at, quick) in
        [(field!["duration", "warm_up_s"], false), (field!["duration", "quick", "warm_up_s"], true)]
    {
        if file.duration.schedule(quick).warm_up_s != 0.0 {
            return Err(Problem::new(at, "leave it out: transfers need no warm-up"));
        }
    }
    if !(1..=15).contains(&file.machines.neighbours) {
        return Err(Problem::new(field!["machines", "neighbours"], "must be 1 to 15"));
    }
    if !(1..=10_000).contains(&file.machines.rate_mbps) {
        return Err(Problem::new(field!["machines", "rate_mbps"], "must be 1 to 10000"));
    }
    if file.machines.rtt_us > 1_000_000 {
        return Err(Problem::new(field!["machines", "rtt_us"], "must be at most 1000000"));
    }
    if file.machines.peer_initial_window_segs.is_some_and(|segs| !(1..=1000).contains(&segs)) {
        let at = field!["machines", "peer_initial_window_segs"];
        return Err(Problem::new(at, "must be 1 to 1000"));
    }
    check_sizes(&file.machines.sizes)
        .map_err(|it| Problem::new(field!["machines", "sizes"], it))?;
    if let Some(verdicts) = &file.machines.verdicts {
        let at = |name: &str| field!["machines", "verdicts", name];
        if !(1..=1000).contains(&verdicts.asks) {
            return Err(Problem::new(at("asks"), "must be 1 to 1000"));
        }
        check_sizes(&[verdicts.ask_bytes]).map_err(|text| Problem::new(at("ask_bytes"), text))?;
        check_sizes(&[verdicts.peer_window_bytes])
            .map_err(|text| Problem::new(at("peer_window_bytes"), text))?;
    }
    let known = metrics::all(file);
    let check_metric = |name: &str| match known.iter().any(|(metric, _)| metric == name) {
        true => Ok(()),
        false => Err(no_metric(name)),
    };
    check_metric(&file.machines.plot)
        .map_err(|text| Problem::new(field!["machines", "plot"], text))?;
    let names = || file.cases.iter().map(|case| case.name.as_str());
    check_names(names().enumerate())?;
    check_headline(file.headline.as_ref(), check_metric, names())?;
    for (index, case) in file.cases.iter().enumerate() {
        let at = |name: &str| field!["cases", index, name];
        if let Some(sizes) = &case.sizes {
            check_sizes(sizes).map_err(|text| Problem::new(at("sizes"), text))?;
        }
        if case.card != CardKind::Domain && !case.options.is_empty() {
            return Err(Problem::new(at("options"), "they are those of `card = \"domain\"`"));
        }
        if case.card == CardKind::Passt && file.machines.verdicts.is_some() {
            let text = "must be 'tap' or 'domain': passt has no port for `verdicts`";
            return Err(Problem::new(at("card"), text));
        }
        if case.queue_ms > 1000 {
            return Err(Problem::new(at("queue_ms"), "must be at most 1000"));
        }
        if case.busy > 100 {
            return Err(Problem::new(at("busy"), "must be at most 100"));
        }
        let custom = case.congestion_control.as_deref();
        if let Some(name) = custom.filter(|name| !vcc_guest::names().contains(name)) {
            let known = vcc_guest::names().join(", ");
            let text = format!("there is no '{name}': there are {known}");
            return Err(Problem::new(at("congestion_control"), text));
        }
        let check_other = |name: &str| match file.cases[..index].iter().any(|it| it.name == name) {
            true => Ok(()),
            false => Err(format!("there is no case '{name}' before it")),
        };
        if let Some(other) = &case.against {
            check_other(other).map_err(|text| Problem::new(at("against"), text))?;
        }
        check_expectations(index, &case.expect, check_metric, check_other)?;
    }
    Ok(())
}

fn check_sizes(sizes: &[u32]) -> Result<(), &'static str> {
    let fits = |bytes: &u32| (1000..=100_000_000).contains(bytes);
    match !sizes.is_empty() && sizes.iter().all(fits) {
        true => Ok(()),
        false => Err("must be 1000 to 100000000 bytes, at least one of them"),
    }
}

fn no_metric(name: &str) -> String {
    format!(
        "there is no metric '{name}': it is DIRECTION_SIZE_UNIT, as to_100k_mbps, or with `verdicts` as \
         from_100k_by_guest"
    )
}

impl Experiment {
    pub fn id(&self) -> &str {
        &self.0.id
    }

    pub fn title(&self) -> &str {
        &self.0.title
    }

    pub fn claim(&self) -> Option<&str> {
        self.0.claim.as_deref()
    }

    pub fn headline(&self) -> Option<&Headline> {
        self.0.headline.as_ref()
    }

    pub(super) fn file(&self) -> &File {
        &self.0
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

    #[test]
    fn a_file_is_one_of_virtual_machines_by_its_table() {
        assert!(is_machines(SMALL));
        assert!(!is_machines("[wire]\nplot = 'x'\n"));
        assert_eq!(parse("small.toml", SMALL).unwrap().file().cases.len(), 2);
    }

    #[test]
    fn a_matrix_makes_cases_here_too() {
        let more = "[[cases]]\nname = \"busy-{busy}\"\ncard = \"tap\"\nbusy = \"{busy}\"\nmatrix.busy = [3, 5]\n";
        let experiment = parse("small.toml", &format!("{SMALL}{more}")).unwrap();
        let made = experiment.file().cases[2..].iter().map(|case| (case.name.as_str(), case.busy));
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
            ("card = \"tap\"", "card = \"tap\"\nqueue_ms = 1001", "queue_ms: must be at most 1000"),
            ("card = \"tap\"", "card = \"tap\"\nbusy = 101", "busy: must be at most 100"),
            ("[[cases]]", VERDICTS, "machines.verdicts.asks: must be 1 to 1000"),
        ];
        for (from, to, told) in wrong {
            let error = parse("small.toml", &SMALL.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
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

//! The page of one record.

use super::curve::{curve, is_in_curve};
use super::origin::{build, machine};
use super::text::{code, line, paragraphs, table, wrapped};
use crate::report::numbers::number;
use crate::report::record::{Figures, Judged, Record, Row};
use crate::report::{Judgement, Outcome, verdict};

const HEAD: [&str; 7] =
    ["metric", "case", "median (least to greatest)", "valid runs", "paper", "required", "verdict"];

/// `name` is that of the record's file.
pub fn page(name: &str, record: &Record) -> String {
    let metrics = record.expected_metrics();
    let rows: Vec<Vec<String>> = metrics
        .iter()
        .flat_map(|metric| record.rows.iter().filter(move |row| row.metric == *metric))
        .filter(|row| !is_in_curve(record, row))
        .map(cells)
        .collect();
    let mut parts = vec![
        format!("<!-- `vcc-lab report --record` makes this page of results/data/{name}.json. -->"),
        format!("# {}: {}", code(&record.experiment), line(&record.title)),
        format!("{}. [All results](../results.md)", conclusion(record)),
        table(&HEAD, &rows).trim_end().to_owned(),
    ];
    parts.extend(curve(record));
    parts.push(definitions(record, &metrics));
    let notes = [("Paper", Some(record.paper.as_str())), ("Scale", record.scale.as_deref())];
    for (title, text) in notes {
        let text = text.map(paragraphs).filter(|text| !text.is_empty());
        parts.extend(text.map(|text| wrapped_paragraphs(&format!("*{title}:* {text}"))));
    }
    parts.push(wrapped(&origin(record)));
    format!("{}\n", parts.join("\n\n"))
}

fn wrapped_paragraphs(text: &str) -> String {
    text.split("\n\n").map(wrapped).collect::<Vec<_>>().join("\n\n")
}

fn cells(row: &Row) -> Vec<String> {
    vec![
        code(&row.metric),
        code(&row.case),
        figure(row),
        row.runs.to_string(),
        paper(row),
        row.judged.as_ref().map(required).unwrap_or_default(),
        row.judged.as_ref().map(judgement).unwrap_or_default(),
    ]
}

/// `0.099 (0.089 to 0.116)`; without brackets if all runs show the same.
pub fn figure(row: &Row) -> String {
    let Some(Figures { median, least, greatest }) = row.figures else {
        return "no valid run".into();
    };
    let [median, least, greatest] = [median, least, greatest].map(number);
    if least == greatest {
        return median;
    }
    format!("{median} ({least} to {greatest})")
}

/// `0.142`, or `0.780 times native` where the paper's figure is a quotient.
pub fn paper(row: &Row) -> String {
    let judged = row.judged.as_ref();
    let other = judged.and_then(|it| it.relative_to.as_deref()).map(code);
    verdict::of_paper(row.paper, judged.and_then(|it| it.paper_quotient), other.as_deref())
}

pub fn required(it: &Judged) -> String {
    verdict::wanted((it.min, it.max), it.spread, it.relative_to.as_deref().map(code).as_deref())
}

pub fn judgement(judged: &Judged) -> String {
    let word = match judged.verdict {
        Judgement::Holds => "holds",
        Judgement::Fails => "**fails**",
        Judgement::Undecided => "undecided",
        Judgement::NotJudged => return "not judged".into(),
    };
    let sure = judged.confidence.map(|percent| format!(", {percent} %")).unwrap_or_default();
    let quotient = judged.quotient.map(|it| format!(" (is {})", number(it))).unwrap_or_default();
    format!("{word}{sure}{quotient}")
}

fn conclusion(record: &Record) -> String {
    match (record.outcome, &record.not_judged) {
        (Outcome::Reproduced, _) => "Reproduced".into(),
        (Outcome::NotReproduced, _) => "**Not reproduced**".into(),
        (Outcome::Undecided, _) => "Undecided".into(),
        (Outcome::FiguresOnly, Some(why)) => format!("Figures only ({})", line(why)),
        (Outcome::FiguresOnly, None) => "Figures only".into(),
        (Outcome::NotValid, _) => "**Not valid**: too few valid runs".into(),
    }
}

fn definitions(record: &Record, metrics: &[&str]) -> String {
    let defined = metrics.iter().filter_map(|name| {
        let text = record.definitions.get(*name)?;
        Some(format!("{}: {}", code(name), line(text)))
    });
    wrapped(&(defined.collect::<Vec<_>>().join("; ") + "."))
}

fn origin(record: &Record) -> String {
    let Record { measured, runs, measured_s, backend, stack, .. } = record;
    let seeds = match (record.first_seed, record.last_seed) {
        (first, last) if last > first => format!("seeds {first} to {last}"),
        (first, _) => format!("seed {first}"),
    };
    let confirmed = record.confirmed.as_ref().map(|it| {
        format!(
            ". The first run of each case was the same, in its frames and figures, with {} on {}.",
            build(it.vcc_version.as_deref()),
            it.measured
        )
    });
    let unit = if *runs == 1 { "run" } else { "runs" };
    format!(
        "Measured on {measured} with {}: {runs} {unit} of {measured_s} s per case, {backend}, stack \
         {stack}, {seeds}; {}. {}{}",
        build(record.vcc_version.as_deref()),
        machine(&record.kernel, record.cpus),
        code(&record.command),
        confirmed.unwrap_or_default(),
    )
}

//! The table of all results: a row for each record, with the figure that decides it.

use super::page::{figure, paper};
use super::text::{code, line, table};
use crate::report::numbers::number;
use crate::report::record::{Known, Record, Row};
use crate::report::when::day;
use crate::report::{Folder, Outcome};

const HEAD: [&str; 8] = ["experiment", "shows", "figure", "paper", "here", "verdict", "day", "vcc"];

/// The records whose experiments match, by the order of the patterns.
pub fn block(
    patterns: &[String],
    folder: &Folder,
    known: &dyn Fn(&str) -> Option<Known>,
) -> String {
    let mut rows = Vec::new();
    for pattern in patterns {
        let own = folder.records().into_iter().filter(|(_, it)| matches(pattern, &it.experiment));
        for (name, record) in own {
            rows.push(row(name, record, known(&record.experiment)));
        }
    }
    format!("\n{}\n", table(&HEAD, &rows))
}

/// A `*` at the end stands for anything.
pub fn matches(pattern: &str, id: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == id, |start| id.starts_with(start))
}

fn row(name: &str, record: &Record, known: Option<Known>) -> Vec<String> {
    let (claim, headline) = known.map_or((None, None), |it| (it.claim, it.headline));
    let (headline, row) = match headline {
        Some(it) => (Some((it.metric.clone(), it.case.clone())), record.row(&it.metric, &it.case)),
        None => {
            let row = first(record);
            (row.map(|row| (row.metric.clone(), row.case.clone())), row)
        }
    };
    let figure = headline.map(|(metric, case)| format!("{} {}", code(&metric), code(&case)));
    vec![
        format!("[{}](results/{name}.md)", code(name)),
        line(claim.as_deref().unwrap_or(&record.title)),
        figure.unwrap_or_default(),
        row.map(paper).unwrap_or_default(),
        row.map_or_else(|| "no valid run".into(), here),
        outcome(record.outcome).into(),
        day(&record.measured).to_owned(),
        record.vcc_version.as_deref().map(line).unwrap_or_default(),
    ]
}

/// The figure, and what it is in proportion to the case that it is judged by.
fn here(row: &Row) -> String {
    let judged = row.judged.as_ref();
    let quotient = judged.and_then(|it| it.quotient.zip(it.relative_to.as_deref()));
    let times =
        quotient.map(|(quotient, other)| format!(", {} times {}", number(quotient), code(other)));
    figure(row) + &times.unwrap_or_default()
}

fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Reproduced => "reproduced",
        Outcome::NotReproduced => "**not reproduced**",
        Outcome::Undecided => "undecided",
        Outcome::FiguresOnly => "figures only",
        Outcome::NotValid => "**not valid**",
    }
}

/// The row that decides, if the experiment's file names none: the first with a bound and the
/// paper's figure, of a case with vcc if there is one; else the first with a bound, likewise; else
/// the first with the paper's figure; else the first.
fn first(record: &Record) -> Option<&Row> {
    let has_vcc = |row: &Row| row.case == "with" || row.case.starts_with("with-");
    let rank = |row: &Row| match (row.judged.is_some(), row.has_paper(), has_vcc(row)) {
        (true, true, true) => 0,
        (true, true, false) => 1,
        (true, false, true) => 2,
        (true, false, false) => 3,
        (false, true, _) => 4,
        (false, false, _) => 5,
    };
    record.rows.iter().min_by_key(|row| rank(row))
}

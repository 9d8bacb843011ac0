//! A Markdown file in parts: what people wrote, and the blocks between markers.

use super::Problem;
use crate::result::{Backend, Stack};

const BEGIN: &str = "<!-- measured:";
const COMMENT_END: &str = "-->";
pub const END: &str = "<!-- /measured -->";

#[derive(Debug, PartialEq)]
pub enum Part {
    /// Whole lines.
    Text(String),
    Block(Block),
}

#[derive(Debug, PartialEq)]
pub struct Block {
    /// Of its first marker, from 1 on.
    pub line: usize,
    /// The first marker as it is written.
    pub marker: String,
    pub kind: Kind,
    pub body: String,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Patterns, in which `*` at the end stands for anything.
    Experiments(Vec<String>),
    Table(Table),
    Bench(String),
}

/// Which of the results of an experiment is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector {
    pub experiment: String,
    pub backend: Option<Backend>,
    pub stack: Option<Stack>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Titles of the label's column and of each case's.
    pub columns: Vec<String>,
    pub rows: Vec<Row>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub line: usize,
    pub label: String,
    pub of: Selector,
    pub metric: String,
    /// `-` stands for an empty cell.
    pub cases: Vec<String>,
}

/// The parts of a file; `Err` names the line of a marker that cannot be understood.
pub fn parse(text: &str) -> Result<Vec<Part>, Problem> {
    let mut lines = text.split_inclusive('\n').enumerate();
    let mut open: Option<Block> = None;
    let mut parts = Vec::new();
    let mut in_code = false;
    while let Some((index, line)) = lines.next() {
        let (number, trimmed) = (index + 1, line.trim());
        if trimmed.starts_with("```") {
            in_code = !in_code;
        }
        if !in_code && trimmed == END {
            let Some(block) = open.take() else {
                return Err(problem(number, format!("unmatched '{END}': no block is open")));
            };
            parts.push(Part::Block(block));
        } else if !in_code && trimmed.starts_with(BEGIN) {
            let mut marker = line.to_owned();
            while !marker.contains(COMMENT_END) {
                let Some((_, more)) = lines.next() else {
                    return Err(problem(number, format!("the comment has no '{COMMENT_END}'")));
                };
                marker += more;
            }
            if let Some(outer) = &open {
                return Err(problem(outer.line, no_end(outer)));
            }
            let kind = kind(number, &marker)?;
            open = Some(Block { line: number, marker, kind, body: String::new() });
        } else if let Some(block) = &mut open {
            block.body += line;
        } else if let Some(Part::Text(text)) = parts.last_mut() {
            text.push_str(line);
        } else {
            parts.push(Part::Text(line.to_owned()));
        }
    }
    match &open {
        Some(block) => Err(problem(block.line, no_end(block))),
        None => Ok(parts),
    }
}

fn no_end(block: &Block) -> String {
    let first = block.marker.lines().next().unwrap_or_default().trim();
    format!("'{first}' has no '{END}' after it")
}

fn problem(line: usize, text: impl Into<String>) -> Problem {
    Problem { line, text: text.into() }
}

fn kind(line: usize, marker: &str) -> Result<Kind, Problem> {
    let inner = marker.trim().strip_prefix(BEGIN).unwrap_or_default();
    let Some((inner, "")) = inner.split_once(COMMENT_END) else {
        return Err(problem(line, "a marker must be alone on its line"));
    };
    let (first, rest) = inner.split_once('\n').unwrap_or((inner, ""));
    let words: Vec<&str> = first.split_whitespace().collect();
    let is_alone = rest.trim().is_empty();
    match words[..] {
        ["experiments", ref patterns @ ..] if is_alone && !patterns.is_empty() => {
            Ok(Kind::Experiments(patterns.iter().map(|&pattern| pattern.to_owned()).collect()))
        }
        ["bench", name] if is_alone => Ok(Kind::Bench(name.to_owned())),
        ["table"] => table(line, rest).map(Kind::Table),
        _ => Err(problem(
            line,
            format!(
                "'measured: {}' is none of 'experiments PATTERN', 'table' and 'bench NAME'",
                first.trim()
            ),
        )),
    }
}

/// `ID [live|virtual] [newreno|modern]`
fn selector(words: &[&str]) -> Result<Selector, String> {
    let [id, conditions @ ..] = words else {
        return Err("the row names no experiment".into());
    };
    let (mut backend, mut stack) = (None, None);
    for word in conditions {
        match (word.parse::<Backend>(), word.parse::<Stack>()) {
            (Ok(found), _) => backend = Some(found),
            (_, Ok(found)) => stack = Some(found),
            _ => return Err(format!("'{word}' is neither a backend nor a stack")),
        }
    }
    Ok(Selector { experiment: (*id).to_owned(), backend, stack })
}

fn table(first_line: usize, text: &str) -> Result<Table, Problem> {
    let mut table = Table { columns: Vec::new(), rows: Vec::new() };
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let number = first_line + 1 + index;
        let (titles, line) = match line.trim().strip_prefix("columns:") {
            Some(titles) => (true, titles),
            None => (false, line),
        };
        let cells: Vec<String> = line.split('|').map(|cell| cell.trim().to_owned()).collect();
        if titles {
            table.columns = cells;
            continue;
        }
        let [label, of, metric, cases @ ..] = &cells[..] else {
            let text = "a row is 'LABEL | EXPERIMENT | METRIC | CASE | CASE...'";
            return Err(problem(number, text));
        };
        let of: Vec<&str> = of.split_whitespace().collect();
        table.rows.push(Row {
            line: number,
            label: label.clone(),
            of: selector(&of).map_err(|text| problem(number, text))?,
            metric: metric.clone(),
            cases: cases.to_vec(),
        });
    }
    let columns = table.columns.len();
    if columns < 2 {
        return Err(problem(first_line, "a table needs 'columns: LABEL | CASE | CASE...'"));
    }
    match table.rows.iter().find(|row| row.cases.len() + 1 != columns) {
        Some(row) => {
            let (cases, titles) = (row.cases.len(), columns - 1);
            Err(problem(row.line, format!("names {cases} cases, and the columns are of {titles}")))
        }
        None => Ok(table),
    }
}

pub fn render(parts: &[Part]) -> String {
    let mut text = String::new();
    for part in parts {
        match part {
            Part::Text(lines) => text += lines,
            Part::Block(block) => {
                text += block.marker.trim_end();
                text += "\n";
                text += &block.body;
                text += END;
                text += "\n";
            }
        }
    }
    text
}

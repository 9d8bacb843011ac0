//! The problems of a policy file, each with its place.

use std::fmt;
use std::ops::Range;

use thiserror::Error;

use crate::text::{char_boundary, is_obeyed};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    Error,
    /// The policy can be used, but may not be what was meant.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        })
    }
}

/// One problem. Displayed with the line that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub severity: Severity,
    pub file_name: String,
    /// Line and column count from 1; columns are characters.
    pub line: usize,
    pub column: usize,
    pub message: String,
    /// There is too much of all together: what stands in this place is not more at fault than others.
    pub is_of_all: bool,
    excerpt: Option<Excerpt>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Excerpt {
    line: String,
    /// Under the part of the line that the problem is about.
    carets: String,
}

impl Problem {
    fn new(finding: Finding, lines: &Lines, file_name: &str) -> Self {
        let text = lines.text;
        let at = char_boundary(text, finding.span.start);
        let line_number = lines.number_at(at);
        let line_start = lines.starts[line_number - 1];
        let line = text[line_start..].lines().next().unwrap_or_default();
        let before = &text[line_start..at];
        let end = char_boundary(text, finding.span.end);
        Self {
            severity: finding.severity,
            file_name: file_name.to_owned(),
            line: line_number,
            column: before.chars().count() + 1,
            message: finding.message,
            is_of_all: finding.is_of_all,
            excerpt: Excerpt::new(line, before, &text[at..end.max(at)]),
        }
    }
}

impl Excerpt {
    fn new(line: &str, before: &str, meant: &str) -> Option<Self> {
        // A terminal would wrap a longer line, and the carets would point at nothing.
        const LONGEST_CHARS: usize = 120;
        if line.trim().is_empty() || line.chars().nth(LONGEST_CHARS).is_some() {
            return None;
        }
        let indent: String = before.chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        let meant = meant.lines().next().unwrap_or_default().trim_end();
        let carets = "^".repeat(meant.chars().count().max(1));
        // Escapes would move the text that the carets point at.
        let shown = |c: char| if is_obeyed(c) && c != '\t' { '\u{fffd}' } else { c };
        Some(Self { line: line.chars().map(shown).collect(), carets: indent + &carets })
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem { severity, file_name, line, column, message, .. } = self;
        write!(f, "{file_name}:{line}:{column}: {severity}: {message}")?;
        if let Some(excerpt) = &self.excerpt {
            let margin = " ".repeat(line.to_string().len());
            write!(f, "\n {line} | {}\n {margin} | {}", excerpt.line, excerpt.carets)?;
        }
        Ok(())
    }
}

/// Why a policy cannot be used: at least one error, and the warnings, in the order of the file. Of
/// very many only some, followed by their number.
#[derive(Clone, Debug, Error)]
pub struct Problems {
    pub problems: Vec<Problem>,
    pub(crate) errors: usize,
}

impl Problems {
    /// The number of errors, shown or not.
    pub fn errors(&self) -> usize {
        self.errors
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, problem) in self.problems.iter().enumerate() {
            if place > 0 {
                writeln!(f)?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

pub(crate) type Span = Range<usize>;

#[derive(Debug)]
struct Finding {
    severity: Severity,
    span: Span,
    message: String,
    is_of_all: bool,
}

/// A text and the offsets of its lines.
#[derive(Debug)]
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        let after_newlines = text.match_indices('\n').map(|(at, _)| at + 1);
        Self { text, starts: std::iter::once(0).chain(after_newlines).collect() }
    }

    /// Counted from 1.
    fn number_at(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at)
    }
}

/// The problems that were found while a text was read and checked.
#[derive(Debug)]
pub(crate) struct Findings<'a> {
    lines: Lines<'a>,
    /// The first of each severity.
    found: Vec<Finding>,
    errors: usize,
    warnings: usize,
}

/// Bounds the memory that a file may cost.
pub(crate) const MOST_SHOWN: usize = 100;

impl<'a> Findings<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { lines: Lines::new(text), found: Vec::new(), errors: 0, warnings: 0 }
    }

    /// The line of a place, for messages about another place.
    pub fn line(&self, span: &Span) -> usize {
        self.lines.number_at(span.start)
    }

    /// The place of something that is missing.
    pub fn end(&self) -> Span {
        let end = self.lines.text.len();
        end..end
    }

    pub fn error(&mut self, span: &Span, message: impl Into<String>) {
        self.add(Severity::Error, span, || message.into());
    }

    /// Adds an error; builds the message only if it is shown.
    pub fn error_with(&mut self, span: &Span, message: impl FnOnce() -> String) {
        self.add(Severity::Error, span, message);
    }

    pub fn warning(&mut self, span: &Span, message: impl Into<String>) {
        self.add(Severity::Warning, span, || message.into());
    }

    /// Adds a warning; builds the message only if it is shown.
    pub fn warning_with(&mut self, span: &Span, message: impl FnOnce() -> String) {
        self.add(Severity::Warning, span, message);
    }

    pub fn add(&mut self, severity: Severity, span: &Span, message: impl FnOnce() -> String) {
        let count = match severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        };
        *count += 1;
        if *count <= MOST_SHOWN {
            let (span, message) = (span.clone(), message());
            self.found.push(Finding { severity, span, message, is_of_all: false });
        }
    }

    /// A limit on the whole policy is exceeded; `span` is a part of it.
    pub fn error_of_all(&mut self, span: &Span, message: String) {
        let shown = self.found.len();
        self.error(span, message);
        for finding in &mut self.found[shown..] {
            finding.is_of_all = true;
        }
    }

    pub fn errors(&self) -> usize {
        self.errors
    }

    /// The number of errors, and all problems in the order of the text; of very many only some, errors
    /// before warnings, followed by their number.
    pub fn settle(mut self, file_name: &str) -> (usize, Vec<Problem>) {
        self.found.sort_by_key(|finding| finding.span.start);
        let mut room_for_warnings = MOST_SHOWN.saturating_sub(self.errors);
        self.found.retain(|finding| {
            finding.severity == Severity::Error
                || room_for_warnings.checked_sub(1).map(|room| room_for_warnings = room).is_some()
        });
        let all = self.errors + self.warnings;
        let more = (all > self.found.len()).then(|| self.more());
        let problem = |finding| Problem::new(finding, &self.lines, file_name);
        let mut problems: Vec<Problem> = self.found.into_iter().map(problem).collect();
        // This problem has no line.
        problems.extend(more.map(|more| Problem { excerpt: None, ..problem(more) }));
        (self.errors, problems)
    }

    fn more(&self) -> Finding {
        let severity = if self.errors > MOST_SHOWN { Severity::Error } else { Severity::Warning };
        let message = format!(
            "errors: {}, warnings: {}; only {MOST_SHOWN} are shown",
            self.errors, self.warnings
        );
        Finding { severity, span: self.end(), message, is_of_all: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, span: Span) -> String {
        let mut findings = Findings::new(text);
        findings.error(&span, "no");
        let (errors, problems) = findings.settle("a.toml");
        Problems { problems, errors }.to_string()
    }

    #[test]
    fn the_place_is_shown() {
        let text = "a = 1\n\tbé = 22\n";
        assert_eq!(shown(text, 0..1), "a.toml:1:1: error: no\n 1 | a = 1\n   | ^");
        let at = text.find("22").unwrap();
        let expected = "a.toml:2:7: error: no\n 2 | \tbé = 22\n   | \t     ^^";
        assert_eq!(shown(text, at..at + 2), expected);
    }

    #[test]
    fn of_very_many_only_some_are_shown_errors_first() {
        let text = "x = 1\n".repeat(100);
        let settled = |errors: usize, warnings: usize| {
            let mut findings = Findings::new(&text);
            (0..warnings).for_each(|at| findings.warning(&(at..at), "hm"));
            (0..errors).for_each(|at| findings.error(&(at..at), "no"));
            let (counted, problems) = findings.settle("a.toml");
            assert_eq!(counted, errors);
            let of = |severity| problems.iter().filter(|p| p.severity == severity).count();
            let last = problems.last().map(ToString::to_string).unwrap_or_default();
            (of(Severity::Error), of(Severity::Warning), last)
        };
        let last = |severity: &str, errors: usize, warnings: usize| {
            format!(
                "a.toml:101:1: {severity}: errors: {errors}, warnings: {warnings}; only 100 are \
                 shown"
            )
        };
        assert_eq!((settled(60, 40).0, settled(60, 40).1), (60, 40));
        assert_eq!(settled(60, 41), (60, 41, last("warning", 60, 41)));
        assert_eq!(settled(100, 1), (100, 1, last("warning", 100, 1)));
        assert_eq!(settled(500, 500), (101, 0, last("error", 500, 500)));
    }

    #[test]
    fn any_place_can_be_shown() {
        for text in ["", "\n", "é\u{1b}[31m\r\n", "\u{feff}a"] {
            for start in 0..text.len() + 2 {
                for end in 0..text.len() + 2 {
                    assert!(!shown(text, start..end).contains('\u{1b}'));
                }
            }
        }
    }
}

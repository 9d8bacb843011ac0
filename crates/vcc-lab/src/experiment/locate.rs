//! Locates a field in a file, so that an error can name its line.

use super::document::Document;
use crate::base::error::Error;
use toml::de::DeTable;

/// Does the file have this key at its top, as the mark of its kind? False if it is not TOML.
pub fn has_key(source: &str, key: &str) -> bool {
    DeTable::parse(source).is_ok_and(|table| table.get_ref().contains_key(key))
}

/// One step from a table or an array to what is in it.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Key(String),
    Index(usize),
}

impl From<&str> for Step {
    fn from(key: &str) -> Self {
        Self::Key(key.into())
    }
}

impl From<&String> for Step {
    fn from(key: &String) -> Self {
        Self::Key(key.clone())
    }
}

impl From<usize> for Step {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

/// `field!["cases", 2, "name"]`
macro_rules! field {
    ($($step:expr),* $(,)?) => { vec![$($crate::experiment::locate::Step::from($step)),*] };
}
pub(crate) use field;

/// An error in a file.
#[derive(Debug)]
pub enum Problem {
    /// The value at this path is wrong.
    At { path: Vec<Step>, text: String },
    /// The TOML parser's error.
    Syntax(toml::de::Error),
}

impl Problem {
    pub fn new(path: Vec<Step>, text: impl Into<String>) -> Self {
        Self::At { path, text: text.into() }
    }

    pub fn at(self, file: &str, source: &str) -> Error {
        let document = Document::parse(source).unwrap_or_else(|_| Document::unexpanded(source));
        let (line, field, problem) = match self {
            Self::At { path, text } => {
                (line_of_offset(source, document.offset(&path)), document.dotted(&path), text)
            }
            Self::Syntax(error) => {
                let span = error.span().unwrap_or_default();
                let line = line_of_offset(source, span.start);
                let key = key_on_line(source, line);
                let field = match document.generated_at(&span) {
                    Some(case) => format!("{case}: {key}"),
                    None => key,
                };
                (line, field, one_line(error.message()))
            }
        };
        Error::Experiment { file: file.into(), line, field, problem }
    }
}

impl From<toml::de::Error> for Problem {
    fn from(error: toml::de::Error) -> Self {
        Self::Syntax(error)
    }
}

fn key_on_line(source: &str, line: usize) -> String {
    let text = source.lines().nth(line - 1).unwrap_or_default();
    let key = text.split('=').next().unwrap_or_default().trim();
    if key.is_empty() { "syntax".into() } else { key.into() }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn line_of_offset(source: &str, offset: usize) -> usize {
    source.bytes().take(offset).filter(|&byte| byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "id = \"x\"\n\n[[cases]]\nname = \"a\"\n\n[[cases]]\nname = \"b\"\n\
                          guests.legacy.count = 3\n";

    fn line(path: Vec<Step>) -> String {
        Problem::new(path, "is wrong").at("f.toml", SOURCE).to_string()
    }

    #[test]
    fn names_file_line_and_field() {
        assert_eq!(line(field!["id"]), "f.toml:1: id: is wrong");
        assert_eq!(line(field!["cases", 1, "name"]), "f.toml:7: cases[1].name: is wrong");
        let deep = field!["cases", 1, "guests", "legacy", "count"];
        assert_eq!(line(deep), "f.toml:8: cases[1].guests.legacy.count: is wrong");
    }

    #[test]
    fn what_is_missing_is_placed_where_it_belongs() {
        assert_eq!(line(field!["cases", 0, "x"]), "f.toml:3: cases[0].x: is wrong");
    }
}

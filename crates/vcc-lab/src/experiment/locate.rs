//! Locates a problem in its file, so that an error can name its line.

use super::document::Document;
use super::problem::Problem;
use crate::base::error::Error;

/// An experiment file: its text, and its name in errors.
#[derive(Debug, Clone)]
pub struct Source {
    name: String,
    text: String,
}

impl Source {
    pub fn new(name: &str, text: &str) -> Self {
        Self { name: name.into(), text: text.into() }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn document(&self) -> Result<Document<'_>, Problem> {
        Document::parse(&self.text)
    }

    /// Names file, line and field.
    pub fn error(&self, problem: Problem) -> Error {
        let text = self.text.as_str();
        let document = self.document().unwrap_or_else(|_| Document::unexpanded(text));
        let (line, field, problem) = match problem {
            Problem::At { path, text: problem } => {
                (line_of_offset(text, document.offset(&path)), document.dotted(&path), problem)
            }
            Problem::Syntax { span, text: problem } => {
                let line = line_of_offset(text, span.start);
                let key = key_on_line(text, line);
                let field = match document.generated_at(&span) {
                    Some(case) => format!("{case}: {key}"),
                    None => key,
                };
                (line, field, problem)
            }
        };
        Error::Experiment { file: self.name.clone(), line, field, problem }
    }
}

fn key_on_line(source: &str, line: usize) -> String {
    let text = source.lines().nth(line - 1).unwrap_or_default();
    let key = text.split('=').next().unwrap_or_default().trim();
    if key.is_empty() { "syntax".into() } else { key.into() }
}

fn line_of_offset(source: &str, offset: usize) -> usize {
    source.bytes().take(offset).filter(|&byte| byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::super::problem::{Step, field};
    use super::*;

    const SOURCE: &str = "id = \"x\"\n\n[[cases]]\nname = \"a\"\n\n[[cases]]\nname = \"b\"\n\
                          guests.legacy.count = 3\n";

    fn line(path: Vec<Step>) -> String {
        Source::new("f.toml", SOURCE).error(Problem::new(path, "is wrong")).to_string()
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

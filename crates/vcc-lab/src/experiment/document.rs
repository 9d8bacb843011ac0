//! An experiment's file as TOML, with the cases of its matrices. Every value remembers its place in
//! the text, so that an error names that line.

use super::matrix;
use super::problem::{Problem, Step, field};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// Does the file have this key at its top, as the mark of its kind? False if it is not TOML.
pub fn has_key(source: &str, key: &str) -> bool {
    DeTable::parse(source).is_ok_and(|table| table.get_ref().contains_key(key))
}

pub struct Document<'a> {
    source: &'a str,
    table: DeTable<'a>,
    /// Where the cases come from.
    origins: Vec<Origin>,
}

/// The entry of `[[cases]]`, and the name of the case if the entry has a matrix.
struct Origin {
    entry: usize,
    generated: Option<String>,
}

impl<'a> Document<'a> {
    pub fn parse(source: &'a str) -> Result<Self, Problem> {
        let mut document =
            Self { source, table: DeTable::parse(source)?.into_inner(), origins: Vec::new() };
        document.expand()?;
        Ok(document)
    }

    /// As it is written, for an error that is in a matrix.
    pub(super) fn unexpanded(source: &'a str) -> Self {
        let table = DeTable::parse(source).map_or_else(|_| DeTable::new(), Spanned::into_inner);
        Self { source, table, origins: Vec::new() }
    }

    fn expand(&mut self) -> Result<(), Problem> {
        let cases = self.table.iter_mut().find(|(key, _)| key.get_ref() == "cases");
        let Some((_, cases)) = cases else { return Ok(()) };
        let DeValue::Array(entries) = cases.get_mut() else { return Ok(()) };
        let mut all = DeArray::new();
        for (entry, value) in entries.iter().enumerate() {
            match matrix::cases(value, field!["cases", entry])? {
                None => {
                    all.push(value.clone());
                    self.origins.push(Origin { entry, generated: None });
                }
                Some(cases) => {
                    for it in cases {
                        all.push(it.case);
                        self.origins.push(Origin { entry, generated: Some(it.name) });
                    }
                }
            }
        }
        *entries = all;
        Ok(())
    }

    pub fn table(&self) -> &DeTable<'a> {
        &self.table
    }

    /// The place of the whole table.
    pub fn span(&self) -> Range<usize> {
        0..self.source.len()
    }

    /// The entries of `[[cases]]`, with those of matrices.
    pub fn cases(&self) -> &[Spanned<DeValue<'a>>] {
        let cases = self.table.iter().find(|(key, _)| key.get_ref() == "cases");
        cases.and_then(|(_, cases)| cases.get_ref().as_array()).map_or(&[], |cases| cases)
    }

    /// `cases[2].name`, or `cases[2](with-10).name` in a case of a matrix.
    pub(super) fn dotted(&self, path: &[Step]) -> String {
        let (mut text, path) = match path {
            [Step::Key(key), Step::Index(index), rest @ ..] if key == "cases" => {
                (self.case(*index), rest)
            }
            _ => (String::new(), path),
        };
        for step in path {
            match step {
                Step::Index(index) => text.push_str(&format!("[{index}]")),
                Step::Key(key) if text.is_empty() => text.push_str(key),
                Step::Key(key) => text.push_str(&format!(".{key}")),
            }
        }
        text
    }

    fn case(&self, index: usize) -> String {
        match self.origins.get(index) {
            None => format!("cases[{index}]"),
            Some(Origin { entry, generated: None }) => format!("cases[{entry}]"),
            Some(Origin { entry, generated: Some(name) }) => format!("cases[{entry}]({name})"),
        }
    }

    /// The start of the deepest part of the path that the file has.
    pub(super) fn offset(&self, path: &[Step]) -> usize {
        let mut at = 0;
        let root = Spanned::new(self.span(), DeValue::Table(self.table.clone()));
        let mut value = &root;
        for step in path {
            let next = match (step, value.get_ref()) {
                (Step::Key(key), DeValue::Table(table)) => table
                    .iter()
                    .find(|(name, _)| name.get_ref() == key.as_str())
                    .map(|(name, value)| (name.span().start, value)),
                (Step::Index(index), DeValue::Array(array)) => {
                    array.get(*index).map(|value| (value.span().start, value))
                }
                _ => None,
            };
            let Some((start, inner)) = next else { break };
            (at, value) = (start, inner);
        }
        at
    }

    /// The first case of a matrix that has a key or a value here: errors of the parser name no case.
    pub(super) fn generated_at(&self, span: &Range<usize>) -> Option<String> {
        let is_generated =
            |index: usize| self.origins.get(index).is_some_and(|origin| origin.generated.is_some());
        let mut all = self.cases().iter().enumerate().filter(|(index, _)| is_generated(*index));
        all.find(|(_, case)| has_span(case, span)).map(|(index, _)| self.case(index))
    }
}

fn has_span(value: &Spanned<DeValue>, span: &Range<usize>) -> bool {
    value.span() == *span
        || match value.get_ref() {
            DeValue::Array(items) => items.iter().any(|item| has_span(item, span)),
            DeValue::Table(table) => {
                table.iter().any(|(key, value)| key.span() == *span || has_span(value, span))
            }
            _ => false,
        }
}

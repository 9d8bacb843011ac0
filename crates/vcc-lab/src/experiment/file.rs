//! Reads an experiment's file: the fields that every kind has, and those that one kind adds.

use super::Kind;
use super::document::Document;
use super::duration::Duration;
use super::field_names::field_names;
use super::problem::{Problem, field};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};
use vcc_results::report::{Expectation, Headline};

pub struct File<K: Kind> {
    pub header: Header,
    pub tables: K::Tables,
    pub entries: Vec<Entry<K::CaseTable>>,
}

/// The identity of an experiment, and how long and how often it measures.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    pub id: String,
    pub title: String,
    /// The paper's experiment and its measurement.
    pub paper: String,
    /// Differences from the paper.
    #[serde(default)]
    pub scale: Option<String>,
    /// What it shows, in a sentence, and the figure that shows it: for the table of all results.
    #[serde(default)]
    pub claim: Option<String>,
    #[serde(default)]
    pub headline: Option<Headline>,
    pub duration: Duration,
    /// Read as entries, each by its kind.
    #[serde(rename = "cases")]
    _cases: Vec<IgnoredAny>,
}

/// An entry of `[[cases]]`.
pub struct Entry<C> {
    pub name: String,
    pub expect: BTreeMap<String, Expectation>,
    /// What its kind adds.
    pub own: C,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryHeader {
    name: String,
    #[serde(default)]
    expect: BTreeMap<String, Expectation>,
}

impl<K: Kind> File<K> {
    pub fn read(document: &Document) -> Result<Self, Problem> {
        let entries = document.cases().iter().map(entry).collect::<Result<_, _>>()?;
        let (header, tables) = read_both(document.table(), document.span())?;
        Ok(Self { header, tables, entries })
    }
}

fn entry<C: DeserializeOwned>(value: &Spanned<DeValue>) -> Result<Entry<C>, Problem> {
    let DeValue::Table(table) = value.get_ref() else {
        let text = "must be a table with the name of a case".into();
        return Err(Problem::Syntax { span: value.span(), text });
    };
    let (header, own): (EntryHeader, C) = read_both(table, value.span())?;
    Ok(Entry { name: header.name, expect: header.expect, own })
}

/// Reads the fields of a table into the two structs that have them. Each field is of one of them.
fn read_both<A: DeserializeOwned, B: DeserializeOwned>(
    table: &DeTable,
    span: Range<usize>,
) -> Result<(A, B), Problem> {
    let (first, second) = (field_names::<A>(), field_names::<B>());
    let known = [first, second].concat();
    if let Some(key) = table.keys().find(|key| !known.contains(&key.get_ref().as_ref())) {
        let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
        let text =
            format!("unknown field `{}`, expected one of {}", key.get_ref(), known.join(", "));
        return Err(Problem::Syntax { span: key.span(), text });
    }
    let part = |names: &[&str]| {
        let own = table.iter().filter(|(key, _)| names.contains(&key.get_ref().as_ref()));
        let own: DeTable = own.map(|(key, value)| (key.clone(), value.clone())).collect();
        Deserializer::from(Spanned::new(span.clone(), own))
    };
    // B first: a field that A lacks may stand in the wrong table, which then is the better error.
    let own = B::deserialize(part(second))?;
    Ok((A::deserialize(part(first))?, own))
}

impl Header {
    pub fn check(&self) -> Result<(), Problem> {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.id.is_empty() || !self.id.chars().all(is_plain) {
            let text = "an id is made of lower-case letters, digits and hyphens";
            return Err(Problem::new(field!["id"], text));
        }
        self.duration.check()
    }
}

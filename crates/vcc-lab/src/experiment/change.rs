//! A case is its file with a few things changed: its tables are laid over the file's. Every value
//! remembers where it stands in the file, so that an error names that line.

use super::file::Setup;
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeArray, DeString, DeTable, DeValue, Deserializer, Error};

/// The file's tables as one of its cases changes them.
pub(super) fn setup(source: &str, case: usize) -> Result<Setup, Error> {
    let mut document = DeTable::parse(source)?.into_inner();
    let mut change = case_table(&mut document, case);
    let mut setup = DeTable::new();
    for name in ["network", "cores", "receivers", "guests", "flows"] {
        let (base, change) = (take(&mut document, name), take(&mut change, name));
        let (key, value) = match (base, change) {
            (Some((key, mut value)), Some((_, change))) => {
                match value.get_mut() {
                    DeValue::Array(groups) => lay_over_named(groups, change),
                    _ => lay_over(&mut value, change),
                }
                (key, value)
            }
            (Some(entry), None) | (None, Some(entry)) => entry,
            (None, None) => continue,
        };
        setup.insert(key, value);
    }
    Setup::deserialize(Deserializer::from(Spanned::new(0..source.len(), setup)))
}

type Entry<'a> = (Spanned<DeString<'a>>, Spanned<DeValue<'a>>);

fn take<'a>(table: &mut DeTable<'a>, name: &str) -> Option<Entry<'a>> {
    let key = table.keys().find(|key| key.get_ref() == name)?.clone();
    table.remove_entry(&key)
}

fn case_table<'a>(document: &mut DeTable<'a>, case: usize) -> DeTable<'a> {
    let cases = take(document, "cases").map(|(_, cases)| cases.into_inner());
    let Some(DeValue::Array(cases)) = cases else { return DeTable::new() };
    match cases.into_iter().nth(case).map(Spanned::into_inner) {
        Some(DeValue::Table(table)) => table,
        _ => DeTable::new(),
    }
}

/// Tables are laid over tables; anything else takes the place of what was there.
fn lay_over<'a>(base: &mut Spanned<DeValue<'a>>, change: Spanned<DeValue<'a>>) {
    let is_table = matches!(change.get_ref(), DeValue::Table(_));
    match (base.get_mut(), is_table) {
        (DeValue::Table(base), true) => {
            let DeValue::Table(change) = change.into_inner() else { return };
            for (key, value) in change {
                match base.get_mut(&key) {
                    Some(old) => lay_over(old, value),
                    None => drop(base.insert(key, value)),
                }
            }
        }
        _ => *base = change,
    }
}

/// The groups of guests and of flows are lists of tables, changed by their names.
fn lay_over_named<'a>(groups: &mut DeArray<'a>, change: Spanned<DeValue<'a>>) {
    let DeValue::Table(mut changes) = change.into_inner() else { return };
    for group in groups.iter_mut() {
        let DeValue::Table(table) = group.get_ref() else { continue };
        let name = table.iter().find(|(key, _)| key.get_ref() == "name");
        let Some(name) = name.and_then(|(_, value)| value.get_ref().as_str()) else { continue };
        let name = name.to_owned();
        if let Some((_, change)) = take(&mut changes, &name) {
            lay_over(group, change);
        }
    }
}

//! A case is its file with a few things changed: its tables are laid over the file's.

use super::file::Setup;
use crate::experiment::Document;
use crate::experiment::overlay::{Entry, lay_over, take};
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue, Deserializer, Error};

/// The file's tables as one of its cases changes them.
pub(super) fn setup(document: &Document, case: usize) -> Result<Setup, Error> {
    let file = document.table();
    let case = document.cases().get(case).and_then(|case| case.get_ref().as_table());
    let mut setup = DeTable::new();
    for name in ["network", "cores", "receivers", "guests", "flows"] {
        let (base, change) = (entry(file, name), case.and_then(|case| entry(case, name)));
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
    Setup::deserialize(Deserializer::from(Spanned::new(document.span(), setup)))
}

fn entry<'a>(table: &DeTable<'a>, name: &str) -> Option<Entry<'a>> {
    let (key, value) = table.iter().find(|(key, _)| key.get_ref() == name)?;
    Some((key.clone(), value.clone()))
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

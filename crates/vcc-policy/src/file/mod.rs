//! The policy file as it is written: TOML into tables of typed values, each with its place.
//!
//! Values are read one by one instead of by serde, which stops at the first that is wrong.

mod condition_values;
mod number_values;
mod reader;
mod schema;
mod tables;
mod treatment_values;

pub use schema::schema;

pub(crate) use condition_values::{Name, OneOrMany};
pub(crate) use reader::Located;
pub(crate) use tables::{PolicyFile, PoolTable, PortTable, RuleTable, TreatmentKeys};

use crate::problem::Findings;
use toml::de::DeTable;

/// What can be read of the text; what cannot is found wrong.
pub(crate) fn read(text: &str, findings: &mut Findings<'_>) -> PolicyFile {
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let span = error.span().unwrap_or(0..0);
        findings.error(&span, format!("this is not TOML: {}", error.message().trim_end()));
    }
    reader::read_table(document.get_ref(), findings)
}

//! The policy file as it is written: TOML into tables of typed values, each with its place.
//!
//! Values are read one by one instead of by serde, which stops at the first error.

mod bounded_values;
mod condition_values;
mod port_patterns;
mod reader;
mod schema;
mod syntax;
mod tables;
mod treatment_keys;
mod tunnel_values;
mod value_schema;

pub use schema::schema;

pub(crate) use condition_values::{Name, OneOrMany};
pub(crate) use reader::Located;
pub(crate) use tables::{PolicyFile, PoolTable, PortTable, RuleTable};
pub(crate) use treatment_keys::TreatmentKeys;

use crate::problem::Findings;

/// Reads the valid parts of the text and adds the errors to the findings.
pub(crate) fn read(text: &str, findings: &mut Findings<'_>) -> PolicyFile {
    let document = syntax::parse(text, findings);
    reader::read_table(&document, findings)
}

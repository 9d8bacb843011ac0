//! The policy file as it is written: TOML into tables of typed values, each with its place.
//!
//! Values are read one by one instead of by serde, which stops at the first that is wrong.

mod condition_values;
mod number_values;
mod reader;
mod schema;
mod syntax;
mod tables;
mod treatment_values;

pub use schema::schema;

pub(crate) use condition_values::{Name, OneOrMany};
pub(crate) use reader::{Located, Table};
pub(crate) use tables::{PolicyFile, PoolTable, PortTable, RuleTable, TreatmentKeys};

use crate::problem::Findings;

/// What can be read of the text; what cannot is found wrong.
pub(crate) fn read(text: &str, findings: &mut Findings<'_>) -> PolicyFile {
    let document = syntax::parse(text, findings);
    reader::read_table(&document, findings)
}

//! Names of the engine's values.

use thiserror::Error;

/// A name that is none of the known ones.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("unknown {what} '{name}': known are {known}")]
pub struct ParseNameError {
    what: &'static str,
    name: String,
    known: String,
}

impl ParseNameError {
    pub(crate) fn new(what: &'static str, name: &str, known: &[&str]) -> Self {
        ParseNameError { what, name: name.into(), known: known.join(", ") }
    }
}

//! What an experiment's file adds to its records.

use crate::report::Headline;
use crate::result::{Backend, Stack};

/// What the file of an experiment states about its tables.
#[derive(Debug, Clone)]
pub struct Known {
    /// Those of a run without options.
    pub backend: Backend,
    pub stack: Stack,
    /// What it shows, if that is more than its title.
    pub claim: Option<String>,
    pub headline: Option<Headline>,
}

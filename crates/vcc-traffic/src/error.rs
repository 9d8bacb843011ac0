//! Errors, for the person who started the run.

use std::io;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {action}: {source}")]
    System { action: String, source: io::Error },

    #[error("flow {flow}: {problem}")]
    Flow { flow: usize, problem: String },

    #[error("flow {flow}: {end}'s socket failed: {source}")]
    Broken { flow: usize, end: &'static str, source: io::Error },

    #[error("the guest's plan {0}")]
    Plan(String),
}

/// Adds what was being done when a system call failed.
pub trait Doing<T> {
    /// # Errors
    /// Returns the error with the action that failed before it.
    fn doing(self, action: impl FnOnce() -> String) -> Result<T>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, action: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|source| Error::System { action: action(), source })
    }
}

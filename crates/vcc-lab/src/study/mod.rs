//! Experiments from their files to their reports: all else is put together here.

pub mod bench;
mod catalogue;
mod run;
#[cfg(test)]
mod tests;

pub use catalogue::{Experiment, Summary, experiments, load, run};

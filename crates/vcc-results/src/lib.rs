//! Results of the lab's runs: data, measures, verdicts and reports.
//!
//! [`result`] is what a run left, [`measure`] reduces it to numbers and decides whether the run is
//! valid, [`report`] judges the numbers and renders them. Nothing here starts a guest or loads BPF,
//! so results can be read and rendered on any machine.

pub mod digest;
mod error;
pub mod measure;
pub mod report;
pub mod result;

pub use error::{Error, Result};

//! What is measured.

use serde::{Deserialize, Serialize};

/// A number that every run yields.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricSpec {
    pub name: String,
    /// One of the measures that the lab knows.
    pub measure: String,
    pub text: String,
    /// The group of flows that it is about; all bulk flows if left out.
    #[serde(default)]
    pub of: Option<String>,
    /// The group that it is compared with.
    #[serde(default)]
    pub over: Option<String>,
    /// Of gaps between acknowledgements: their least length, and the length that they fall short of.
    #[serde(default)]
    pub gap_from_ms: Option<u32>,
    #[serde(default)]
    pub gap_to_ms: Option<u32>,
    /// Of transfers and messages: larger ones do not count.
    #[serde(default)]
    pub most_bytes: Option<u64>,
    /// The part of the measured time that it is about, from 1 on; all of it if left out.
    #[serde(default)]
    pub phase: Option<u32>,
}

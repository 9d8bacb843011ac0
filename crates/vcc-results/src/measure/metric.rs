//! A metric as an experiment file describes it.

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
    /// For gaps between acknowledgements: the range of their lengths, without the upper bound.
    #[serde(default)]
    pub gap_from_ms: Option<u32>,
    #[serde(default)]
    pub gap_to_ms: Option<u32>,
    /// For transfers and messages: larger ones are left out.
    #[serde(default)]
    pub most_bytes: Option<u64>,
    /// The phase that is measured, from 1 on; all of the measured time if left out.
    #[serde(default)]
    pub phase: Option<u32>,
}

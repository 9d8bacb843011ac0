//! Expected values of a metric.

use serde::{Deserialize, Serialize};

/// The bounds within which a metric must lie for the artefact to be reproduced: its median, and each run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// The paper's own figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// The bounds are for the quotient with the same metric of this case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relative_to: Option<String>,
    /// The paper's own quotient of the two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper_quotient: Option<f64>,
    /// Each run lies within this share of the median: one of ten that stalls changes no median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<f64>,
    /// Other bounds for the modern stack.
    #[serde(default, skip_serializing)]
    pub modern: Option<Bounds>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    #[serde(default)]
    pub min: Option<f64>,
    #[serde(default)]
    pub max: Option<f64>,
}

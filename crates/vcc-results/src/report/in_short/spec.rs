//! The closing sentence as an experiment file describes it.

use serde::Deserialize;

/// For those who read nothing else: a problem, and what became of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InShort {
    pub metric: String,
    /// With `{problem}` and `{cure}` where the two figures go, as percentages.
    pub text: String,
    pub problem: Seen,
    pub cure: Seen,
}

/// A case, and the bounds within which even a single run of it shows what it is there for.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seen {
    pub case: String,
    #[serde(default)]
    pub min: Option<f64>,
    #[serde(default)]
    pub max: Option<f64>,
}

impl Seen {
    pub fn is_shown_by(&self, value: f64) -> bool {
        self.min.is_none_or(|min| value >= min) && self.max.is_none_or(|max| value <= max)
    }
}

//! One rule: what it matches, and what becomes of that.

use std::fmt;

use vcc_engine::Treatment;

use crate::conditions::Conditions;

/// The name by which metrics and messages know what no rule matched.
pub const DEFAULT_RULE_NAME: &str = "default";

#[derive(Clone, Debug)]
pub struct Rule {
    pub(crate) name: String,
    pub(crate) conditions: Conditions,
    pub(crate) treatment: Treatment,
}

impl Rule {
    /// Unique among the policy's rules.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn conditions(&self) -> &Conditions {
        &self.conditions
    }

    pub fn treatment(&self) -> &Treatment {
        &self.treatment
    }
}

/// Its conditions.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.conditions.fmt(f)
    }
}

//! One rule: its conditions, and the treatment of connections that meet them.

use std::fmt;

use crate::conditions::Conditions;
use crate::treatment::Treatment;

/// The name of the default in metrics and messages.
pub const DEFAULT_RULE_NAME: &str = "default";

#[derive(Clone, Debug, PartialEq, Eq)]
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

/// The conditions of a rule.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.conditions.fmt(f)
    }
}

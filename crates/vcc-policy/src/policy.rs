//! A whole policy, checked.

use std::fmt;

use vcc_engine::Mode;

use crate::compile::{self, RuleSet};
use crate::connection::Connection;
use crate::pool::Pool;
use crate::port::PortSelector;
use crate::problem::{Findings, Problem, Problems};
use crate::rule::Rule;
use crate::{check, file};

/// There is at least one rule: the default, which is the last and matches everything.
#[derive(Clone, Debug)]
pub struct Policy {
    pub(crate) ports: Vec<PortSelector>,
    pub(crate) pools: Vec<Pool>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) has_default: bool,
}

/// How many rules there are, as people count them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleCount {
    /// The default not counted.
    pub rules: usize,
    /// Whether somebody wrote one.
    pub has_default: bool,
}

impl fmt::Display for RuleCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.rules == 1 { "" } else { "s" };
        let default = if self.has_default { " and a default" } else { ", no default" };
        write!(f, "{} rule{plural}{default}", self.rules)
    }
}

/// A policy that can be used, and what should be said about it all the same.
#[derive(Clone, Debug)]
pub struct Checked {
    pub policy: Policy,
    pub warnings: Vec<Problem>,
}

impl Policy {
    /// Reads and checks the text of a policy file. All that is wrong is reported at once, under
    /// the file's name.
    pub fn parse(text: &str, file_name: &str) -> Result<Checked, Problems> {
        let mut findings = Findings::of(text);
        let read = file::read(text, &mut findings);
        let policy = check::policy(&read, &mut findings);
        let (errors, problems) = findings.settle(file_name);
        if errors > 0 {
            return Err(Problems { problems, errors });
        }
        Ok(Checked { policy, warnings: problems })
    }

    /// In the file's order, which decides.
    pub fn ports(&self) -> &[PortSelector] {
        &self.ports
    }

    /// The first that matches. A device that none matches is no port.
    pub fn port_of(&self, device: &str) -> Option<&PortSelector> {
        self.ports.iter().find(|port| port.matches(device))
    }

    /// The rules that do not exclude a tenant, as [`crate::Compiled::tenant_set`] has them.
    pub fn tenant_set(&self, tenant: Option<&str>) -> RuleSet {
        compile::rules_for(&self.rules, tenant)
    }

    /// Whether any connection of a tenant's guests may need segments made for it.
    pub fn emits_for(&self, tenant: Option<&str>) -> bool {
        let emits = |rule: &Rule| {
            let treatment = &rule.treatment;
            treatment.emit && treatment.mode == Mode::Enforce
        };
        self.rules.iter().any(|rule| emits(rule) && rule.conditions.admits_tenant(tenant))
    }

    /// In the file's order, which decides; the default is the last.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Whether it says itself what becomes of connections that no rule matches.
    pub fn has_default(&self) -> bool {
        self.has_default
    }

    pub fn count(&self) -> RuleCount {
        RuleCount { rules: self.last(), has_default: self.has_default }
    }

    pub fn pools(&self) -> &[Pool] {
        &self.pools
    }

    /// The index of the first rule that matches: one after the other, for reference.
    pub fn judge(&self, c: &Connection) -> usize {
        self.rules.iter().position(|rule| rule.conditions.admit(c)).unwrap_or(self.last())
    }

    pub(crate) fn last(&self) -> usize {
        self.rules.len() - 1
    }
}

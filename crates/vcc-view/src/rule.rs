//! The rules of the host's policy, and the one that applies to a flow.

use std::sync::Arc;

use vcc_domain::Status;
use vcc_engine::{FlowState, Mode, Params, Underlay, sys};
use vcc_port::{Error, RuleInForce, RuleTotals, Rules, SharedPolicy};

use crate::rates::Counts;
use crate::sums::Sums;

/// Totals of a rule: the kernel's since its edition came into force, or a process's since it began.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Connections under the rule, live ones included.
    pub connections: u64,
    /// Totals of the connections that have ended.
    pub counts: Counts,
}

impl From<RuleTotals> for Totals {
    fn from(totals: RuleTotals) -> Self {
        let RuleTotals { connections, marks, reductions, retransmissions, drops } = totals;
        Self { connections, counts: Counts { marks, reductions, retransmissions, drops } }
    }
}

#[derive(Clone, Debug)]
pub struct RuleView {
    pub name: Arc<str>,
    pub mode: String,
    pub underlay: String,
    /// In the kernel.
    pub ended: Totals,
    /// In processes of `vcc domain`, by their taps; since each process began.
    pub in_domains: Vec<(String, Totals)>,
    /// The connections that came under it: those of the kernel, or since the daemon started.
    pub connections: u64,
    /// Of its connections.
    pub sums: Sums,
}

/// The rule of a flow.
pub struct AppliedRule<'a> {
    pub name: Arc<str>,
    /// Whether the rule is of the edition in force rather than the previous one.
    pub is_current: bool,
    pub params: &'a Params,
}

/// The rules of the edition in force and of the previous one.
#[derive(Default)]
pub struct RulesInForce {
    epoch: u32,
    rules: Rules,
    names: Vec<Arc<str>>,
}

impl RulesInForce {
    /// None: the host has no policy.
    pub fn read(shared: Option<&SharedPolicy>) -> Result<Self, Error> {
        let Some(shared) = shared else { return Ok(Self::default()) };
        let mut epoch = shared.epoch()?;
        let rules = loop {
            let rules = shared.rules()?;
            let epoch_before = std::mem::replace(&mut epoch, shared.epoch()?);
            if epoch == epoch_before {
                break rules;
            }
        };
        Ok(Self::of_rules(epoch, rules))
    }

    /// Those of a port of `vcc domain`, which has them in its own process.
    pub fn of_domain(status: &Status) -> Self {
        let rule = |(rule, _): &(vcc_domain::Rule, _)| RuleInForce {
            name: rule.name.clone(),
            params: rule.params,
        };
        let [in_force, last] =
            [&status.rules, &status.last_rules].map(|rules| rules.iter().map(rule).collect());
        Self::of_rules(status.epoch, Rules::new(status.epoch, in_force, last))
    }

    fn of_rules(epoch: u32, rules: Rules) -> Self {
        let names = rules.in_force().iter().map(|rule| rule.name.as_str().into()).collect();
        Self { epoch, rules, names }
    }

    /// 0: none.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// None if the edition of its rule is gone.
    pub fn rule_of(&self, flow: &FlowState) -> Option<AppliedRule<'_>> {
        let rule = self.rules.rule_for(flow)?;
        let (name, is_current) = match (self.epoch as u8).wrapping_sub(flow.epoch) {
            0 => (self.names.get(usize::from(flow.rule))?.clone(), true),
            1 => (rule.name.as_str().into(), false),
            _ => return None,
        };
        Some(AppliedRule { name, is_current, params: &rule.params })
    }

    /// In the policy's order, the default last. A policy that was applied since has no totals yet.
    pub fn views(&self, shared: Option<&SharedPolicy>) -> Result<Vec<RuleView>, Error> {
        let totals = shared.map_or(Ok(Vec::new()), SharedPolicy::rule_totals)?;
        let totals = totals.into_iter().chain(std::iter::repeat(RuleTotals::default()));
        let rules = self.names.iter().zip(self.rules.in_force()).zip(totals);
        Ok(rules.map(|((name, rule), totals)| view(name, rule, totals)).collect())
    }
}

fn view(name: &Arc<str>, rule: &RuleInForce, totals: RuleTotals) -> RuleView {
    RuleView {
        name: name.clone(),
        mode: mode_name(rule.params.0.mode),
        underlay: underlay_name(rule.params.0.underlay),
        ended: totals.into(),
        in_domains: Vec::new(),
        connections: totals.connections,
        sums: Sums::default(),
    }
}

/// Adds the rules of a port of `vcc domain`. Its connections are those of the rule of that name.
pub(crate) fn add_rules_of_domain(tap: &str, status: &Status, views: &mut Vec<RuleView>) {
    for (rule, totals) in &status.rules {
        let sys::vcc_rule_totals { connections, marks, reductions, retransmissions, drops } =
            *totals;
        let totals = RuleTotals { connections, marks, reductions, retransmissions, drops };
        let found = views.iter().position(|view| *view.name == *rule.name);
        let at = found.unwrap_or_else(|| {
            let name = Arc::from(rule.name.as_str());
            let rule = RuleInForce { name: rule.name.clone(), params: rule.params };
            views.push(view(&name, &rule, RuleTotals::default()));
            views.len() - 1
        });
        views[at].connections += connections;
        views[at].in_domains.push((tap.to_owned(), totals.into()));
    }
}

/// A mode or underlay number that only another version of vcc defines.
const UNKNOWN: &str = "unknown";

pub(crate) fn mode_name(number: u8) -> String {
    Mode::from_number(number).map_or(UNKNOWN.into(), |mode| mode.to_string())
}

pub(crate) fn underlay_name(number: u8) -> String {
    Underlay::from_number(number).map_or(UNKNOWN.into(), |underlay| underlay.to_string())
}

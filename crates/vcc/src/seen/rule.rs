//! One rule of the host's policy, in a person's words.

use vcc_engine::{Mode, Underlay};
use vcc_port::{RuleInForce, RuleTotals, Rules, SharedPolicy};

#[derive(Clone)]
pub struct RuleView {
    pub rule: String,
    pub underlay: String,
    pub mode: String,
    /// That ever came under it, in the edition of the policy that holds.
    pub connections: u64,
}

impl RuleView {
    fn new(rule: &RuleInForce, totals: RuleTotals) -> Self {
        let params = rule.params.0;
        let named = |name: Option<String>, number: u8| name.unwrap_or_else(|| number.to_string());
        let underlay = Underlay::from_number(params.underlay).map(|it| it.to_string());
        let mode = Mode::from_number(params.mode).map(|it| it.to_string());
        Self {
            rule: rule.name.clone(),
            underlay: named(underlay, params.underlay),
            mode: named(mode, params.mode),
            connections: totals.connections,
        }
    }
}

/// The rules, as flows are looked up in them, and as they are shown; none where there is no policy.
pub fn read() -> Result<(Rules, Vec<RuleView>), vcc_port::Error> {
    let Some(policy) = SharedPolicy::find()? else { return Ok(Default::default()) };
    let rules = policy.rules()?;
    let totals = policy.rule_totals()?;
    // A policy that was applied in between has no totals yet.
    let totals = totals.into_iter().chain(std::iter::repeat(RuleTotals::default()));
    let views = rules.in_force().iter().zip(totals).map(|(rule, sums)| RuleView::new(rule, sums));
    let views = views.collect();
    Ok((rules, views))
}

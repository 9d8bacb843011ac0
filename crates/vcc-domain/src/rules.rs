//! How a port treats its connections: all alike, or each by a rule that is chosen at its SYN.

use std::fmt;
use std::sync::Arc;

use vcc_engine::{FlowState, Mode, Params, sys};

use vcc_engine::FlowKey;

/// Finds the rule of a connection; `guest_opened`: the guest opens it. Returns the index of a rule.
pub type Judge = dyn Fn(&FlowKey, bool) -> usize + Send + Sync;

/// A treatment with its name.
#[derive(Clone, Debug)]
pub struct Rule {
    pub name: String,
    pub params: Params,
}

/// What the connections of a rule of this name add up to, those that have ended and the number of
/// all.
pub type RuleTotals = sys::vcc_rule_totals;

/// Rules, and what chooses among them.
#[derive(Clone)]
pub struct Rules {
    /// At least one, and at most as many as a policy has.
    pub rules: Vec<Rule>,
    pub judge: Arc<Judge>,
    /// The names of the pools. A rule's `pool` is an index into them; beyond them, there is none.
    pub pools: Vec<String>,
    /// Does a rule that connections of this port may meet police?
    pub polices: bool,
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rules.fmt(f)
    }
}

/// The rules in force, or those before them, under which handshakes may still be.
#[derive(Clone, Default)]
struct Edition {
    rules: Option<Rules>,
    totals: Vec<RuleTotals>,
}

/// The treatments of a port's connections.
#[derive(Clone)]
pub(crate) struct Treatments {
    /// Of all connections, while there are no rules.
    single: Params,
    /// How often rules came into force.
    epoch: u32,
    editions: [Edition; sys::EDITIONS as usize],
}

impl Treatments {
    pub(crate) fn new(single: Params) -> Self {
        Treatments { single, epoch: 0, editions: Default::default() }
    }

    pub(crate) fn single(&self) -> &Params {
        &self.single
    }

    pub(crate) fn set_single(&mut self, params: Params) {
        self.single = params;
    }

    /// 0: there are no rules.
    pub(crate) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The treatment of a flow.
    pub(crate) fn params_of(&self, flow: &FlowState) -> &Params {
        if self.epoch == 0 {
            return &self.single;
        }
        let rules = &self.edition(flow.epoch).rules;
        let rule = rules.as_ref().and_then(|rules| rules.rules.get(usize::from(flow.rule)));
        rule.map_or(&self.single, |rule| &rule.params)
    }

    /// Puts rules in force. Flows of the edition before the last must be judged now.
    pub(crate) fn apply(&mut self, mut rules: Rules, now_s: u32) {
        for rule in &mut rules.rules {
            let before = self.rules().find(|(before, _)| before.name == rule.name);
            let before = before.filter(|(before, _)| before.params.rejects_unknown());
            let since_s = before.map(|(before, _)| before.params.0.policed_s);
            let policed_s = rule.params.policed_since_s(self.epoch == 0, since_s, now_s);
            rule.params.0.policed_s = policed_s;
        }
        let total = |rule: &Rule| {
            let before = self.rules().find(|(before, _)| before.name == rule.name);
            before.map(|(_, totals)| *totals).unwrap_or_default()
        };
        let totals = rules.rules.iter().map(total).collect();
        self.epoch += 1;
        let at = self.epoch as usize % self.editions.len();
        self.editions[at] = Edition { rules: Some(rules), totals };
    }

    /// The rule of a connection, with its treatment.
    pub(crate) fn judge(&self, key: &FlowKey, guest_opened: bool) -> (usize, &Params) {
        let Some(rules) = &self.in_force().rules else { return (0, &self.single) };
        let rule = (rules.judge)(key, guest_opened);
        debug_assert!(rule < rules.rules.len(), "one of the rules");
        (rule, rules.rules.get(rule).map_or(&self.single, |rule| &rule.params))
    }

    /// Is the flow of an edition that is no longer in force?
    pub(crate) fn is_outdated(&self, flow: &FlowState) -> bool {
        self.epoch != 0 && flow.epoch != self.epoch as u8
    }

    /// Is the flow of the edition before the one in force?
    pub(crate) fn is_of_last(&self, flow: &FlowState) -> bool {
        self.epoch > 1 && flow.epoch == (self.epoch - 1) as u8
    }

    pub(crate) fn come_under(&mut self, flow: &mut FlowState, rule: usize) {
        if self.epoch == 0 {
            return;
        }
        (flow.0.epoch, flow.0.rule) = (self.epoch as u8, rule as u16);
        if let Some(totals) = self.totals_mut(flow) {
            totals.connections += 1;
        }
    }

    /// The flow ends: its counters are its rule's.
    pub(crate) fn leave(&mut self, flow: &FlowState) {
        let FlowState(sys::vcc_flow { marks, reductions, retransmissions, drops, .. }) = *flow;
        if let Some(totals) = self.totals_mut(flow) {
            totals.marks += u64::from(marks);
            totals.reductions += u64::from(reductions);
            totals.retransmissions += u64::from(retransmissions);
            totals.drops += u64::from(drops);
        }
    }

    /// Does any treatment demand this?
    pub(crate) fn any(&self, demands: impl Fn(&Params) -> bool) -> bool {
        match self.epoch {
            0 => demands(&self.single),
            _ => self.rules().any(|(rule, _)| demands(&rule.params)),
        }
    }

    /// Is TCP that cannot be judged to be dropped?
    pub(crate) fn polices(&self) -> bool {
        let changes = [Mode::Enforce, Mode::Drain].map(Mode::number).contains(&self.single.0.mode);
        match &self.in_force().rules {
            Some(rules) => rules.polices,
            None => self.single.0.police != 0 && changes,
        }
    }

    /// The rules in force with their totals.
    pub(crate) fn rules(&self) -> impl Iterator<Item = (&Rule, &RuleTotals)> {
        Self::rules_of(self.in_force())
    }

    /// The rules that were in force before.
    pub(crate) fn last_rules(&self) -> impl Iterator<Item = (&Rule, &RuleTotals)> {
        Self::rules_of(self.edition((self.epoch as u8).wrapping_sub(1)))
    }

    fn rules_of(edition: &Edition) -> impl Iterator<Item = (&Rule, &RuleTotals)> {
        let rules = edition.rules.iter().flat_map(|rules| &rules.rules);
        rules.zip(&edition.totals)
    }

    fn in_force(&self) -> &Edition {
        self.edition(self.epoch as u8)
    }

    fn edition(&self, epoch: u8) -> &Edition {
        &self.editions[usize::from(epoch) % self.editions.len()]
    }

    fn totals_mut(&mut self, flow: &FlowState) -> Option<&mut RuleTotals> {
        let at = usize::from(flow.epoch) % self.editions.len();
        self.editions[at].totals.get_mut(usize::from(flow.rule))
    }
}

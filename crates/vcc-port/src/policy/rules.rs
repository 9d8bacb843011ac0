//! The rules as they lie in the kernel, for whoever looks at flows.

use libbpf_rs::MapCore;
use vcc_engine::{FlowState, Params, sys};

use super::SharedPolicy;
use super::edition::{self, rule_names};
use crate::Result;

/// A rule, as flows are treated by it.
#[derive(Clone)]
pub struct RuleInForce {
    pub name: String,
    pub params: Params,
}

/// The rules of both editions: of the one that holds, and of the one before, under which flows may
/// be of which nothing has passed since.
#[derive(Clone, Default)]
pub struct Rules {
    in_force: usize,
    editions: [Vec<RuleInForce>; sys::EDITIONS as usize],
}

impl Rules {
    /// Of the edition that holds, in their order; the default is the last.
    pub fn in_force(&self) -> &[RuleInForce] {
        &self.editions[self.in_force]
    }

    /// The one by which a flow is treated; None where the policy knows of none, as at a port that
    /// was attached without one.
    pub fn of(&self, flow: &FlowState) -> Option<&RuleInForce> {
        self.editions[flow.epoch as usize % self.editions.len()].get(usize::from(flow.rule))
    }
}

impl SharedPolicy {
    pub fn rules(&self) -> Result<Rules> {
        let in_force = (self.epoch()? % sys::EDITIONS) as usize;
        let mut rules = Rules { in_force, ..Rules::default() };
        for (edition, into) in rules.editions.iter_mut().enumerate() {
            let edition = edition as u32;
            let first = edition * (self.maps.rules.max_entries() / sys::EDITIONS);
            for (name, at) in rule_names(&self.maps, edition)?.into_iter().zip(first..) {
                let params = Params(edition::read(&self.maps.rules, at)?);
                into.push(RuleInForce { name, params });
            }
        }
        Ok(rules)
    }
}

//! The rules as they are stored in the kernel, to interpret flows.

use libbpf_rs::MapCore;
use vcc_engine::{FlowState, Params, sys};

use super::SharedPolicy;
use super::edition::{self, rule_names};
use crate::Result;

/// A rule of an edition in the kernel.
#[derive(Clone)]
pub struct RuleInForce {
    pub name: String,
    pub params: Params,
}

/// The rules of both editions: the one in force, and the previous one, under which flows may still
/// be that have not sent since.
#[derive(Clone, Default)]
pub struct Rules {
    in_force: usize,
    editions: [Vec<RuleInForce>; sys::EDITIONS as usize],
}

impl Rules {
    /// Those of another place than the kernel: the rules of this epoch, and those before them.
    pub fn new(epoch: u32, in_force: Vec<RuleInForce>, last: Vec<RuleInForce>) -> Self {
        let in_force_at = (epoch % sys::EDITIONS) as usize;
        let mut rules = Rules { in_force: in_force_at, ..Rules::default() };
        rules.editions[in_force_at] = in_force;
        rules.editions[(in_force_at + 1) % sys::EDITIONS as usize] = last;
        rules
    }

    /// The rules in force, in order; the default is the last.
    pub fn in_force(&self) -> &[RuleInForce] {
        &self.editions[self.in_force]
    }

    /// The rule of a flow; None if the port was attached without a policy.
    pub fn rule_for(&self, flow: &FlowState) -> Option<&RuleInForce> {
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

//! A policy as tables: bit-vector classification.
//!
//! In each dimension (the port's affiliation, peer, the two ports, role, VLAN) a connection's value leads to the
//! set of the rules that it does not exclude. The intersection of these sets holds the rules that
//! match, and its lowest bit the first of them. The datapath does so once per connection, at its SYN.

mod judge;
mod numbers;
mod prefixes;
mod sets;

use vcc_engine::{Mode, sys};

use crate::MAX_RULES;
use crate::admitted::{port_numbers, vlan_numbers};
use crate::affiliation::Affiliation;
use crate::connection::Role;
use crate::policy::Policy;
use crate::rule::Rule;
use numbers::by_number;
pub use prefixes::Prefix;
use sets::Sets;

/// One bit per rule: rule i is bit i % 64 of word i / 64.
pub type RuleSet = [u64; MAX_RULES / 64];

#[derive(Clone, Debug)]
pub struct Compiled {
    /// All different; the tables below hold indices into it.
    pub sets: Vec<RuleSet>,
    /// The peer's networks, in ascending order; the longest match counts. A set holds all rules
    /// that admit the network: shorter networks around it need not be looked up.
    pub prefixes: Vec<Prefix>,
    /// For a peer in none of these networks.
    pub prefix_default: u32,
    /// By TCP port, 65,536 of them: as the guest's port, as the peer's.
    pub port_numbers: Vec<[u32; 2]>,
    /// By VLAN, 4,096 of them; 0 is untagged.
    pub vlans: Vec<u32>,
    /// The guest as client, as server.
    pub roles: [u32; 2],
    /// The rules that police.
    pub polices: u32,
    /// The tenants and the classes that each rule admits.
    ports: Vec<[Option<Vec<String>>; 2]>,
}

const PORT_NUMBERS: usize = sys::PORT_NUMBERS as usize;
const VLANS: usize = sys::VLAN_IDS as usize;

impl Policy {
    /// The rules that do not exclude a port, as [`Compiled::port_set`] has them.
    pub fn port_set(&self, port: Affiliation<'_>) -> RuleSet {
        sets::of_rules(&self.rules, |rule| rule.conditions.admits_port_of(port))
    }

    pub fn compile(&self) -> Compiled {
        let rules = &self.rules;
        let mut sets = Sets::default();
        let guest_ports =
            by_number(PORT_NUMBERS, rules, |r| port_numbers(&r.conditions.guest_ports), &mut sets);
        let peer_ports =
            by_number(PORT_NUMBERS, rules, |r| port_numbers(&r.conditions.peer_ports), &mut sets);
        let vlans = by_number(VLANS, rules, |r| vlan_numbers(&r.conditions.vlans), &mut sets);
        let roles = [Role::Client, Role::Server].map(|role| {
            let admits = |rule: &Rule| rule.conditions.role.is_none_or(|wanted| wanted == role);
            sets.index_of(sets::of_rules(rules, admits))
        });
        let polices = sets.index_of(sets::of_rules(rules, polices));
        let (prefixes, prefix_default) = prefixes::of_rules(rules, &mut sets);
        Compiled {
            sets: sets.into_vec(),
            prefixes,
            prefix_default,
            port_numbers: guest_ports.into_iter().zip(peer_ports).map(|(g, p)| [g, p]).collect(),
            vlans,
            roles,
            polices,
            ports: rules
                .iter()
                .map(|Rule { conditions: it, .. }| [it.tenants.clone(), it.classes.clone()])
                .collect(),
        }
    }
}

fn polices(rule: &Rule) -> bool {
    rule.treatment.params.0.police != 0
        && matches!(rule.treatment.mode(), Mode::Enforce | Mode::Drain)
}

//! All that is known of the ports at one moment, for who shows it.
//!
//! It is read from what is pinned, so that any process that may do so, and any thread, can take one
//! without stopping the daemon.

use vcc_policy::MAX_RULES;
use vcc_port::{Counters, Flow, PoolUse, Port, RuleTotals, SharedPolicy};

#[derive(Clone)]
pub struct Snapshot {
    /// Of the policy in force; 0: there is none.
    pub epoch: u32,
    pub ports: Vec<PortSnapshot>,
    /// In the policy's order, the default last.
    pub rules: Vec<RuleSnapshot>,
    pub pools: Vec<PoolSnapshot>,
}

#[derive(Clone)]
pub struct PortSnapshot {
    pub device: String,
    /// None: attached by hand, and under no policy.
    pub index: Option<u32>,
    pub max_flows: u32,
    pub counters: Counters,
    pub flows: Vec<Flow>,
}

#[derive(Clone)]
pub struct RuleSnapshot {
    pub name: String,
    pub totals: RuleTotals,
    /// Its connections at this moment.
    pub live: u32,
}

pub type PoolSnapshot = PoolUse;

impl Snapshot {
    /// Ports that vanish meanwhile, or that another version of vcc pinned, are not in it.
    pub fn take() -> vcc_port::Result<Self> {
        let shared = SharedPolicy::find()?;
        let ports: Vec<PortSnapshot> =
            Port::list()?.iter().filter_map(|port| PortSnapshot::of(port).ok()).collect();
        let Some(shared) = shared else {
            return Ok(Self { epoch: 0, ports, rules: Vec::new(), pools: Vec::new() });
        };
        let epoch = shared.epoch()?;
        let mut live = [0; MAX_RULES];
        for port in ports.iter().filter(|port| port.index.is_some()) {
            // A flow remembers the lowest bits of the epoch of its rule.
            let current = port.flows.iter().filter(|flow| flow.state.epoch == epoch as u8);
            for flow in current {
                live[usize::from(flow.state.rule) % MAX_RULES] += 1;
            }
        }
        let names = shared.rule_names(epoch)?;
        let rules = names.into_iter().zip(shared.rule_totals()?).zip(live);
        let rules = rules.map(|((name, totals), live)| RuleSnapshot { name, totals, live });
        Ok(Self { epoch, ports, rules: rules.collect(), pools: shared.pools()? })
    }
}

impl PortSnapshot {
    fn of(port: &Port) -> vcc_port::Result<Self> {
        Ok(Self {
            device: port.device().to_owned(),
            index: port.index()?,
            max_flows: port.max_flows()?,
            counters: port.counters()?,
            flows: port.flows()?,
        })
    }
}

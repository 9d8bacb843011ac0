//! A snapshot of what the kernel keeps.

mod flow;

use std::sync::Arc;
use std::time::SystemTime;

use vcc_engine::{FlowState, Mode, Underlay};
use vcc_policy::Policy;
use vcc_port::{Error, RuleInForce, RuleTotals, Rules, SharedPolicy};

use crate::Snapshot;
use crate::snapshot::{self, Counter, Counts, Daemon, Pool, Port, Rule, Totals};

/// So often is it read again if another edition comes into force meanwhile.
const TRIES: usize = 3;

/// Reads the ports, and the policy that they share. `policy` is what was applied to it last. A port
/// that cannot be read is in the snapshot with the reason, and costs the others nothing.
pub fn collect(
    shared: Option<&SharedPolicy>,
    ports: &[vcc_port::Port],
    policy: Option<&Policy>,
    daemon: Daemon,
) -> Result<Snapshot, Error> {
    let mut tries = 0;
    loop {
        let epoch = shared.map_or(Ok(0), SharedPolicy::epoch)?;
        let editions = Editions::read(shared, epoch)?;
        // Before the flows: what ends in between is missed for a moment instead of counted twice.
        let rules = editions.rules(shared)?;
        let pools = pools(shared, policy)?;
        let mut flows = Vec::new();
        let ports = ports
            .iter()
            .enumerate()
            .map(|(at, port)| read_port(port, at, policy, &editions, &mut flows))
            .collect();
        tries += 1;
        if tries == TRIES || shared.map_or(Ok(0), SharedPolicy::epoch)? == epoch {
            let at = SystemTime::now();
            return Ok(Snapshot { at, daemon, epoch, ports, rules, pools, flows });
        }
    }
}

/// The rules of the edition that holds, and of the one before.
struct Editions {
    epoch: u32,
    rules: Rules,
    names: Vec<Arc<str>>,
}

impl Editions {
    fn read(shared: Option<&SharedPolicy>, epoch: u32) -> Result<Self, Error> {
        let rules = shared.map_or(Ok(Rules::default()), SharedPolicy::rules)?;
        let names = rules.in_force().iter().map(|rule| rule.name.as_str().into()).collect();
        Ok(Self { epoch, rules, names })
    }

    /// The name of a flow's rule, and whether that is of the edition that holds.
    fn rule_of(&self, flow: &FlowState) -> (Option<Arc<str>>, bool) {
        match (self.epoch as u8).wrapping_sub(flow.epoch) {
            0 => (self.names.get(usize::from(flow.rule)).cloned(), true),
            1 => (self.rules.of(flow).map(|rule| rule.name.as_str().into()), false),
            _ => (None, false),
        }
    }

    fn rules(&self, shared: Option<&SharedPolicy>) -> Result<Vec<Rule>, Error> {
        let totals = shared.map_or(Ok(Vec::new()), SharedPolicy::rule_totals)?;
        let rules = self.names.iter().zip(self.rules.in_force()).zip(totals);
        let view = |((name, rule), totals): ((&Arc<str>, &RuleInForce), RuleTotals)| {
            let params = &rule.params.0;
            let (mode, underlay) =
                (Mode::from_number(params.mode), Underlay::from_number(params.underlay));
            let unknown = || "unknown".to_owned();
            Rule {
                name: name.clone(),
                mode: mode.map_or_else(unknown, |mode| mode.to_string()),
                underlay: underlay.map_or_else(unknown, |underlay| underlay.to_string()),
                ended: totals_of(totals),
            }
        };
        Ok(rules.map(view).collect())
    }
}

fn totals_of(totals: RuleTotals) -> Totals {
    let RuleTotals { connections, marks, reductions, retransmissions, drops } = totals;
    Totals { connections, counts: Counts { marks, reductions, retransmissions, drops } }
}

fn pools(shared: Option<&SharedPolicy>, policy: Option<&Policy>) -> Result<Vec<Pool>, Error> {
    let declared = policy.map(Policy::pools).unwrap_or_default();
    // Not by the beginning of a name, which may be the whole of another's.
    let window_of =
        |name: &str| declared.iter().find(|pool| pool.name == name).map(|pool| pool.window_bytes);
    let used = shared.map_or(Ok(Vec::new()), SharedPolicy::pools)?;
    let pools = used.into_iter().map(|used| Pool {
        window_bytes: window_of(&used.name),
        name: used.name,
        held_bytes: used.held_bytes,
        idle_bytes: used.idle_bytes,
        weight: used.weight,
        most_held_bytes: used.most_held_bytes,
        overdrawn: used.overdrawn,
    });
    // A pool of an edition before, of which nobody holds anything, is nobody's business.
    Ok(pools
        .filter(|pool| pool.window_bytes.is_some() || pool.held_bytes + pool.idle_bytes > 0)
        .collect())
}

fn read_port(
    port: &vcc_port::Port,
    at: usize,
    policy: Option<&Policy>,
    editions: &Editions,
    flows: &mut Vec<snapshot::Flow>,
) -> Port {
    let selector = policy.and_then(|policy| policy.port_of(port.device()));
    let mut view = Port {
        device: port.device().to_owned(),
        tenant: selector.and_then(|selector| selector.tenant()).map(Into::into),
        index: None,
        max_flows: 0,
        counters: Vec::new(),
        failure: None,
    };
    let first = flows.len();
    if let Err(error) = fill(&mut view, port, at, editions, flows) {
        flows.truncate(first);
        view.counters.clear();
        view.failure = Some(error.to_string());
    }
    view
}

fn fill(
    view: &mut Port,
    port: &vcc_port::Port,
    at: usize,
    editions: &Editions,
    flows: &mut Vec<snapshot::Flow>,
) -> Result<(), Error> {
    view.index = port.index()?;
    view.max_flows = port.max_flows()?;
    let counters = port.counters()?;
    view.counters = counters
        .iter()
        .map(|(counter, value)| Counter { name: counter.name, meaning: counter.meaning, value })
        .collect();
    for flow in port.flows()? {
        let (rule, is_current) = match view.index {
            Some(_) => editions.rule_of(&flow.state),
            None => (None, false),
        };
        flows.push(flow::view(&flow, at, rule, is_current));
    }
    Ok(())
}

//! The rules of a policy for a port in user space.

use std::sync::Arc;

use vcc_domain::{Rule, Rules};
use vcc_engine::FlowKey;
use vcc_policy::{Affiliation, Connection, Policy, Role};

/// As they apply to a port of this affiliation.
pub fn rules_of(policy: &Policy, port: Affiliation<'_>) -> Rules {
    let rule = |rule: &vcc_policy::Rule| {
        let treatment = rule.treatment();
        let mut params = treatment.params;
        if let Some(pool) = treatment.pool {
            (params.0.pool, params.0.pool_weight) = (pool as u16, treatment.weight);
            params.0.pool_bytes = policy.pools()[pool].window_bytes;
        }
        Rule { name: rule.name().to_owned(), params }
    };
    let tables = policy.compile();
    let of_port = tables.port_set(port);
    let judge = move |key: &FlowKey, guest_opened: bool| {
        let role = if guest_opened { Role::Client } else { Role::Server };
        let (guest, peer, vlan) = (key.guest(), key.peer(), key.vlan());
        let connection = Connection { tenant: None, class: None, guest, peer, vlan, role };
        tables.judge(&of_port, &connection)
    };
    Rules {
        rules: policy.rules().iter().map(rule).collect(),
        judge: Arc::new(judge),
        pools: policy.pools().iter().map(|pool| pool.name.clone()).collect(),
        polices: policy.polices_for(port),
    }
}

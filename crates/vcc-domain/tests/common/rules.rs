//! Rules of a policy.

use std::sync::Arc;

use vcc_domain::{Rule, Rules};
use vcc_engine::{FlowKey, Params};

pub const POOLS: [&str; 2] = ["first", "second"];

/// Connections have them by turns, by the guest's port. Their `pool` is one of [`POOLS`].
pub fn by_guest_port(params: &[Params]) -> Rules {
    let count = params.len();
    let rule =
        |(place, params): (usize, &Params)| Rule { name: place.to_string(), params: *params };
    Rules {
        rules: params.iter().enumerate().map(rule).collect(),
        judge: Arc::new(move |key: &FlowKey, _| usize::from(key.guest().port()) % count),
        pools: POOLS.map(str::to_owned).to_vec(),
        polices: false,
    }
}

//! Pools of an experiment: a policy with a rule for each host that has a part in one.

use crate::scenario::PoolShare;
use std::collections::BTreeMap;
use std::fmt::Write;
use vcc_fabric::HostId;
use vcc_policy::{Affiliation, Policy};
use vcc_port::{PoolUse, SharedPolicy};
use vcc_results::result::PoolSeen;

/// The policy that puts hosts into pools; their numbers are those of its ports.
pub struct Pools {
    pub shared: SharedPolicy,
    windows: BTreeMap<String, u32>,
}

impl Pools {
    /// `parts` are hosts with their share and their underlay.
    pub fn create(parts: &[(HostId, &PoolShare, &str)]) -> Result<Self, String> {
        let windows: BTreeMap<String, u32> =
            parts.iter().map(|(_, part, _)| (part.pool.clone(), part.window_bytes)).collect();
        let text = policy(parts, &windows);
        let policy = Policy::parse(&text, "the pools' policy").map_err(|e| e.to_string())?.policy;
        let shared = SharedPolicy::unpinned().map_err(|e| e.to_string())?;
        let tenants: Vec<(u32, String)> =
            parts.iter().map(|(host, ..)| (*host as u32, tenant(*host))).collect();
        let ports: Vec<(u32, Affiliation<'_>)> =
            tenants.iter().map(|(port, tenant)| (*port, Some(tenant.as_str()).into())).collect();
        shared.apply(&policy, &ports).map_err(|e| e.to_string())?;
        Ok(Self { shared, windows })
    }

    pub fn seen(&self) -> Result<Vec<PoolSeen>, String> {
        let used = self.shared.pools().map_err(|e| e.to_string())?;
        let seen = |used: PoolUse| {
            let window_bytes = *self.windows.get(&used.name)?;
            let PoolUse { most_held_bytes, overdrawn, .. } = used;
            Some(PoolSeen { window_bytes, most_held_bytes, overdrawn })
        };
        Ok(used.into_iter().filter_map(seen).collect())
    }
}

fn tenant(host: HostId) -> String {
    format!("host-{host}")
}

fn policy(parts: &[(HostId, &PoolShare, &str)], windows: &BTreeMap<String, u32>) -> String {
    let mut text = String::new();
    for (name, bytes) in windows {
        let _ = writeln!(text, "[[pools]]\nname = \"{name}\"\nwindow = \"{bytes}\"");
    }
    for (host, part, underlay) in parts {
        let (tenant, PoolShare { pool, weight, .. }) = (tenant(*host), part);
        let _ = writeln!(
            text,
            "[[ports]]\ndevice = \"{tenant}\"\ntenant = \"{tenant}\"\n\
             [[rules]]\nname = \"{tenant}\"\ntenant = \"{tenant}\"\nunderlay = \"{underlay}\"\n\
             pool = \"{pool}\"\nweight = {weight}"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_under_the_rule_of_its_part() {
        let part = |weight| PoolShare { pool: "p".into(), window_bytes: 200_000, weight };
        let (one, three) = (part(1), part(3));
        let parts = [(0, &one, "cubic"), (7, &three, "reno-ecn")];
        let windows = [("p".to_owned(), 200_000)].into();
        let checked = Policy::parse(&policy(&parts, &windows), "it").unwrap();
        // Guests of an experiment have the ECN that it gives them.
        let others = checked.warnings.iter().filter(|it| !it.message.contains("negotiates ECN"));
        assert_eq!(others.count(), 0, "{:?}", checked.warnings);
        let rules = checked.policy.rules();
        let share = |rule: usize| rules[rule].treatment().weight;
        assert_eq!((share(0), share(1)), (1, 3));
        assert_eq!(rules[1].treatment().underlay().name(), "reno-ecn");
        assert_eq!(checked.policy.pools()[0].window_bytes, 200_000);
    }
}

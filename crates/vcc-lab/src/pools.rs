//! Pools of an experiment: a policy with a rule for each host that has a part in one.

use crate::experiment::{Bytes, PoolWeight};
use crate::fabric::HostId;
use std::collections::BTreeMap;
use std::fmt::Write;
use vcc_policy::Policy;
use vcc_port::{PoolUse, SharedPolicy};

/// A host's part in a pool.
#[derive(Debug, Clone)]
pub struct Part {
    pub pool: String,
    pub window_bytes: u32,
    pub weight: u16,
}

impl Part {
    /// None where it has none.
    pub fn new(
        pool: Option<&String>,
        weight: Option<PoolWeight>,
        pools: &BTreeMap<String, Bytes>,
    ) -> Result<Option<Self>, (&'static str, String)> {
        let Some(pool) = pool else {
            return match weight {
                Some(_) => Err(("weight", "is that of a flow in a 'pool'".into())),
                None => Ok(None),
            };
        };
        let Some(window) = pools.get(pool) else {
            let known: Vec<&str> = pools.keys().map(String::as_str).collect();
            return Err(("pool", format!("there is no pool '{pool}': there are {known:?}")));
        };
        let weight = weight.map_or(1, PoolWeight::get);
        Ok(Some(Self { pool: pool.clone(), window_bytes: window.get(), weight }))
    }
}

/// A pool after a run.
pub struct PoolSeen {
    pub window_bytes: u32,
    pub used: PoolUse,
}

/// The policy that puts hosts into pools; their numbers are those of its ports.
pub(crate) struct Pools {
    pub shared: SharedPolicy,
    windows: BTreeMap<String, u32>,
}

impl Pools {
    /// Of each host, its part and its underlay.
    pub fn create(parts: &[(HostId, &Part, &str)]) -> Result<Self, String> {
        let windows: BTreeMap<String, u32> =
            parts.iter().map(|(_, part, _)| (part.pool.clone(), part.window_bytes)).collect();
        let text = policy(parts, &windows);
        let policy = Policy::parse(&text, "the pools' policy").map_err(|e| e.to_string())?.policy;
        let shared = SharedPolicy::unpinned().map_err(|e| e.to_string())?;
        let tenants: Vec<(u32, String)> =
            parts.iter().map(|(host, ..)| (*host as u32, tenant(*host))).collect();
        let tenants: Vec<(u32, Option<&str>)> =
            tenants.iter().map(|(port, tenant)| (*port, Some(tenant.as_str()))).collect();
        shared.apply(&policy, &tenants).map_err(|e| e.to_string())?;
        Ok(Self { shared, windows })
    }

    pub fn seen(&self) -> Result<Vec<PoolSeen>, String> {
        let used = self.shared.pools().map_err(|e| e.to_string())?;
        let seen = |used: PoolUse| {
            let window_bytes = *self.windows.get(&used.name)?;
            Some(PoolSeen { window_bytes, used })
        };
        Ok(used.into_iter().filter_map(seen).collect())
    }
}

fn tenant(host: HostId) -> String {
    format!("host-{host}")
}

fn policy(parts: &[(HostId, &Part, &str)], windows: &BTreeMap<String, u32>) -> String {
    let mut text = String::new();
    for (name, bytes) in windows {
        let _ = writeln!(text, "[[pools]]\nname = \"{name}\"\nwindow = \"{bytes}\"");
    }
    for (host, part, underlay) in parts {
        let (tenant, Part { pool, weight, .. }) = (tenant(*host), part);
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
        let part = |weight| Part { pool: "p".into(), window_bytes: 200_000, weight };
        let (one, three) = (part(1), part(3));
        let parts = [(0, &one, "cubic"), (7, &three, "reno-ecn")];
        let windows = [("p".to_owned(), 200_000)].into();
        let checked = Policy::parse(&policy(&parts, &windows), "it").unwrap();
        assert!(checked.warnings.is_empty(), "{:?}", checked.warnings);
        let rules = checked.policy.rules();
        let share = |rule: usize| rules[rule].treatment().pool.expect("a share").weight;
        assert_eq!((share(0), share(1)), (1, 3));
        assert_eq!(rules[1].treatment().underlay.name(), "reno-ecn");
        assert_eq!(checked.policy.pools()[0].window_bytes, 200_000);
    }

    #[test]
    fn what_does_not_fit_is_refused_by_its_field() {
        let pools = BTreeMap::new();
        assert_eq!(Part::new(Some(&"p".into()), None, &pools).unwrap_err().0, "pool");
        assert!(Part::new(None, None, &pools).unwrap().is_none());
    }
}

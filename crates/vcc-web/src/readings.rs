//! What the server reads, for others in its process.

use std::collections::HashMap;
use std::sync::Arc;

use crate::cache::Cache;
use crate::quantile::quantiles;

/// The readings of a server. Readings are taken as long as it runs.
#[derive(Clone)]
pub struct Readings(Arc<Cache>);

/// A rule, and its connections since the server started.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleReading {
    pub name: Arc<str>,
    /// Live ones.
    pub flows: u64,
    pub retransmissions: u64,
    pub acked_bytes: u64,
    /// The median of its established connections; None without any.
    pub srtt_us: Option<f64>,
}

impl Readings {
    pub(crate) fn new(cache: Arc<Cache>) -> Self {
        Self(cache)
    }

    /// As of the last reading that succeeded; empty before the first.
    pub fn rules(&self) -> Vec<RuleReading> {
        let Some(taken) = self.0.latest() else { return Vec::new() };
        let snapshot = &taken.snapshot;
        let mut srtts: HashMap<&str, Vec<f64>> = HashMap::new();
        for flow in &snapshot.flows {
            if let (Some(rule), Some(srtt_us)) = (&flow.rule, flow.state.srtt_us()) {
                srtts.entry(rule).or_default().push(f64::from(srtt_us));
            }
        }
        let rules = snapshot.rules.iter().map(|rule| {
            let growth = rule.sums.growth.unwrap_or_default();
            let srtts = srtts.remove(&*rule.name).unwrap_or_default();
            RuleReading {
                name: rule.name.clone(),
                flows: rule.sums.flows,
                retransmissions: growth.counts.retransmissions,
                acked_bytes: growth.acked_bytes,
                srtt_us: quantiles(srtts, [0.5]).map(|[median]| median),
            }
        });
        rules.collect()
    }
}

//! Everything except the flows.

use std::collections::BTreeMap;

use serde::Serialize;
use vcc_engine::Stage;
use vcc_view::Counter;

use crate::cache::Taken;
use crate::health::Health;
use crate::history::Level;
use crate::snapshot::{Pool, Problem};
use crate::time::unix_ms;

#[derive(Serialize)]
pub struct SnapshotView<'a> {
    at_unix_ms: u64,
    version: &'a str,
    uptime_s: f64,
    epoch: u32,
    problems: Vec<Problem>,
    events: Vec<EventView<'a>>,
    stages: BTreeMap<&'static str, usize>,
    all: Level,
    ports: Vec<PortView<'a>>,
    rules: Vec<RuleView<'a>>,
    pools: &'a [Pool],
}

#[derive(Serialize)]
struct EventView<'a> {
    at_unix_ms: u64,
    what: &'a str,
}

#[derive(Serialize)]
struct PortView<'a> {
    port: &'a str,
    tenant: Option<&'a str>,
    index: Option<u32>,
    max_flows: u32,
    failure: Option<&'a str>,
    /// Those above zero.
    counters: Vec<&'a Counter>,
    #[serde(flatten)]
    level: Level,
}

#[derive(Serialize)]
struct RuleView<'a> {
    name: &'a str,
    mode: &'a str,
    underlay: &'a str,
    connections: u64,
    #[serde(flatten)]
    level: Level,
}

impl<'a> SnapshotView<'a> {
    pub fn of(taken: &'a Taken, health: Health) -> Self {
        let snapshot = &taken.snapshot;
        let daemon = &snapshot.daemon;
        let mut stages: BTreeMap<_, _> = Stage::ALL.map(|stage| (stage.name(), 0)).into();
        for flow in &snapshot.flows {
            *stages.entry(flow.state.stage().name()).or_default() += 1;
        }
        let ports = snapshot.ports.iter().zip(&taken.levels.ports).map(|(port, level)| PortView {
            port: &port.port,
            tenant: port.tenant.as_deref(),
            index: port.index,
            max_flows: port.max_flows,
            failure: port.failure.as_deref(),
            counters: port.counters.iter().filter(|counter| counter.value > 0).collect(),
            level: *level,
        });
        let totals = taken.levels.rules.iter().zip(&taken.activity.rules);
        let rules = snapshot.rules.iter().zip(totals).map(|(rule, (level, totals))| RuleView {
            name: &rule.name,
            mode: &rule.mode,
            underlay: &rule.underlay,
            connections: totals.connections,
            level: *level,
        });
        Self {
            at_unix_ms: unix_ms(snapshot.at),
            version: &daemon.version,
            uptime_s: daemon.uptime.as_secs_f64(),
            epoch: snapshot.epoch,
            problems: health.problems,
            events: daemon
                .events
                .iter()
                .map(|event| EventView { at_unix_ms: unix_ms(event.at), what: &event.what })
                .collect(),
            stages,
            all: taken.levels.all,
            ports: ports.collect(),
            rules: rules.collect(),
            pools: &snapshot.pools,
        }
    }
}

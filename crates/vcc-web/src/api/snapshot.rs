//! Everything except the flows.

use std::collections::BTreeMap;

use serde::Serialize;
use vcc_engine::Stage;
use vcc_view::histogram::DelaysView;
use vcc_view::{Counter, PortView, RuleView, Sums, compare_names};

use crate::cache::Taken;
use crate::health::Health;
use crate::history::Point;
use crate::snapshot::{Pool, Problem};
use crate::time::unix_ms;
use crate::trial::TrialView;

#[derive(Serialize)]
pub struct SnapshotView<'a> {
    at_unix_ms: u64,
    version: &'a str,
    uptime_s: f64,
    epoch: u32,
    problems: Vec<Problem>,
    warnings: &'a [Problem],
    events: Vec<EventView<'a>>,
    stages: BTreeMap<&'static str, usize>,
    all: Sums,
    /// By name: `tap2` is before `tap10`.
    ports: Vec<Port<'a>>,
    rules: &'a [RuleView],
    pools: &'a [Pool],
    /// The kernel's memory of the tables of all ports; None without a port there.
    tables_bytes: Option<u64>,
    /// None if no connection was in shadow mode.
    trial: Option<&'a TrialView>,
    /// For the page's charts, as those of `/api/history.json`.
    point: Point,
}

#[derive(Serialize)]
struct EventView<'a> {
    at_unix_ms: u64,
    what: &'a str,
}

#[derive(Serialize)]
struct Port<'a> {
    #[serde(flatten)]
    port: &'a PortView,
    /// Those above zero.
    counters: Vec<&'a Counter>,
    delays: Option<DelaysView>,
}

impl<'a> SnapshotView<'a> {
    pub fn new(taken: &'a Taken, health: Health) -> Self {
        let snapshot = &taken.snapshot;
        let daemon = &snapshot.daemon;
        let mut stages: BTreeMap<_, _> = Stage::ALL.map(|stage| (stage.name(), 0)).into();
        for flow in &snapshot.flows {
            *stages.entry(flow.state.stage().name()).or_default() += 1;
        }
        let ports = snapshot.ports.iter().map(|port| Port {
            port,
            counters: port.counters.iter().filter(|counter| counter.value > 0).collect(),
            delays: port.delays.as_ref().map(DelaysView::from),
        });
        let mut ports: Vec<Port> = ports.collect();
        ports.sort_by(|one, other| compare_names(&one.port.port, &other.port.port));
        Self {
            at_unix_ms: unix_ms(snapshot.at),
            version: &daemon.version,
            uptime_s: daemon.uptime.as_secs_f64(),
            epoch: snapshot.epoch,
            problems: health.problems,
            warnings: &daemon.warnings,
            events: daemon
                .events
                .iter()
                .map(|event| EventView { at_unix_ms: unix_ms(event.at), what: &event.what })
                .collect(),
            stages,
            all: taken.activity.all,
            ports,
            rules: &snapshot.rules,
            pools: &snapshot.pools,
            tables_bytes: snapshot.tables_bytes,
            trial: taken.trial.as_deref(),
            point: Point::from_snapshot(snapshot, taken.activity.all),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::Value;

    use super::*;
    use crate::Source;
    use crate::cache::tests::taken;
    use crate::testing::Fake;

    #[test]
    fn ports_are_ordered_as_people_count() {
        let taken = taken([Fake::sized(12, 0).snapshot().expect("a snapshot")]);
        assert_eq!(taken.snapshot.ports[1].port, "tap10");
        let taken = Ok(Arc::new(taken));
        let health = Health::from_reading(&taken);
        let view = SnapshotView::new(taken.as_ref().expect("a reading"), health);
        let view = serde_json::to_value(view).expect("JSON");
        let ports = view["ports"].as_array().expect("ports").iter().map(|port| &port["port"]);
        let expected: Vec<Value> = (1..=12).map(|at| format!("tap{at}").into()).collect();
        assert!(ports.eq(&expected), "{view}");
    }
}

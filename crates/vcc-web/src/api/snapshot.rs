//! Everything except the flows.

use std::collections::BTreeMap;

use serde::Serialize;
use vcc_engine::Stage;
use vcc_view::histogram::DelaysView;
use vcc_view::{Counter, PortView, RuleView, Sums};

use crate::cache::Taken;
use crate::health::Health;
use crate::history::Point;
use crate::snapshot::{Pool, Problem};
use crate::time::unix_ms;

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
    ports: Vec<Port<'a>>,
    rules: &'a [RuleView],
    pools: &'a [Pool],
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
            ports: ports.collect(),
            rules: &snapshot.rules,
            pools: &snapshot.pools,
            point: Point::from_snapshot(snapshot, taken.activity.all),
        }
    }
}

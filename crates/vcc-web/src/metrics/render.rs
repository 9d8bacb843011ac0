//! From a snapshot to text.

use std::collections::{HashMap, HashSet};
use std::time::UNIX_EPOCH;

use vcc_engine::{Delays, Histogram, Stage};
use vcc_port::RunTime;
use vcc_view::trial::Sums;
use vcc_view::{Counts, FlowView, PortView, RuleView};

use super::Metric;
use super::definitions as m;
use super::text::{Text, Zeros};
use crate::cache::{Failure, Taken};
use crate::health::Health;
use crate::quantile::quantiles;
use crate::snapshot::Pool;
use crate::tally::Tally;

pub use super::text::CONTENT_TYPE;

const SHARES: [f64; 3] = [0.5, 0.9, 0.99];
const SHARE_NAMES: [&str; 3] = ["0.5", "0.9", "0.99"];

/// A metric, and its value of a `T`.
type Column<T> = (&'static Metric, fn(&T) -> u64);

pub fn render(
    taken: &Result<std::sync::Arc<Taken>, Failure>,
    failures: u64,
    tally: &Tally,
    zeros: Zeros,
) -> String {
    let mut text = Text::new(zeros);
    text.one(&m::PROBLEMS, Health::from_reading(taken).problems.len() as f64);
    if let Ok(taken) = taken {
        daemon(&mut text, taken);
        ports(&mut text, taken);
        trial(&mut text, taken);
        rules(&mut text, taken);
        pools(&mut text, &taken.snapshot.pools);
        text.one(&m::SNAPSHOT_DURATION, taken.took.as_secs_f64());
        text.one(&m::SNAPSHOT_AGE, taken.at.elapsed().as_secs_f64());
    }
    text.one(&m::SNAPSHOT_OK, if taken.is_ok() { 1.0 } else { 0.0 });
    text.one(&m::SNAPSHOT_FAILURES, failures as f64);
    text.one(&m::WEB_REQUESTS, tally.answered() as f64);
    text.family(&m::WEB_REFUSED, |samples| {
        for (reason, count) in tally.refused() {
            samples.add([reason], count as f64);
        }
    });
    text.one(&m::WEB_CONNECTIONS, tally.connections() as f64);
    text.finish()
}

fn daemon(text: &mut Text, taken: &Taken) {
    let snapshot = &taken.snapshot;
    let daemon = &snapshot.daemon;
    let unix_s = |time: std::time::SystemTime| {
        time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
    };
    text.family(&m::BUILD_INFO, |samples| samples.add([&daemon.version], 1.0));
    text.one(&m::START_TIME, daemon.started.as_secs_f64());
    text.one(&m::POLICY_EPOCH, snapshot.epoch.into());
    text.family(&m::RELOADS, |samples| {
        samples.add(["ok"], daemon.reloads_ok as f64);
        samples.add(["failed"], daemon.reloads_failed as f64);
    });
    if let Some(reload) = &daemon.last_reload {
        text.one(&m::RELOAD_OK, if reload.failure.is_none() { 1.0 } else { 0.0 });
        text.one(&m::RELOAD_TIME, unix_s(reload.at));
    }
    text.one(&m::ATTACH_FAILURES, daemon.attach_failures as f64);
    text.one(&m::CONTROL_REFUSED, daemon.control_refused as f64);
    if let Some(records) = &daemon.records {
        text.one(&m::RECORDS_WRITTEN, records.written as f64);
        text.one(&m::RECORDS_LOST, records.lost as f64);
        text.one(&m::RECORDS_FAILING, if records.failure.is_some() { 1.0 } else { 0.0 });
    }
}

/// Of ports with connections in shadow mode.
fn trial(text: &mut Text, taken: &Taken) {
    let Some(trial) = &taken.trial else { return };
    /// A metric, and its value of a port, where it has one.
    type Figure = (&'static Metric, fn(&Sums) -> Option<f64>);
    let columns: [Figure; 6] = [
        (&m::TRIAL_CONNECTIONS, |port| Some(port.connections as f64)),
        (&m::TRIAL_LIMITED_CONNECTIONS, |port| Some(port.limited_connections as f64)),
        (&m::TRIAL_LIMITED_BYTES, |port| port.limited_bytes_share),
        (&m::TRIAL_LIMITED_TIME, |port| port.limited_time_share),
        (&m::TRIAL_WINDOW, |port| port.window_part),
        (&m::TRIAL_QUEUE, |port| Some(port.queue_us? / 1e6)),
    ];
    for (metric, value) in columns {
        text.family(metric, |samples| {
            for (port, value) in trial.ports.iter().filter_map(|port| Some((port, value(port)?))) {
                samples.add([&port.name], value);
            }
        });
    }
}

fn ports(text: &mut Text, taken: &Taken) {
    let ports = &taken.snapshot.ports;
    let tenant = |port: &PortView| port.tenant.as_deref().unwrap_or_default().to_owned();
    text.family(&m::PORTS, |samples| {
        let failed = ports.iter().filter(|port| port.failure.is_some()).count();
        samples.add(["attached"], (ports.len() - failed) as f64);
        samples.add(["failed"], failed as f64);
    });
    if let Some(bytes) = taken.snapshot.tables_bytes {
        text.one(&m::TABLES, bytes as f64);
    }
    let mut stages: HashMap<(usize, Stage), u64> = HashMap::new();
    for flow in &taken.snapshot.flows {
        *stages.entry((flow.port_index, flow.state.stage())).or_default() += 1;
    }
    // A port that cannot be read has no samples: 0 would say that its connections ended. Of devices of one
    // guest, the first has them all, or sums would count them twice.
    let readable = || ports.iter().enumerate().filter(|(_, port)| port.is_counted());
    text.family(&m::PORT_FLOWS, |samples| {
        for (at, port) in readable() {
            for stage in Stage::ALL {
                let flows = stages.get(&(at, stage)).copied().unwrap_or(0);
                samples.add([&port.port, &tenant(port), stage.name()], flows as f64);
            }
        }
    });
    text.family(&m::PORT_FLOWS_MAX, |samples| {
        for (_, port) in readable() {
            let max_flows = port.max_flows.unwrap_or_default();
            samples.add([&port.port, &tenant(port)], max_flows.into());
        }
    });
    text.family(&m::PORT_WINDOW, |samples| {
        for (_, port) in readable() {
            samples.add([&port.port, &tenant(port)], port.sums.window_bytes as f64);
        }
    });
    // Ports in the kernel have neither a buffer nor a channel.
    let [held, promised, channel_up, malformed]: [fn(&PortView) -> Option<u64>; 4] = [
        |port| port.held_bytes,
        |port| port.promised_bytes,
        |port| port.channel.as_ref().map(|state| (state == "up").into()),
        |port| port.channel_malformed,
    ];
    for (metric, value) in [
        (&m::PORT_HELD, held),
        (&m::PORT_PROMISED, promised),
        (&m::PORT_CHANNEL_UP, channel_up),
        (&m::PORT_CHANNEL_MALFORMED, malformed),
    ] {
        text.family(metric, |samples| {
            for (port, value) in readable().filter_map(|(_, port)| Some((port, value(port)?))) {
                samples.add([&port.port, &tenant(port)], value as f64);
            }
        });
    }
    let [seconds, frames]: [fn(RunTime) -> f64; 2] =
        [|time| time.ns as f64 / 1e9, |time| time.runs as f64];
    for (metric, value) in [(&m::PORT_COST_SECONDS, seconds), (&m::PORT_COST_FRAMES, frames)] {
        text.family(metric, |samples| {
            // Each device of a guest has programs of its own.
            for (port, time) in ports.iter().filter_map(|port| Some((port, port.run_time?))) {
                for (direction, time) in
                    [("from_guest", time.from_guest), ("to_guest", time.to_guest)]
                {
                    samples.add([&port.port, &tenant(port), direction], value(time));
                }
            }
        });
    }
    text.family(&m::PORT_ACKED, |samples| {
        for (_, port) in readable() {
            let acked_bytes = port.sums.growth.unwrap_or_default().acked_bytes;
            samples.add([&port.port, &tenant(port)], acked_bytes as f64);
        }
    });
    let [fabric, guest]: [fn(&Delays) -> Histogram; 2] = [Delays::fabric, Delays::guest];
    for (metric, part) in [(&m::PORT_FABRIC_DELAY, fabric), (&m::PORT_GUEST_DELAY, guest)] {
        text.family(metric, |samples| {
            for (port, delays) in readable().filter_map(|(_, port)| Some((port, port.delays?))) {
                samples.add_histogram([&port.port, &tenant(port)], &part(&delays));
            }
        });
    }
    text.family(&m::PORT_UNTRANSLATED, |samples| {
        for (_, port) in readable() {
            for counter in &port.counters {
                let labels = [&*port.port, &tenant(port), counter.name];
                samples.add(labels, counter.value as f64);
            }
        }
    });
}

fn rules(text: &mut Text, taken: &Taken) {
    let rules = &taken.snapshot.rules;
    text.family(&m::RULE_INFO, |samples| {
        for rule in rules {
            samples.add([&rule.name, &rule.mode, &rule.underlay], 1.0);
        }
    });
    let of_rule: [Column<RuleView>; 7] = [
        (&m::RULE_FLOWS, |rule| rule.sums.flows),
        (&m::RULE_CONNECTIONS, |rule| rule.connections),
        (&m::RULE_MARKS, |rule| counts(rule).marks),
        (&m::RULE_REDUCTIONS, |rule| counts(rule).reductions),
        (&m::RULE_RETRANSMISSIONS, |rule| counts(rule).retransmissions),
        (&m::RULE_DROPS, |rule| counts(rule).drops),
        (&m::RULE_WINDOW, |rule| rule.sums.window_bytes),
    ];
    for (metric, value) in of_rule {
        text.family(metric, |samples| {
            rules.iter().for_each(|rule| samples.add([&rule.name], value(rule) as f64));
        });
    }
    spread(text, &m::RULE_CWND, taken, |flow| Some(flow.state.cwnd_bytes()? as f64));
    spread(text, &m::RULE_SRTT, taken, |flow| Some(f64::from(flow.state.srtt_us()?) / 1e6));
}

fn counts(rule: &RuleView) -> Counts {
    rule.sums.growth.unwrap_or_default().counts
}

/// Quantiles over each rule's established connections.
fn spread(
    text: &mut Text,
    metric: &'static Metric,
    taken: &Taken,
    value: fn(&FlowView) -> Option<f64>,
) {
    let mut of_rule: HashMap<&str, Vec<f64>> = HashMap::new();
    for flow in taken.snapshot.flows.iter().filter(|flow| flow.state.stage() == Stage::Established)
    {
        if let (Some(rule), Some(value)) = (flow.rule.as_deref(), value(flow)) {
            of_rule.entry(rule).or_default().push(value);
        }
    }
    text.family(metric, |samples| {
        for rule in &taken.snapshot.rules {
            let values = of_rule.remove(&*rule.name).unwrap_or_default();
            for (share, value) in SHARE_NAMES.iter().zip(quantiles(values, SHARES).iter().flatten())
            {
                samples.add([&rule.name, share], *value);
            }
        }
    });
}

/// The labels of a metric stay, so the name says whose pool it is. Where it is another pool's name already, it
/// has a number behind it.
fn pool_labels(pools: &[Pool]) -> Vec<String> {
    let mut taken = HashSet::new();
    let mut label = |pool: &Pool| {
        let label = match &pool.port {
            Some(port) => format!("{} at {port}", pool.name),
            None => pool.name.clone(),
        };
        let numbered = (2..).map(|number| format!("{label} {number}"));
        let mut labels = std::iter::once(label.clone()).chain(numbered);
        labels.find(|label| taken.insert(label.clone())).unwrap_or(label)
    };
    pools.iter().map(&mut label).collect()
}

fn pools(text: &mut Text, pools: &[Pool]) {
    let labels = pool_labels(pools);
    text.family(&m::POOL_WINDOW, |samples| {
        for (pool, label) in pools.iter().zip(&labels) {
            if let Some(window_bytes) = pool.window_bytes {
                samples.add([label], window_bytes.into());
            }
        }
    });
    let of_pool: [Column<Pool>; 5] = [
        (&m::POOL_HELD, |pool| pool.held_bytes.into()),
        (&m::POOL_IDLE, |pool| pool.idle_bytes.into()),
        (&m::POOL_MOST_HELD, |pool| pool.most_held_bytes.into()),
        (&m::POOL_WEIGHT, |pool| pool.weight.into()),
        (&m::POOL_OVERDRAWN, |pool| pool.overdrawn.into()),
    ];
    for (metric, value) in of_pool {
        text.family(metric, |samples| {
            for (pool, label) in pools.iter().zip(&labels) {
                samples.add([label], value(pool) as f64);
            }
        });
    }
}

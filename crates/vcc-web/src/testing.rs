//! A host that does not exist, for tests and for looking at the page: it moves, and the names of its
//! devices, tenants, rules and pools are those that a page should fear.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use crate::Source;
use crate::snapshot::{
    Counter, Counts, Daemon, Event, Flow, Pool, Port, Problem, Reload, Rule, Snapshot, Stage,
    Totals,
};

pub const HOSTILE: &str = "<script>window.bad=1</script>";
const HOSTILE_DEVICE: &str = "<img src=x>&\"";
const BEGIN: SystemTime = SystemTime::UNIX_EPOCH;
const FLOWS: u64 = 240;

/// Counts how often it is read.
#[derive(Default)]
pub struct Fake {
    begun: Option<Instant>,
    reads: AtomicU64,
    /// How many rules it has, and how long all names are; a few of all kinds if left out.
    crowd: Option<(usize, usize)>,
    pub fails: std::sync::atomic::AtomicBool,
}

impl Fake {
    /// In real time.
    pub fn live() -> Self {
        Self { begun: Some(Instant::now()), ..Self::default() }
    }

    /// In real time, with so many rules, and names of so many characters without a break.
    pub fn crowded(rules: usize, characters: usize) -> Self {
        Self { crowd: Some((rules, characters)), ..Self::live() }
    }

    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }
}

impl Source for Fake {
    fn snapshot(&self) -> Result<Snapshot, Box<dyn std::error::Error + Send + Sync>> {
        let reads = self.reads.fetch_add(1, Ordering::Relaxed);
        if self.fails.load(Ordering::Relaxed) {
            return Err("the maps are gone: start the daemon again".into());
        }
        let Some(begun) = self.begun else { return Ok(snapshot(reads)) };
        let second = begun.elapsed().as_secs() + 3600;
        let snapshot = match self.crowd {
            None => snapshot(second),
            Some((rules, characters)) => crowded(second, rules, characters),
        };
        Ok(Snapshot { at: SystemTime::now(), ..snapshot })
    }
}

/// Devices have at most 15 characters (IFNAMSIZ), whatever else has.
fn crowded(second: u64, rules: usize, characters: usize) -> Snapshot {
    let name = |kind: char, number: usize| {
        let filling = "abcdefghijklmnopqrstuvwxyz".chars().cycle();
        format!("{kind}{number:02}").chars().chain(filling).take(characters).collect::<String>()
    };
    let treatments = [("enforce", "dctcp-priority"), ("shadow", "cubic"), ("ignore", "reno-ecn")];
    let treatments = treatments.into_iter().cycle();
    let rules: Vec<(String, _)> = (0..rules).map(|at| name('r', at)).zip(treatments).collect();
    let rules: Vec<_> =
        rules.iter().map(|(name, (mode, underlay))| (name.as_str(), *mode, *underlay)).collect();
    let mut snapshot = of_rules(second, &rules);
    for (at, port) in snapshot.ports.iter_mut().enumerate() {
        port.device = name('d', at).chars().take(15).collect();
        port.tenant = Some(name('t', at));
    }
    for (at, pool) in snapshot.pools.iter_mut().enumerate() {
        pool.name = name('p', at);
    }
    snapshot
}

/// The same for the same second.
pub fn snapshot(second: u64) -> Snapshot {
    of_rules(
        second,
        &[
            ("legacy web", "enforce", "dctcp"),
            ("backup", "enforce", "dctcp-priority"),
            ("trial of cubic for analytics clusters in the east hall", "shadow", "cubic"),
            (HOSTILE, "enforce", "reno-ecn"),
            ("default", "ignore", "reno-ecn"),
        ],
    )
}

fn of_rules(second: u64, rules: &[(&str, &str, &str)]) -> Snapshot {
    let rules: Vec<Rule> = rules
        .iter()
        .zip(1..)
        .map(|((name, mode, underlay), weight)| Rule {
            name: (*name).into(),
            mode: (*mode).into(),
            underlay: (*underlay).into(),
            ended: Totals {
                connections: 200 + second / weight,
                counts: Counts {
                    marks: second * 40 / weight,
                    reductions: second * 3 / weight,
                    retransmissions: second / 4 / weight,
                    drops: second / 60 / weight,
                },
            },
        })
        .collect();
    let ports = vec![
        port("vnet-acme-0", Some("acme"), 0, second),
        port("vnet-acme-1", Some("acme"), 1, second),
        port("tap7", None, 2, second),
        port(HOSTILE_DEVICE, Some(HOSTILE), 3, second),
        Port {
            failure: Some("vcc was attached to `veth-old` by another version".into()),
            counters: Vec::new(),
            ..port("veth-old", None, 4, second)
        },
        // Attached by hand in two network namespaces.
        Port { index: None, ..port("veth0", None, 5, second) },
        Port { index: None, ..port("veth0", None, 6, second) },
    ];
    let flows = (0..FLOWS).map(|number| flow(number, second, &rules)).collect();
    Snapshot {
        at: BEGIN + Duration::from_secs(1_700_000_000 + second),
        daemon: daemon(second),
        epoch: 7,
        ports,
        rules,
        pools: pools(second),
        flows,
    }
}

fn daemon(second: u64) -> Daemon {
    let at = |ago: u64| BEGIN + Duration::from_secs(1_700_000_000 + second - second.min(ago));
    Daemon {
        version: "0.1.0".into(),
        started: Duration::from_secs(1_700_000_000),
        uptime: Duration::from_secs(second),
        reloads_ok: 6,
        reloads_failed: 1,
        last_reload: Some(Reload { at: at(600), failure: None }),
        attach_failures: 2,
        control_refused: 3,
        problems: vec![Problem {
            about: "tap9".into(),
            what: format!("another process has vcc attached to `{HOSTILE}`: end it first"),
        }],
        events: vec![
            Event { at: at(900), what: "attached to `vnet-acme-1`, tenant acme".into() },
            Event { at: at(600), what: "edition 7 of the policy holds".into() },
            Event { at: at(30), what: format!("could not attach to `{HOSTILE}`") },
        ],
    }
}

fn port(device: &str, tenant: Option<&str>, index: u32, second: u64) -> Port {
    let counters = vcc_port::counters::ALL.into_iter().zip(0u64..).map(|(counter, at)| Counter {
        name: counter.name,
        meaning: counter.meaning,
        value: if at % 3 == u64::from(index) % 3 { second * (at + 1) } else { 0 },
    });
    Port {
        device: device.into(),
        tenant: tenant.map(Into::into),
        index: Some(index),
        max_flows: if index == 1 { 96 } else { 65_536 },
        counters: counters.collect(),
        failure: None,
    }
}

fn pools(second: u64) -> Vec<Pool> {
    let pool = |name: &str, window_bytes, held_bytes, most_held_bytes, overdrawn| Pool {
        name: name.into(),
        window_bytes,
        held_bytes,
        idle_bytes: held_bytes / 16,
        weight: 12,
        most_held_bytes,
        overdrawn,
    };
    let wave = (wave(second as f64 / 20.0) * 600_000.0) as u32;
    vec![
        pool("gold", Some(2 << 20), 1_000_000 + wave, 1_950_000, 0),
        pool(HOSTILE, Some(512 << 10), 560_000, 601_000, 41 + second as u32 / 30),
        pool("gone with the last reload", None, 12_000, 90_000, 0),
    ]
}

/// Between -1 and 1.
fn wave(phase: f64) -> f64 {
    phase.sin() * 0.7 + (phase * 3.7).sin() * 0.3
}

fn flow(number: u64, second: u64, rules: &[Rule]) -> Flow {
    let rule = &rules[number as usize % rules.len()];
    let is_six = number % 11 == 3;
    let address = |net: u8, host: u64| match is_six {
        true => IpAddr::V6(Ipv6Addr::new(0xfd00, net.into(), 0, 0, 0, 0, 0, host as u16)),
        false => IpAddr::from([10, net, (host / 250) as u8, (host % 250 + 1) as u8]),
    };
    let stage = match number % 40 {
        7 => Stage::SynSent,
        19 => Stage::Closed,
        _ => Stage::Established,
    };
    let is_managed = rule.mode.as_str() != "ignore" && stage == Stage::Established;
    let size = 60.0 / (1.0 + number as f64 / 6.0) + 2.0;
    // A sawtooth, each connection with its own period.
    let period = 9 + number % 13;
    let phase = (second + number * 5) % period;
    let cwnd = (size * (1.0 + phase as f64 / period as f64)) as u32;
    let rounds = (second + number * 5) / period;
    let srtt_us = 90 + (number * 37 % 400) as u32 + phase as u32 * 12;
    let rate = size * 1440.0 * 400.0;
    Flow {
        port: number as usize % 4,
        rule: Some(rule.name.clone()),
        is_current: true,
        guest: SocketAddr::new(address(1, number % 4), 40_000 + number as u16),
        peer: SocketAddr::new(address(2, number % 17), [80, 443, 873, 5001][number as usize % 4]),
        vlan: (number % 9 == 4).then_some(12),
        stage,
        underlay: match rule.underlay.as_str() {
            "dctcp" => "dctcp",
            "dctcp-priority" => "dctcp-priority",
            "cubic" => "cubic",
            _ => "reno-ecn",
        },
        ecn_guest: if number % 10 == 4 { "yes" } else { "no" },
        ecn_fabric: if number % 7 == 2 { "no" } else { "yes" },
        feedback: ["none", "agreed", "agreed", "lost"][number as usize % 4],
        snd_una: (rate * second as f64) as u64 as u32,
        cwnd_segs: is_managed.then_some(cwnd),
        ssthresh_segs: (is_managed && number % 5 > 0).then_some(cwnd / 2 + 2),
        window_shown_bytes: is_managed.then_some(cwnd * 1440),
        mss_bytes: 1440,
        srtt_us: (stage != Stage::SynSent).then_some(srtt_us),
        alpha: (is_managed && rule.underlay.starts_with("dctcp"))
            .then(|| 0.05 + phase as f64 / period as f64 / 4.0),
        counts: Counts {
            marks: if is_managed { rounds * 4 } else { 0 },
            reductions: if is_managed { rounds } else { 0 },
            retransmissions: rounds / 12,
            drops: rounds / 90,
        },
    }
}

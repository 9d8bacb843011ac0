//! A host that does not exist, for tests and for looking at the page: it moves, and the names of its
//! devices, tenants, rules and pools are those that a page should fear.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use vcc_engine::{Delays, FlowState, Mode, Params, Underlay, sys};
use vcc_port::{RunTime, RunTimeByDirection};
use vcc_view::{AppliedRule, Counter, Counts, FlowView, Place, PortView, RuleView, Sums, Totals};

use crate::Source;
pub use crate::server::in_memory::InMemory;
use crate::snapshot::{Daemon, Event, Pool, Problem, Records, Reload, Snapshot};

pub const HOSTILE: &str = "<script>window.bad=1</script>";
const HOSTILE_DEVICE: &str = "<img src=x>&\"";
const BEGIN: SystemTime = SystemTime::UNIX_EPOCH;
const FLOWS: u64 = 240;

/// What the host has.
#[derive(Default)]
enum Shape {
    /// A few of all kinds.
    #[default]
    Small,
    /// So many rules, and names of so many characters without a break.
    Crowded { rules: usize, characters: usize },
    /// So many taps, and so many connections at them.
    Sized { ports: u32, flows: u64 },
}

/// Counts how often it is read.
#[derive(Default)]
pub struct Fake {
    begun: Option<Instant>,
    reads: AtomicU64,
    shape: Shape,
    pub fails: std::sync::atomic::AtomicBool,
}

impl Fake {
    /// In real time.
    pub fn live() -> Self {
        Self { begun: Some(Instant::now()), ..Self::default() }
    }

    /// In real time, with so many rules, and names of so many characters without a break.
    pub fn crowded(rules: usize, characters: usize) -> Self {
        Self { shape: Shape::Crowded { rules, characters }, ..Self::live() }
    }

    /// In real time, with so many taps, in the order of their names as text, and so many connections.
    pub fn sized(ports: u32, flows: u64) -> Self {
        Self { shape: Shape::Sized { ports, flows }, ..Self::live() }
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
        let snapshot = match self.shape {
            Shape::Small => snapshot(second),
            Shape::Crowded { rules, characters } => crowded(second, rules, characters),
            Shape::Sized { ports, flows } => sized(second, ports, flows),
        };
        Ok(Snapshot { at: SystemTime::now(), ..snapshot })
    }
}

/// Device names have at most 15 characters (IFNAMSIZ); other names may be longer.
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
        port.port = name('d', at).chars().take(15).collect();
        port.tenant = Some(name('t', at).into());
    }
    for flow in &mut snapshot.flows {
        let port = &snapshot.ports[flow.port_index];
        (flow.port, flow.tenant) = (port.port.as_str().into(), port.tenant.clone());
    }
    for (at, pool) in snapshot.pools.iter_mut().enumerate() {
        pool.name = name('p', at);
    }
    snapshot
}

/// Usual names, and no pool.
fn sized(second: u64, ports: u32, flows: u64) -> Snapshot {
    let mut snapshot = of_rules(
        second,
        &[
            ("web", "enforce", "dctcp"),
            ("backup", "enforce", "dctcp-priority"),
            ("trial of cubic", "shadow", "cubic"),
            ("default", "ignore", "reno-ecn"),
        ],
    );
    let mut names: Vec<(String, u32)> =
        (1..).map(|at| (format!("tap{at}"), at)).take(ports as usize).collect();
    names.sort();
    let ports = names.iter().map(|(name, at)| {
        let tenant = ["acme", "globex", "initech"][*at as usize % 3];
        let mut port = port(name, Some(tenant), *at, second);
        for counter in &mut port.counters {
            counter.value = if counter.name == "unknown" { 800 + u64::from(*at) } else { 0 };
        }
        port
    });
    snapshot.ports = ports.collect();
    snapshot.pools.clear();
    let flows = (0..flows).map(|at| flow(at, second, &snapshot.ports, &snapshot.rules));
    snapshot.flows = flows.collect();
    snapshot
}

/// A snapshot that depends on the second alone.
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
    let rules: Vec<RuleView> = rules
        .iter()
        .zip(1..)
        .map(|((name, mode, underlay), weight)| RuleView {
            name: (*name).into(),
            mode: (*mode).into(),
            underlay: (*underlay).into(),
            in_domains: Vec::new(),
            ended: Totals {
                connections: 200 + second / weight,
                counts: Counts {
                    marks: second * 40 / weight,
                    reductions: second * 3 / weight,
                    retransmissions: second / 4 / weight,
                    drops: second / 60 / weight,
                },
            },
            connections: 0,
            sums: Sums::default(),
        })
        .collect();
    let ports = vec![
        port("vnet-acme-0", Some("acme"), 0, second),
        port("vnet-acme-1", Some("acme"), 1, second),
        // Of `vcc domain`.
        PortView {
            held_bytes: Some(300_000),
            promised_bytes: Some(200_000),
            channel: Some("up".into()),
            channel_malformed: Some(3),
            run_time: None,
            ..port("tap7", None, 2, second)
        },
        port(HOSTILE_DEVICE, Some(HOSTILE), 3, second),
        PortView {
            failure: Some("vcc was attached to `veth-old` by another version".into()),
            ..vcc_view::testing::port("veth-old")
        },
        // Attached by hand in two network namespaces.
        PortView { index: None, ..port("veth0", None, 5, second) },
        PortView { index: None, ..port("veth0", None, 6, second) },
    ];
    // The last three ports have none.
    let flows = (0..FLOWS).map(|number| flow(number, second, &ports[..4], &rules)).collect();
    Snapshot {
        at: BEGIN + Duration::from_secs(1_700_000_000 + second),
        daemon: daemon(second),
        epoch: 7,
        ports,
        rules,
        pools: pools(second),
        flows,
        tables_bytes: Some(63 << 20),
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
        warnings: vec![Problem {
            about: "tap8".into(),
            what: format!("tap8: TCX ingress, from the guest: {HOSTILE} (ID 7)"),
        }],
        records: Some(Records {
            target: format!("/var/log/{HOSTILE}"),
            written: 4,
            lost: 1,
            failure: Some(HOSTILE.to_owned()),
        }),
        events: vec![
            Event { at: at(900), what: "attached to `vnet-acme-1`, tenant acme".into() },
            Event { at: at(600), what: "edition 7 of the policy holds".into() },
            Event { at: at(30), what: format!("could not attach to `{HOSTILE}`") },
        ],
    }
}

fn port(device: &str, tenant: Option<&str>, index: u32, second: u64) -> PortView {
    let counters = vcc_port::counters::ALL.into_iter().zip(0u64..).map(|(counter, at)| Counter {
        name: counter.name,
        meaning: counter.meaning,
        value: if at % 3 == u64::from(index) % 3 { second * (at + 1) } else { 0 },
    });
    PortView {
        tenant: tenant.map(Into::into),
        index: Some(index),
        underlay: Some("by rule".into()),
        mode: Some("by rule".into()),
        max_flows: Some(if index == 1 { 96 } else { 65_536 }),
        counters: counters.collect(),
        delays: Some(delays(index, second)),
        run_time: Some(run_time(second)),
        ..vcc_view::testing::port(device)
    }
}

/// Of a thousand frames a second, which take longer from the guest.
fn run_time(second: u64) -> RunTimeByDirection {
    let time = |frame_ns| RunTime { runs: second * 1000, ns: second * 1000 * frame_ns };
    RunTimeByDirection { from_guest: time(240), to_guest: time(180) }
}

/// Of a quiet fabric, and of a guest that shares its core if its number is odd.
fn delays(index: u32, second: u64) -> Delays {
    let share = |at: u64, spread: u32| (at * 7919 % 100) as u32 * spread / 100;
    let times = 50 + second % 100;
    let fabric_us: Vec<u32> = (0..times).map(|at| 120 + share(at, 400 << index.min(4))).collect();
    let guest_us: Vec<u32> = (0..times)
        .map(|at| if index % 2 == 1 && at % 3 > 0 { share(at, 36_000) } else { share(at, 90) } + 10)
        .collect();
    vcc_view::testing::delays(&fabric_us, &guest_us)
}

fn pools(second: u64) -> Vec<Pool> {
    let pool = |name: &str, window_bytes, held_bytes, most_held_bytes, overdrawn| Pool {
        name: name.into(),
        port: None,
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
        Pool { port: Some("tap7".into()), ..pool("gold", Some(2 << 20), 700_000, 1_300_000, 0) },
    ]
}

/// Between -1 and 1.
fn wave(phase: f64) -> f64 {
    phase.sin() * 0.7 + (phase * 3.7).sin() * 0.3
}

fn flow(number: u64, second: u64, ports: &[PortView], rules: &[RuleView]) -> FlowView {
    let rule = &rules[number as usize % rules.len()];
    let index = number as usize % ports.len();
    let is_six = number % 11 == 3;
    let address = |net: u8, host: u64| match is_six {
        true => IpAddr::V6(Ipv6Addr::new(0xfd00, net.into(), 0, 0, 0, 0, 0, host as u16)),
        false => IpAddr::from([10, net, (host / 250) as u8, (host % 250 + 1) as u8]),
    };
    let flow = vcc_port::Flow {
        guest: SocketAddr::new(address(1, index as u64), 40_000 + number as u16),
        peer: SocketAddr::new(address(2, number % 17), [80, 443, 873, 5001][number as usize % 4]),
        vlan: (number % 9 == 4).then_some(12),
        inside: false,
        state: state(number, second, rule),
    };
    let port = &ports[index];
    let name: std::sync::Arc<str> = port.port.as_str().into();
    let place = Place { index, key: name.clone(), port: name, tenant: port.tenant.clone() };
    let mut params = Params::default();
    params.0.mode = rule.mode.parse().unwrap_or(Mode::Enforce).number();
    let rule = AppliedRule { name: rule.name.clone(), is_current: true, params: &params };
    FlowView::new(&place, &flow, Some(rule), &params, None, second * 1_000_000)
}

fn state(number: u64, second: u64, rule: &RuleView) -> FlowState {
    let stage = match number % 40 {
        7 => sys::STAGE_SYN_SENT,
        19 => sys::STAGE_CLOSED,
        _ => sys::STAGE_ESTABLISHED,
    };
    let is_managed = rule.mode.as_str() != "ignore" && stage == sys::STAGE_ESTABLISHED;
    let size = 60.0 / (1.0 + number as f64 / 6.0) + 2.0;
    // A sawtooth, each connection with its own period.
    let period = 9 + number % 13;
    let phase = (second + number * 5) % period;
    let cwnd_segs = (size * (1.0 + phase as f64 / period as f64)) as u32;
    let rounds = ((second + number * 5) / period) as u32;
    let srtt_us = 90 + (number * 37 % 400) as u32 + phase as u32 * 12;
    let rate = size * 1440.0 * 400.0;
    let underlay: Underlay = rule.underlay.parse().expect("an underlay");
    let mut flags = if is_managed { sys::FLOW_WINDOW_SHOWN } else { sys::FLOW_LEFT_ALONE };
    for (flag, is_set) in [
        (sys::FLOW_ECN_GUEST, number % 10 == 4),
        (sys::FLOW_ECN_FABRIC, number % 7 != 2),
        (sys::FLOW_FEEDBACK, number % 4 > 0),
        (sys::FLOW_FEEDBACK_LOST, number % 4 == 3),
    ] {
        flags |= if is_set { flag } else { 0 };
    }
    let mut cc = sys::vcc_cc_state { cwnd_segs, ..Default::default() };
    cc.ssthresh_segs = if number % 5 > 0 { cwnd_segs / 2 + 2 } else { sys::SSTHRESH_INFINITE };
    let alpha = 0.05 + phase as f64 / period as f64 / 4.0;
    cc.own[sys::DCTCP_ALPHA as usize] = (alpha * f64::from(sys::DCTCP_ALPHA_ONE)) as u32;
    cc.path.rtt_min_us = 90;
    let window_bytes = cwnd_segs * 1440;
    // In shadow mode, the guest has the peer's window.
    let shown_bytes = if rule.mode == "shadow" { 512 << 10 } else { window_bytes };
    let snd_una = (rate * second as f64) as u64 as u32;
    let flight_bytes = match (number % 3, rule.mode.as_str()) {
        (0, _) => window_bytes / 4,
        (_, "shadow") => window_bytes / 2 * 3,
        _ => window_bytes,
    };
    let now_us = second * 1_000_000;
    FlowState(sys::vcc_flow {
        flags,
        stage: stage as u8,
        underlay: underlay.number(),
        snd_una,
        snd_nxt: snd_una.wrapping_add(if is_managed { flight_bytes } else { 0 }),
        mss_bytes: 1440,
        progress_us: now_us as u32,
        last_seen_ms: (now_us / 1000) as u32,
        srtt_us8: if stage == sys::STAGE_SYN_SENT { 0 } else { srtt_us * 8 },
        window_shown: (shown_bytes >> 5) as u16,
        wscale_shown: 5,
        window_received: if number % 7 == 5 { (window_bytes >> 7) as u16 } else { u16::MAX },
        wscale_peer: 7,
        cc,
        guest_us64: (if number % 5 == 2 { 31_000 } else { 40 }) << sys::DELAY_UNIT_SHIFT,
        fabric_us64: (srtt_us / 2) << sys::DELAY_UNIT_SHIFT,
        marks: if is_managed { rounds * 4 } else { 0 },
        reductions: if is_managed { rounds } else { 0 },
        retransmissions: rounds / 12,
        drops: (rounds / 90) as u16,
        ..Default::default()
    })
}

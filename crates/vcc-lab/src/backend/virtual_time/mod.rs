//! The second backend: the same scenarios in virtual time, with real guest kernels.
//!
//! Each host is a User-Mode Linux whose clock is the calendar's (`vcc-uml`); the fabric is the one
//! of the live lab; where the scenario has vcc, the port of a driver domain (`vcc-domain`) stands
//! between a guest's card and the fabric. Nothing here depends on how fast or how busy the machine
//! is: the same seed gives the same frames at the same times.

#[cfg(test)]
mod chaos;
mod collect;
mod cores;
mod network;
mod overlay;
mod pace;
mod plan;
#[cfg(test)]
mod tests;
mod time_taken;

pub use time_taken::TimeTaken;

use crate::base::error::{Error, Result};
use crate::base::interrupt;
use crate::base::progress::VirtualTime;
use crate::cheats::Cheat;
use crate::scenario::{MAX_FLOWS, Scenario, Translation};
use cores::Loads;
use network::LoggedFabric;
use pace::Pace;
use plan::Timeline;
use std::collections::VecDeque;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;
use std::time::{Duration, Instant};
use vcc_domain::{IsnHash, Port};
use vcc_fabric::{Fabric, HostId, mac_of};
use vcc_net::random::mix;
use vcc_results::result::{EmulatorReport, Lateness, RunData};
use vcc_uml::{CardSpec, GuestSpec, Kernel, Moment, PortChange, Release, Watch, World, WorldSpec};

/// The program that each guest runs.
const AGENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/vcc-agent"));
/// Memory of a guest: its kernel, and socket buffers for a fast path.
const GUEST_MEMORY_MIB: u32 = 64;
/// Usual interrupt moderation, as of a card at 10 Gbit/s: about the time of a burst of full frames.
const INTERRUPT_EVERY_NS: u64 = 10_000;
/// Wall-clock limit for one step of a guest, which takes milliseconds, or seconds on a busy
/// machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// A guest has nothing to wait for once it has reported.
const OVERDUE_AFTER_NS: u64 = 5_000_000_000;

/// Builds the guests' kernel where it is missing.
pub fn prepare() -> Result<Kernel> {
    Kernel::find_or_build(Release::V6_12).map_err(guests)
}

/// Checks, before anything is built, whether a scenario can be run in virtual time.
pub fn check(scenario: &Scenario) -> Result<()> {
    plan::refuse(scenario, &scenario.hosts(&scenario.topology()))
}

/// Memory of the guests of a run.
pub fn memory_bytes(scenario: &Scenario) -> u64 {
    let guests = scenario.hosts(&scenario.topology()).len() as u64;
    (guests * u64::from(GUEST_MEMORY_MIB)) << 20
}

/// The port of a guest in its driver domain. A shadow's keeps what it is compared by.
fn port(translation: &Translation) -> Port {
    let (params, buffer) = (translation.params, translation.buffer);
    let mut port = Port::with_buffer(params, MAX_FLOWS as usize, buffer);
    port.set_isn_hash(isn_hash());
    port.watch_buffer();
    if translation.is_shadow() {
        port.trace();
    }
    port
}

/// A run repeats itself, so its keys are constant.
fn isn_hash() -> IsnHash {
    Arc::new(|key| BuildHasherDefault::<DefaultHasher>::default().hash_one(key))
}

/// What happens to a host's port.
fn changes(scenario: &Scenario, host: HostId) -> VecDeque<(u64, PortChange)> {
    let its = scenario.chaos.changes.iter().filter(|change| change.host == host);
    its.map(|change| {
        let what = Arc::clone(&change.what);
        let what: PortChange = Box::new(move |port, now_ns, out| what(port, now_ns, out));
        (change.at_ns, what)
    })
    .collect()
}

fn guests(error: vcc_uml::Error) -> Error {
    match error {
        vcc_uml::Error::Interrupted => Error::Interrupted,
        error => Error::VirtualGuests(error.to_string()),
    }
}

/// `tick` receives several times a second how far the run is.
pub fn run_once(
    kernel: &Kernel,
    scenario: &Scenario,
    seed: u64,
    tick: &mut dyn FnMut(VirtualTime),
) -> Result<RunData> {
    run_timed(kernel, scenario, seed, tick).map(|(data, _)| data)
}

/// Runs one scenario once, and measures the wall-clock time.
pub fn run_timed(
    kernel: &Kernel,
    scenario: &Scenario,
    seed: u64,
    tick: &mut dyn FnMut(VirtualTime),
) -> Result<(RunData, TimeTaken)> {
    let topology = scenario.topology();
    let bottleneck = topology.bottleneck;
    let timeline = Timeline::from_scenario(scenario);
    let plans = plan::plans(scenario, &topology, &timeline, seed);
    let mut loads = Loads::new(&timeline, seed);
    let cores = loads.cores(scenario);
    let cards = topology.guest_rates_bps();
    let hosts = scenario.hosts(&topology);
    let with_accecn = if hosts.iter().any(|host| host.accecn) {
        Some(Kernel::find_or_build(Release::V7_2).map_err(guests)?)
    } else {
        None
    };
    let specs = plans.iter().enumerate().map(|(host, plan)| {
        Ok(GuestSpec {
            kernel: if hosts[host].accecn { with_accecn.clone() } else { None },
            memory_mib: GUEST_MEMORY_MIB,
            plan: serde_json::to_string(plan).map_err(|e| Error::VirtualGuests(e.to_string()))?,
            card: CardSpec {
                mac: mac_of(host),
                mtu_bytes: scenario.network.mtu_bytes,
                rate_bps: plan::card_rate_bps(&hosts[host], cards[host]),
                interrupt_every_ns: hosts[host].interrupt_every_ns.unwrap_or(INTERRUPT_EVERY_NS),
                seed: mix(seed ^ mix(host as u64 + 1)),
                backlog_segs: hosts[host].backlog_segs,
                port: None,
                changes: changes(scenario, host),
                tamper: hosts[host].cheat.map(Cheat::tamper),
            },
            small_queues: hosts[host].small_queues,
            vcpu: loads.vcpu(&hosts[host]),
        })
    });
    let mut specs = specs.collect::<Result<Vec<_>>>()?;
    for (host, translation) in scenario.translations(&topology) {
        specs[host].card.port = Some(port(translation));
    }
    let mut fabric = Fabric::new(topology, seed, scenario.watch).map_err(Error::Queue)?;
    if let Some(impairments) = scenario.chaos.impairments {
        fabric.impair(impairments, mix(seed));
    }
    fabric.set_path_mtus(scenario.chaos.path_mtus.clone());
    let mut network = LoggedFabric::new(fabric, timeline.window);

    let world = WorldSpec { guests: specs, cores };
    let begin = Instant::now();
    let watch = Watch {
        interrupted: &interrupt::is_pending,
        patience: PATIENCE,
        ends_by_ns: timeline.end_ns + OVERDUE_AFTER_NS,
    };
    let mut world = World::boot(kernel, AGENT, world, &watch).map_err(guests)?;
    let booted = Instant::now();
    let mut pace = Pace::until(timeline.end_ns);
    let mut progress = |moment: &Moment| tick(pace.at(begin.elapsed(), moment.virtual_ns));
    world.run(&mut network, &watch, &mut progress).map_err(guests)?;
    let consoles: Vec<String> = (0..hosts.len()).map(|host| world.console(host)).collect();
    let collect::Collected { flows, pings, tcp } =
        collect::reports(scenario.flows.len(), timeline.window, &consoles)?;
    let translated = collect::observations(scenario, &world, timeline.window, &flows);
    let lost_frames = world.missed_frames();
    drop(world);
    let (mut fabric, log, stopwatch) = network.into_parts();
    let data = RunData {
        flows,
        emulator: EmulatorReport {
            links: fabric.report(),
            ack_gaps_us: fabric.take_ack_gaps(),
            probes: fabric.take_probes(),
            ect: fabric.take_ect(),
            lateness: Lateness::default(),
            failures: 0,
            not_realtime: None,
        },
        bottleneck,
        lost_frames,
        pings,
        tcp,
        translated,
        pools: Vec::new(),
        frame_log: Some(log),
    };
    Ok((data, stopwatch.time_taken(begin, booted)))
}

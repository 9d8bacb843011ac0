//! The second backend: the same scenarios in virtual time, with real guest kernels.
//!
//! Each host is a User-Mode Linux whose clock is the calendar's (`vcc-uml`); the fabric is the one
//! of the live lab; where the scenario has vcc, the port of a driver domain (`vcc-domain`) stands
//! between a guest's card and the fabric. Nothing here depends on how fast or how busy the machine
//! is: the same seed gives the same frames at the same times.

pub mod bench;
mod collect;
mod network;
mod pace;
mod plan;

pub use network::FrameLog;
pub use pace::Pace;

use crate::emulator::{EmulatorReport, Lateness};
use crate::error::{Error, Result};
use crate::fabric::{Fabric, mac_of};
use crate::interrupt;
use crate::run::{RunData, Scenario};
use network::LoggedFabric;
use plan::Timeline;
use std::time::Duration;
use std::time::Instant;
use vcc_uml::{CardSpec, GuestSpec, Kernel, Moment, Watch, World};

/// The program that each guest runs.
const AGENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/vcc-agent"));
/// Of each guest: what a kernel needs, and room for the sockets' buffers of a fast path.
const GUEST_MEMORY_MIB: u32 = 64;
/// As a host's card at 10 Gbit/s does: a burst of full frames takes so long.
const INTERRUPT_EVERY_NS: u64 = 10_000;
const MTU_BYTES: u16 = 1500;
/// A guest does in a moment what takes a machine milliseconds, or seconds where it is very busy.
const PATIENCE: Duration = Duration::from_secs(30);

/// Builds the guests' kernel where it is missing.
pub fn prepare() -> Result<Kernel> {
    Kernel::find_or_build().map_err(guests)
}

/// Whether a scenario can be run in virtual time, told before anything is built.
pub fn check(scenario: &Scenario) -> Result<()> {
    plan::refuse(scenario, &scenario.hosts(&scenario.topology()))
}

fn guests(error: vcc_uml::Error) -> Error {
    match error {
        vcc_uml::Error::Interrupted => Error::Interrupted,
        error => Error::VirtualGuests(error.to_string()),
    }
}

/// `tick` is told how many seconds of the clock on the wall are left, as far as can be seen.
pub fn run_once(
    kernel: &Kernel,
    scenario: &Scenario,
    seed: u64,
    tick: &mut dyn FnMut(f64),
) -> Result<RunData> {
    run_paced(kernel, scenario, MTU_BYTES, seed, tick).map(|(data, _)| data)
}

fn run_paced(
    kernel: &Kernel,
    scenario: &Scenario,
    mtu_bytes: u16,
    seed: u64,
    tick: &mut dyn FnMut(f64),
) -> Result<(RunData, Pace)> {
    let topology = scenario.topology();
    let bottleneck = topology.bottleneck;
    let timeline = Timeline::of(scenario);
    let plans = plan::plans(scenario, &topology, &timeline, seed);
    let cards = topology.guest_rates_bps();
    let hosts = plans.len();
    let specs = plans.iter().enumerate().map(|(host, plan)| {
        Ok(GuestSpec {
            memory_mib: GUEST_MEMORY_MIB,
            plan: serde_json::to_string(plan).map_err(|e| Error::VirtualGuests(e.to_string()))?,
            card: CardSpec {
                mac: mac_of(host),
                mtu_bytes,
                rate_bps: cards[host],
                interrupt_every_ns: INTERRUPT_EVERY_NS,
                port: None,
            },
        })
    });
    let mut specs = specs.collect::<Result<Vec<_>>>()?;
    for (host, translation) in scenario.translations(&topology) {
        specs[host].card.port = Some(translation.port());
    }
    let fabric = Fabric::new(topology, seed, scenario.watch).map_err(Error::Queue)?;
    let mut network = LoggedFabric::new(fabric, timeline.window);

    let begin = Instant::now();
    let watch = Watch { interrupted: &interrupt::is_pending, patience: PATIENCE };
    let mut world = World::boot(kernel, AGENT, specs, &watch).map_err(guests)?;
    let booted = Instant::now();
    let mut tell = |moment: &Moment| {
        // Virtual and wall time pass at a steady rate once the flows are under way.
        let done = moment.virtual_ns as f64 / timeline.window.end_ns as f64;
        tick(begin.elapsed().as_secs_f64() * (1.0 - done).max(0.0) / done.max(0.01));
    };
    world.run(&mut network, &watch, &mut tell).map_err(guests)?;
    let consoles: Vec<String> = (0..hosts).map(|host| world.console(host)).collect();
    let flows = collect::flows(scenario.guests.len(), &consoles)?;
    let translated = collect::observations(scenario, &world);
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
        translated,
        frame_log: Some(log),
    };
    Ok((data, stopwatch.pace(begin, booted)))
}

//! One run of one scenario: build, attach, send, measure, and leave nothing behind.

use super::scenario::Scenario;
use crate::emulator::{self, Control, EmulatorReport};
use crate::error::{Doing, Error, Result};
use crate::fabric::{Fabric, RttSample};
use crate::hosts::Hosts;
use crate::interrupt;
use crate::pools::PoolSeen;
use crate::system::{LockedMemory, now_ns};
use crate::traffic::{self, FlowResult, Senders};
use crate::translate::{Observation, Ports};
use crate::virtual_time::FrameLog;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

/// How often the waiting thread looks up.
const TICK: Duration = Duration::from_millis(100);

/// A guest's pings (RFC 792, echo) to its receiver, with both hosts' stacks in them.
#[derive(Debug, Clone)]
pub struct Pings {
    /// Number of the guest.
    pub guest: usize,
    pub sent: u64,
    /// Those that were answered.
    pub samples: Vec<RttSample>,
}

/// All that a run has brought to light.
pub struct RunData {
    pub flows: Vec<FlowResult>,
    pub emulator: EmulatorReport,
    /// Index of the bottleneck among the links.
    pub bottleneck: usize,
    /// Frames lost by devices, outside the emulated queues.
    pub lost_frames: u64,
    /// One entry for each guest that pings.
    pub pings: Vec<Pings>,
    /// What vcc's ports have seen, one entry for each guest that has vcc.
    pub translated: Vec<Observation>,
    pub pools: Vec<PoolSeen>,
    /// In virtual time: what passed when, as a digest.
    pub frame_log: Option<FrameLog>,
}

/// `tick` is told how many seconds are left.
pub fn run_once(scenario: &Scenario, seed: u64, tick: &mut dyn FnMut(f64)) -> Result<RunData> {
    let topology = scenario.topology();
    let bottleneck = topology.bottleneck;
    let specs = scenario.hosts(&topology);
    let mtu_bytes = scenario.network.mtu_bytes;
    let hosts = Hosts::create(scenario.form, scenario.family, mtu_bytes, &specs)?;
    let plan = scenario.plan(seed);
    let watched = |host| scenario.first_flow_of(host);
    let ports = Ports::attach(&hosts, &scenario.translations(&topology), &watched)?;
    let fabric = Fabric::new(topology, seed, scenario.watch).map_err(Error::Queue)?;
    let (control, senders) = (Control::new(), Senders::default());
    // A page fault in a real-time thread would be a late frame; without the right to lock, the
    // lateness shows in the run's validity.
    let _memory = LockedMemory::lock().ok();

    thread::scope(|scope| {
        let emulator = emulator::start(scope, fabric, hosts.taps(), &control)?;
        let stop = StopOnDrop(&control);
        let generator = thread::Builder::new()
            .name("traffic".into())
            .spawn_scoped(scope, || traffic::run(&plan, &hosts, &control, &senders))
            .doing(|| "start the traffic's thread".into())?;
        let observer = ports.observe(scope, &senders, &control)?;
        while !generator.is_finished() {
            if interrupt::is_pending() || emulator.is_finished() {
                control.stop();
            }
            tick(seconds_left(&plan, &control));
            thread::sleep(TICK);
        }
        let flows = join(generator);
        let lost_frames = hosts.lost_frames();
        drop(stop);
        let emulator = join(emulator)?;
        let observed = join(observer);
        let (flows, translated) = (flows?, observed?);
        let lost_frames = lost_frames?;
        Ok(RunData {
            flows,
            emulator,
            bottleneck,
            lost_frames,
            pings: Vec::new(),
            translated,
            pools: ports.pools()?,
            frame_log: None,
        })
    })
}

/// Ends the threads of a scope on every way out of it.
struct StopOnDrop<'a>(&'a Control);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

fn join<T>(handle: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn seconds_left(plan: &traffic::Plan, control: &Control) -> f64 {
    let window = control.window();
    let left_ns = if window.end_ns == u64::MAX {
        plan.warm_up_ns + plan.measured_ns
    } else {
        window.end_ns.saturating_sub(now_ns())
    };
    left_ns as f64 / 1e9
}

//! Live runs: guests in network namespaces of this machine's kernel, in real time.

mod controls;
mod emulator;
pub mod hosts;
mod pools;
mod ports;
#[cfg(test)]
mod tests;
pub mod traffic;

pub use controls::load as load_congestion_controls;

use crate::base::error::{Doing, Error, Result};
use crate::base::interrupt;
use crate::base::system::{LockedMemory, now_ns};
use crate::scenario::{Plan, Scenario, TcpSwitches};
use emulator::Control;
use hosts::Hosts;
use ports::Ports;
use std::collections::BTreeMap;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;
use traffic::Senders;
use vcc_fabric::Fabric;
use vcc_results::result::RunData;
use vcc_traffic::Pattern;

/// The highest rate that the emulator can keep up with in real time.
const MOST_BPS: u64 = 1_000_000_000;
/// Interval at which the waiting thread reports progress.
const TICK: Duration = Duration::from_millis(100);

/// Checks, before anything is made, whether a scenario can be run in real time.
pub fn check(scenario: &Scenario) -> Result<()> {
    let network = &scenario.network;
    let rate_bps = network.rate_bps.max(network.edge_rate_bps);
    if rate_bps > MOST_BPS {
        return Err(Error::TooFast {
            rate_mbps: rate_bps / 1_000_000,
            most_mbps: MOST_BPS / 1_000_000,
        });
    }
    let cannot = |what| Err(Error::VirtualOnly { what });
    let hosts = scenario.hosts(&scenario.topology());
    if hosts.iter().any(|host| host.vcpu.is_some()) {
        return cannot("cores that guests share");
    }
    let translations = scenario.translations(&scenario.topology());
    if translations.iter().any(|(_, translation)| translation.keeps_frames()) {
        return cannot("ports that hold their guest's segments or acknowledge in its name");
    }
    if translations.iter().any(|(_, translation)| translation.params.0.emit != 0) {
        return cannot("segments that a port sends to its guest by itself");
    }
    if hosts.iter().any(|host| host.accecn) {
        return cannot("guests with AccECN");
    }
    if hosts.iter().any(|host| host.cheat.is_some()) {
        return cannot("guests that cheat");
    }
    if hosts.iter().any(|host| host.interrupt_every_ns.is_some()) {
        return cannot("interrupts of guests' cards");
    }
    if hosts.iter().any(|host| host.receive_buffer_bytes.is_some()) {
        return cannot("receive buffers of guests");
    }
    if hosts.iter().any(|host| host.backlog_segs > 0) {
        return cannot("backlogs behind guests' rings");
    }
    if scenario.guests.iter().any(|guest| guest.ping_every_us.is_some()) {
        return cannot("pings of guests");
    }
    if scenario.guests.iter().any(|guest| !guest.small_queues) {
        return cannot("guests without small queues");
    }
    if scenario.guests.iter().any(|guest| guest.tcp != TcpSwitches::default()) {
        return cannot("switches of guests' TCP");
    }
    if scenario.flows.iter().any(|flow| matches!(flow.pattern, Pattern::Transfers(_))) {
        return cannot("transfers over connections of their own");
    }
    if scenario.flows.iter().any(|flow| matches!(flow.pattern, Pattern::Messages(_))) {
        return cannot("messages of workers");
    }
    if scenario.flows.iter().any(|flow| matches!(flow.pattern, Pattern::Requests(_))) {
        return cannot("requests and responses");
    }
    Ok(())
}

/// Runs one scenario once and leaves nothing behind. `tick` receives the seconds that are left.
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
            tcp: BTreeMap::new(),
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

fn seconds_left(plan: &Plan, control: &Control) -> f64 {
    let window = control.window();
    let left_ns = if window.end_ns == u64::MAX {
        plan.warm_up_ns + plan.measured_ns
    } else {
        window.end_ns.saturating_sub(now_ns())
    };
    left_ns as f64 / 1e9
}

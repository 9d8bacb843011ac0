//! One half of a run: some traffic, treated or not, and what the machine had to do for it.

use super::connections::{OpenFiles, PORT, accept_all, connect_all, own_file_table};
use super::devices::{Place, Wire};
use super::experiment::{Case, Treatment};
use super::meter::{Reading, Usage};
use super::traffic::{self, Progress};
use super::translated::Attached;
use crate::error::{Error, Result};
use crate::hosts::Proxy;
use crate::interrupt;
use crate::system::now_ns;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;
use vcc_port::RunTime;
use vcc_port::bench::pin_to_cpu;

/// As on two hosts; which of them pays for a segment's way is not the scheduler's choice then.
const SENDER_CPU: usize = 0;
const RECEIVER_CPU: usize = 1;
const TICK: Duration = Duration::from_millis(100);
/// A run that brings less of what its flows want to send is one of a machine that is too slow.
const LEAST_SHARE: f64 = 0.98;
/// Beyond, caches and run queues are more theirs than ours.
const MOST_STRANGERS: f64 = 0.5;

pub struct Half {
    pub usage: Usage,
    pub seconds: f64,
    pub received_bytes: u64,
    /// Of vcc's own programs.
    pub programs: RunTime,
    /// Why it does not count.
    pub doubts: Vec<String>,
}

impl Half {
    pub fn goodput_mbps(&self) -> f64 {
        self.received_bytes as f64 * 8.0 / self.seconds / 1e6
    }

    pub fn cpu_s_per_gb(&self) -> f64 {
        self.usage.seconds() * 1e9 / self.received_bytes as f64
    }
}

/// Connections begin after the treatment has, and end with it. `tick` is told how many seconds
/// are left.
pub fn run(
    wire: &Wire,
    case: &Case,
    treatment: &Treatment,
    times: Times,
    tick: &mut dyn FnMut(f64),
) -> Result<Half> {
    wire.set_ecn(Place::Sender, treatment.sender.ecn)?;
    wire.set_ecn(Place::Receiver, treatment.receiver.ecn)?;
    let _limited = treatment.rate_limit_bps.map(|bps| wire.limit(bps)).transpose()?;
    let vcc = [
        (Place::Sender, treatment.sender.translation.as_ref()),
        (Place::Receiver, treatment.receiver.translation.as_ref()),
    ];
    let attached = Attached::attach(wire, vcc)?;
    let to = SocketAddr::new(Place::Receiver.address(), PORT);
    // Each end has a table of files of its own. A proxy inherits the limit, and has two sockets a
    // flow; without one that limit need not be raised so far, for not everybody may.
    let sockets_a_flow = 1 + usize::from(treatment.proxy.is_some());
    let _files = OpenFiles::allow(sockets_a_flow * case.flows)?;
    let proxy = treatment.proxy.as_ref().map(|name| wire.proxy(name, to)).transpose()?;
    let to = proxy.as_ref().map_or(to, Proxy::address);
    let mut half = measure(wire, to, case, times, &attached, tick)?;
    let wanted_bytes = case.demand.bytes_per_s(case.flows).map(|rate| rate * half.seconds);
    half.doubts.extend(doubts(&half, wanted_bytes));
    Ok(half)
}

#[derive(Debug, Clone, Copy)]
pub struct Times {
    pub warm_up: Duration,
    pub measured: Duration,
}

/// The sender connects to `to`.
fn measure(
    wire: &Wire,
    to: SocketAddr,
    case: &Case,
    times: Times,
    attached: &Attached,
    tick: &mut dyn FnMut(f64),
) -> Result<Half> {
    let progress = &Progress::default();
    // Each is moved to the end that speaks, so that whoever listens notices when it has failed.
    let (ready, is_ready) = mpsc::channel();
    let (connected, is_connected) = mpsc::channel();
    let receive = move || {
        own_file_table()?;
        let _ = pin_to_cpu(RECEIVER_CPU);
        let sockets = accept_all(case.flows, &ready, &|| progress.is_stopped())?;
        traffic::receive(&sockets, progress)
    };
    let send = move || {
        let _ = pin_to_cpu(SENDER_CPU);
        let sockets = connect_all(to, case.flows, &is_ready)?;
        // Nobody waits for it any more only where this run has failed.
        let _ = connected.send(());
        traffic::send(&sockets, case.demand, progress)
    };
    thread::scope(|scope| {
        let stop = StopOnDrop(progress);
        let receiver = scope.spawn(move || wire.guest(Place::Receiver).inside(receive));
        let sender = scope.spawn(move || wire.guest(Place::Sender).inside(send));
        let has_ended = || sender.is_finished() || receiver.is_finished();
        let mut measured = || {
            let measured_s = times.measured.as_secs_f64();
            if is_connected.recv().is_err() {
                return Ok(None);
            }
            wait(times.warm_up, &has_ended, &mut |left_s| tick(left_s + measured_s))?;
            let (start, start_ns) = (Reading::take()?, now_ns());
            let programs_before = attached.run_time()?;
            let passed_by_before = attached.passed_by()?;
            let bytes_before = progress.received_bytes();
            wait(times.measured, &has_ended, tick)?;
            let received_bytes = progress.received_bytes() - bytes_before;
            let seconds = (now_ns() - start_ns) as f64 / 1e9;
            let programs = attached.run_time()? - programs_before;
            let usage = start.until(&Reading::take()?);
            // While they are there: flows that have ended are not managed any more.
            let doubts = attached.doubts(case.flows, &passed_by_before)?;
            Ok(Some(Half { usage, seconds, received_bytes, programs, doubts }))
        };
        let half = measured();
        drop(stop);
        // Of an end that failed and one that therefore did, the first knows why.
        join(receiver)?;
        join(sender)?;
        half?.ok_or(Error::Interrupted)
    })
}

/// Early, if a thread has ended: it says why when it is joined.
fn wait(time: Duration, has_ended: &dyn Fn() -> bool, tick: &mut dyn FnMut(f64)) -> Result<()> {
    let end_ns = now_ns() + time.as_nanos() as u64;
    loop {
        let left = Duration::from_nanos(end_ns.saturating_sub(now_ns()));
        if interrupt::is_pending() {
            return Err(Error::Interrupted);
        }
        if left.is_zero() || has_ended() {
            return Ok(());
        }
        tick(left.as_secs_f64());
        thread::sleep(left.min(TICK));
    }
}

/// Ends the threads of a scope on every way out of it.
struct StopOnDrop<'a>(&'a Progress);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

fn join<T>(handle: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn doubts(half: &Half, wanted_bytes: Option<f64>) -> Vec<String> {
    let mut doubts = Vec::new();
    let share = wanted_bytes.map_or(1.0, |wanted| half.received_bytes as f64 / wanted);
    if share < LEAST_SHARE {
        doubts.push(format!(
            "goodput is {:.1} % of what the flows want to send: the machine is too slow or too busy",
            share * 100.0
        ));
    }
    let strangers = half.usage.strangers_share();
    if strangers > MOST_STRANGERS {
        doubts.push(format!("other processes took {:.0} % of the CPU", strangers * 100.0));
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_half_is_doubted_for_little_traffic_and_for_strangers() {
        let half = |received_bytes, strangers_s| Half {
            usage: Usage { capacity_s: 20.0, busy_s: 15.0, own_s: 1.0, strangers_s },
            seconds: 10.0,
            received_bytes,
            programs: RunTime::default(),
            doubts: Vec::new(),
        };
        assert!(doubts(&half(99, 4.0), Some(100.0)).is_empty());
        assert!(doubts(&half(97, 4.0), None).is_empty());
        assert!(doubts(&half(97, 4.0), Some(100.0))[0].contains("97.0 %"));
        assert!(doubts(&half(99, 12.0), Some(100.0))[0].contains("60 %"));
    }
}

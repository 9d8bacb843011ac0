//! The fabric in real time: one thread between the hosts' TAPs and the virtual-time links.

use super::hosts::Tap;
use crate::base::error::{Doing, Result};
use crate::base::system::{Epoll, become_realtime, now_ns};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use vcc_fabric::{Fabric, Window};
use vcc_results::result::{EmulatorReport, Lateness};

/// Above the traffic generator: a late link would be a wrong link.
const REALTIME_PRIORITY: i32 = 50;
const LONGEST_SLEEP_NS: u64 = 20_000_000;
/// Batch sizes of deliveries and of reads, which alternate.
const DELIVERIES_AT_ONCE: usize = 256;
const READS_AT_ONCE: usize = 64;

/// State shared between the emulator's thread and those of traffic and observer.
pub struct Control {
    stop: AtomicBool,
    window_start_ns: AtomicU64,
    window_end_ns: AtomicU64,
}

impl Control {
    pub fn new() -> Self {
        Self {
            stop: AtomicBool::new(false),
            window_start_ns: AtomicU64::new(Window::NEVER.start_ns),
            window_end_ns: AtomicU64::new(Window::NEVER.end_ns),
        }
    }

    /// Sets the window of measurement; well before it begins.
    pub fn set_window(&self, window: Window) {
        self.window_end_ns.store(window.end_ns, Ordering::Relaxed);
        self.window_start_ns.store(window.start_ns, Ordering::Release);
    }

    pub fn window(&self) -> Window {
        let start_ns = self.window_start_ns.load(Ordering::Acquire);
        Window { start_ns, end_ns: self.window_end_ns.load(Ordering::Relaxed) }
    }

    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Starts the thread; it runs until [`Control::stop`].
pub fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    fabric: Fabric,
    taps: &'scope [Tap],
    control: &'scope Control,
) -> Result<ScopedJoinHandle<'scope, Result<EmulatorReport>>> {
    std::thread::Builder::new()
        .name("fabric".into())
        .spawn_scoped(scope, || Emulator::new(fabric, taps)?.run(control))
        .doing(|| "start the emulator's thread".into())
}

struct Emulator<'a> {
    fabric: Fabric,
    taps: &'a [Tap],
    epoll: Epoll,
    lateness: Lateness,
    failures: u64,
}

impl<'a> Emulator<'a> {
    fn new(fabric: Fabric, taps: &'a [Tap]) -> Result<Self> {
        let epoll = Epoll::new()?;
        for (host, tap) in taps.iter().enumerate() {
            epoll.add(tap.fd(), libc::EPOLLIN, host)?;
        }
        Ok(Self { fabric, taps, epoll, lateness: Lateness::default(), failures: 0 })
    }

    fn run(mut self, control: &Control) -> Result<EmulatorReport> {
        let not_realtime = become_realtime(REALTIME_PRIORITY).err().map(|error| error.to_string());
        let mut ready = Vec::new();
        while !control.is_stopped() {
            self.fabric.set_window(control.window());
            self.deliver();
            let next_ns = self.fabric.next_event_ns().unwrap_or(u64::MAX);
            let sleep_ns = next_ns.saturating_sub(now_ns()).min(LONGEST_SLEEP_NS);
            ready.clear();
            ready.extend(self.epoll.wait(sleep_ns)?);
            ready.iter().for_each(|&host| self.read(host));
        }
        Ok(EmulatorReport {
            links: self.fabric.report(),
            ack_gaps_us: self.fabric.take_ack_gaps(),
            probes: self.fabric.take_probes(),
            ect: self.fabric.take_ect(),
            lateness: self.lateness,
            failures: self.failures,
            not_realtime,
        })
    }

    fn deliver(&mut self) {
        for _ in 0..DELIVERIES_AT_ONCE {
            let now_ns = now_ns();
            let Some(delivery) = self.fabric.next_delivery(now_ns) else { break };
            self.lateness.note(now_ns - delivery.due_ns);
            if !self.taps[delivery.host].write(&delivery.frame) {
                self.failures += 1;
            }
            self.fabric.recycle(delivery.frame);
        }
    }

    fn read(&mut self, host: usize) {
        for _ in 0..READS_AT_ONCE {
            let mut frame = self.fabric.buffer();
            match self.taps[host].read(&mut frame) {
                Ok(true) => self.fabric.inject(host, now_ns(), frame),
                Ok(false) => return self.fabric.recycle(frame),
                Err(_) => {
                    self.failures += 1;
                    return self.fabric.recycle(frame);
                }
            }
        }
    }
}

//! Reads ports and flows, again and again.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use vcc_port::Port;

use super::flow::FlowKey;
use super::rates::{Counters, Progress};
use super::{FlowView, PortView, RuleView, rule};

/// So often flows are read, that sequence numbers do not go round in between at 34 Gbit/s.
const AT_LEAST_EVERY: Duration = Duration::from_millis(500);

pub struct Sampler {
    devices: Vec<String>,
    progress: Progress,
    /// When flows were read last, or should have been.
    read: Option<Instant>,
}

/// What was read at one time.
#[derive(Clone, Default)]
pub struct Snapshot {
    pub unix_time_s: f64,
    pub ports: Vec<PortView>,
    /// Of the host's policy, if it has one.
    pub rules: Vec<RuleView>,
    pub flows: Vec<FlowView>,
    /// Devices that had gone, and whose remains were removed.
    pub gone: Vec<String>,
}

impl Sampler {
    /// Of these devices; with none, of all ports.
    pub fn new(devices: &[String]) -> Self {
        Self { devices: devices.into(), progress: Progress::default(), read: None }
    }

    /// How much of the time that is left may pass before [`Self::keep_up`], however rarely somebody
    /// looks.
    pub fn pause(&self, left: Duration) -> Duration {
        let passed = self.read.map_or(AT_LEAST_EVERY, |read| read.elapsed());
        left.min(AT_LEAST_EVERY.saturating_sub(passed))
    }

    /// Reads for the rates alone, if that has been put off for as long as they bear.
    pub fn keep_up(&mut self) -> anyhow::Result<()> {
        if self.pause(Duration::MAX).is_zero() { self.note() } else { Ok(()) }
    }

    /// A read for the rates alone.
    pub fn note(&mut self) -> anyhow::Result<()> {
        self.read = Some(Instant::now());
        let mut flows = Vec::new();
        let ports = self.open()?;
        for port in &ports {
            flows.push(port.flows()?);
        }
        let at = monotonic()?;
        for (name, flows) in keys(&ports).iter().zip(&flows) {
            for flow in flows {
                self.progress.note(at, (name.clone(), flow.id()), Counters::of(&flow.state));
            }
        }
        self.progress.forget();
        Ok(())
    }

    /// Rates are of the time since the last snapshot.
    pub fn snapshot(&mut self) -> anyhow::Result<Snapshot> {
        self.read = Some(Instant::now());
        let gone = Port::sweep()?;
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut snapshot =
            Snapshot { unix_time_s: since_1970.as_secs_f64(), gone, ..Default::default() };
        let ports = self.open()?;
        let rules;
        (rules, snapshot.rules) = rule::read()?;
        for (name, port) in keys(&ports).iter().zip(&ports) {
            let params = port.params()?;
            let ruled = port.index()?.is_some();
            let flows = port.flows()?;
            let at = monotonic()?;
            let now_us = at.as_micros() as u64;
            snapshot.ports.push(PortView::new(port, &params, ruled, flows.len())?);
            for flow in &flows {
                let key: FlowKey = (name.clone(), flow.id());
                self.progress.note(at, key.clone(), Counters::of(&flow.state));
                let rates = self.progress.take(at, &key);
                let rule = rules.of(&flow.state).filter(|_| ruled);
                let params = rule.map_or(&params, |rule| &rule.params);
                let mut view = FlowView::new(port.device(), key, flow, params, now_us);
                view.rule = rule.map(|rule| rule.name.clone());
                if let Some(rates) = rates {
                    view.set_rates(&rates);
                }
                snapshot.flows.push(view);
            }
        }
        self.progress.forget();
        Ok(snapshot)
    }

    fn open(&self) -> anyhow::Result<Vec<Port>> {
        if self.devices.is_empty() {
            return Ok(Port::list()?);
        }
        Ok(self.devices.iter().map(|device| Port::open(device)).collect::<Result<_, _>>()?)
    }
}

/// What tells ports apart: their names, and a number where devices of several network namespaces
/// have the same.
fn keys(ports: &[Port]) -> Vec<Arc<str>> {
    let same = |at: usize| {
        let name = ports[at].device();
        ports[..at].iter().filter(|port| port.device() == name).count()
    };
    let key = |at: usize| match same(at) {
        0 => ports[at].device().into(),
        earlier => format!("{} {}", ports[at].device(), earlier + 1).into(),
    };
    (0..ports.len()).map(key).collect()
}

/// The clock that flows' state is written with.
pub fn monotonic() -> io::Result<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure outlives the call.
    if unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

//! Reads ports and flows repeatedly.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use vcc_port::{Error, Port, SharedPolicy};

use crate::clock::monotonic;
use crate::flow::{FlowView, Place};
use crate::names::keys;
use crate::port::{PortView, read_flows};
use crate::rates::{Counted, Progress, READ_EVERY};
use crate::rule::{RuleView, RulesInForce};

pub struct Sampler {
    devices: Vec<String>,
    progress: Progress,
    /// The time of the last attempt to read flows.
    read: Option<Instant>,
}

/// One read.
#[derive(Clone, Default)]
pub struct Snapshot {
    pub unix_time_s: f64,
    pub ports: Vec<PortView>,
    /// The rules of the host's policy; empty without a policy.
    pub rules: Vec<RuleView>,
    pub flows: Vec<FlowView>,
    /// Devices that are gone, and whose pins were removed.
    pub gone: Vec<String>,
}

impl Sampler {
    /// Samples the ports of these devices, or all ports if `devices` is empty.
    pub fn new(devices: &[String]) -> Self {
        Self { devices: devices.into(), progress: Progress::default(), read: None }
    }

    /// The part of `left` that may pass before [`Self::keep_up`], whatever the interval of
    /// snapshots.
    pub fn pause(&self, left: Duration) -> Duration {
        let passed = self.read.map_or(READ_EVERY, |read| read.elapsed());
        left.min(READ_EVERY.saturating_sub(passed))
    }

    /// Reads flows for the rates alone, if that is due.
    pub fn keep_up(&mut self) -> Result<(), Error> {
        if self.pause(Duration::MAX).is_zero() { self.note() } else { Ok(()) }
    }

    /// Reads flows for the rates alone.
    pub fn note(&mut self) -> Result<(), Error> {
        self.read = Some(Instant::now());
        let ports = self.open()?;
        for (key, port) in keys(ports.iter().map(Port::device)).iter().zip(&ports) {
            let flows = port.flows()?;
            let at = now();
            for flow in flows {
                self.progress.note(at, (key.clone(), flow.id()), Counted::of(&flow.state));
            }
        }
        self.progress.forget();
        Ok(())
    }

    /// Reads all ports and flows. Rates cover the time since the last snapshot.
    pub fn snapshot(&mut self) -> Result<Snapshot, Error> {
        self.read = Some(Instant::now());
        let gone = Port::sweep()?;
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut snapshot =
            Snapshot { unix_time_s: since_1970.as_secs_f64(), gone, ..Default::default() };
        let ports = self.open()?;
        let shared = SharedPolicy::find()?;
        let rules = RulesInForce::read(shared.as_ref())?;
        snapshot.rules = rules.views(shared.as_ref())?;
        let keys = keys(ports.iter().map(Port::device));
        for (index, (key, port)) in keys.into_iter().zip(&ports).enumerate() {
            let place = Place { index, key, port: port.device().into(), tenant: None };
            let mut flows = read_flows(port, &place, &rules)?;
            let at = now();
            for flow in &mut flows {
                self.progress.note(at, flow.key.clone(), Counted::of(&flow.state));
                flow.rates = self.progress.take(at, &flow.key);
            }
            snapshot.ports.push(PortView::read(port, flows.len())?);
            snapshot.flows.append(&mut flows);
        }
        self.progress.forget();
        Ok(snapshot)
    }

    fn open(&self) -> Result<Vec<Port>, Error> {
        if self.devices.is_empty() {
            return Port::list();
        }
        self.devices.iter().map(|device| Port::open(device)).collect()
    }
}

/// CLOCK_MONOTONIC cannot fail on Linux.
fn now() -> Duration {
    monotonic().unwrap_or_default()
}

//! Reads ports and flows repeatedly.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use vcc_port::{Error, Port, SharedPolicy};

use crate::cost::{CostWatch, Counting};
use crate::cpu::CpuWatch;
use crate::flow::{FlowView, Place};
use crate::names::keys;
use crate::pace::{Group, Grown, Pace, sum_up};
use crate::port::{PortView, view_flows};
use crate::rates::{Counted, Progress, READ_EVERY};
use crate::rule::{RuleView, RulesInForce};
use crate::source::Source;
use crate::watch::Watches;

pub struct Sampler {
    devices: Vec<String>,
    progress: Progress,
    /// Since it began.
    grown: Grown,
    /// From one snapshot to the next.
    pace: Pace,
    /// From one snapshot to the next, too, if they are wanted.
    cpus: Option<Watches<CpuWatch>>,
    /// Likewise.
    costs: Option<(Counting, Watches<CostWatch>)>,
    /// The time of the last attempt to read flows.
    read: Option<Instant>,
}

struct Reading {
    at: Duration,
    ports: Vec<Source>,
    rules: Vec<RuleView>,
    flows: Vec<FlowView>,
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
        let (progress, grown) = (Progress::default(), Grown::new());
        let pace = Pace::over(Duration::ZERO);
        Self { devices: devices.into(), progress, grown, pace, cpus: None, costs: None, read: None }
    }

    /// Looks at the guests' CPUs, too, which takes a look at every process of the host.
    #[must_use]
    pub fn with_cpus(self) -> Self {
        Self { cpus: Some(Watches::default()), ..self }
    }

    /// Looks at what ports cost, too; see [`Counting`].
    #[must_use]
    pub fn with_costs(self) -> Self {
        Self { costs: Some((Counting::begin(), Watches::default())), ..self }
    }

    /// The part of `left` that may pass before [`Self::keep_up`], for any interval of
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
        self.read().map(drop)
    }

    /// Reads all ports and flows. Rates cover the time since the last snapshot.
    pub fn snapshot(&mut self) -> Result<Snapshot, Error> {
        let gone = Port::sweep()?;
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let Reading { at, ports, mut rules, mut flows } = self.read()?;
        for flow in &mut flows {
            flow.rates = self.progress.take(at, &flow.key);
        }
        let cpus = self.cpus.as_mut().map(|cpus| cpus.next(&ports)).unwrap_or_default();
        let costs = self.costs.as_mut().map(|(_, costs)| costs.next(&ports)).unwrap_or_default();
        let mut ports = ports.iter().map(PortView::read).collect::<Result<Vec<_>, _>>()?;
        for (port, cpu) in ports.iter_mut().zip(cpus) {
            port.cpu = cpu;
        }
        for (port, cost) in ports.iter_mut().zip(costs) {
            port.cost = cost;
        }
        self.pace.note(at, self.grown.clone());
        sum_up(&mut ports, &mut rules, &flows, None, &self.pace);
        Ok(Snapshot { unix_time_s: since_1970.as_secs_f64(), ports, rules, flows, gone })
    }

    fn read(&mut self) -> Result<Reading, Error> {
        self.read = Some(Instant::now());
        let ports = Source::open_all(&self.devices)?;
        let shared = SharedPolicy::find()?;
        let in_force = RulesInForce::read(shared.as_ref())?;
        let mut rules = in_force.views(shared.as_ref())?;
        ports.iter().for_each(|port| port.add_rules(&mut rules));
        let keys = keys(ports.iter().map(Source::device));
        let groups = keys.iter().cloned().map(Group::Port);
        let groups = groups.chain(rules.iter().map(|rule| Group::Rule(rule.name.clone())));
        for group in groups.chain([Group::All]) {
            self.grown.entry(group).or_default();
        }
        let mut flows = Vec::new();
        let in_kernel = Source::kernel_flows(&ports)?;
        for (index, (key, port)) in keys.into_iter().zip(&ports).enumerate() {
            let place = Place { index, key, port: port.device().into(), tenant: None };
            flows.append(&mut view_flows(port, &in_kernel[index], &place, &in_force)?);
        }
        let at = vcc_port::monotonic();
        for flow in &flows {
            let growth = self.progress.note(at, flow.key.clone(), Counted::from_state(&flow.state));
            let rule = flow.rule.clone().map(Group::Rule);
            for group in [Group::All, Group::Port(flow.key.0.clone())].into_iter().chain(rule) {
                *self.grown.entry(group).or_default() += growth;
            }
        }
        self.progress.forget();
        Ok(Reading { at, ports, rules, flows })
    }
}

//! What an experiment file says, as it says it.

mod bounded;
mod flows;
mod group;
mod vcc;
mod vcpu;

pub use bounded::{Bytes, Ms, PoolWeight};
pub(super) use bounded::{Count, IntervalUs, ModerationUs, Percent};
pub(super) use flows::{FlowGroup, FlowPattern};
pub(super) use group::{Group, Receivers};
pub use vcc::{Vcc, VccMode};
pub(super) use vcpu::{Background, Core, SchedulerKind, Vcpu};

use crate::scenario::{Family, HostForm};
use bounded::{Alpha, DelayUs, Mbps, MtuBytes, Phases};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use vcc_fabric::{AnyQueue, TopologyKind};
use vcc_results::measure::MetricSpec;
use vcc_results::report::{Expectation, InShort, Plot};
use vcc_results::result::{Backend, Stack};

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub id: String,
    pub title: String,
    /// What the paper did and measured.
    pub paper: String,
    /// Where this differs from the paper.
    #[serde(default)]
    pub scale: Option<String>,
    pub network: Network,
    #[serde(default)]
    pub hosts: HostForm,
    #[serde(default)]
    pub family: Family,
    #[serde(default)]
    pub stack: Stack,
    /// What carries it, where a run does not say.
    #[serde(default)]
    pub backend: Backend,
    pub queues: BTreeMap<String, AnyQueue>,
    /// Read here to be checked; what a case makes of it counts.
    #[serde(default, rename = "cores")]
    pub _cores: BTreeMap<String, Core>,
    /// Windows that flows share, by their names.
    #[serde(default)]
    pub pools: BTreeMap<String, Bytes>,
    pub duration: Duration,
    #[serde(default)]
    pub observe: Observe,
    /// Read here to be checked; what a case makes of it counts.
    #[serde(default, rename = "receivers")]
    pub _receivers: Receivers,
    pub guests: Vec<Group>,
    /// Each guest has one, to its receiver, if left out.
    #[serde(default)]
    pub flows: Vec<FlowGroup>,
    pub metrics: Vec<MetricSpec>,
    pub cases: Vec<CaseSpec>,
    pub plot: Plot,
    /// What a run of it ends with.
    #[serde(default)]
    pub in_short: Option<InShort>,
}

impl File {
    /// What metrics and reports call the flows.
    pub fn flow_groups(&self) -> impl Iterator<Item = &str> {
        let guests = self.guests.iter().filter(|_| self.flows.is_empty());
        let flows = self.flows.iter().map(|group| group.name.as_str());
        guests.map(|group| group.name.as_str()).chain(flows)
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Network {
    pub topology: TopologyKind,
    /// Of the bottleneck.
    pub rate_mbps: Mbps,
    /// Of the links between hosts and switches; the bottleneck's rate if left out.
    #[serde(default)]
    pub edge_rate_mbps: Option<Mbps>,
    /// Of each link, one way.
    pub delay_us: DelayUs,
    /// Of every host's device.
    #[serde(default)]
    pub mtu_bytes: MtuBytes,
    /// At the bottleneck, and wherever else the topology has one: one of `queues`.
    pub queue: String,
    /// What the queues of each switch share; without it each has its own room.
    #[serde(default)]
    pub switch_memory: Option<SwitchMemory>,
    /// Of a two-tier network: how many switches at which there are hosts, and how many between
    /// those.
    #[serde(default)]
    pub leaves: usize,
    #[serde(default)]
    pub spines: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SwitchMemory {
    pub bytes: Bytes,
    /// No queue may have more than so many times what is free.
    pub alpha: Alpha,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Duration {
    pub warm_up_s: f64,
    pub measured_s: f64,
    pub runs: u32,
    /// Equal parts of the measured time, in which flows can join and leave.
    #[serde(default)]
    pub phases: Phases,
    pub quick: QuickDuration,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QuickDuration {
    pub warm_up_s: f64,
    pub measured_s: f64,
    pub runs: u32,
}

/// What a case can change of a file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Setup {
    pub network: Network,
    #[serde(default)]
    pub cores: BTreeMap<String, Core>,
    #[serde(default)]
    pub receivers: Receivers,
    pub guests: Vec<Group>,
    #[serde(default)]
    pub flows: Vec<FlowGroup>,
}

/// What is recorded beside the counters.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Observe {
    /// Sample the senders' windows this often.
    #[serde(default)]
    pub windows_every_us: Option<IntervalUs>,
    /// Sample the bottleneck's queue this often.
    #[serde(default)]
    pub queue_every_us: Option<IntervalUs>,
    /// Sample what each flow has brought to its receiver this often.
    #[serde(default)]
    pub goodput_every_us: Option<IntervalUs>,
    /// Send a probe through the bottleneck about this often.
    #[serde(default)]
    pub probe_every_us: Option<IntervalUs>,
    /// Keep the times between acknowledgements.
    #[serde(default)]
    pub ack_gaps: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CaseSpec {
    pub name: String,
    /// The next four change what the file says under the same names: see [`super::change`].
    #[serde(default, rename = "network")]
    pub _network: IgnoredAny,
    #[serde(default, rename = "cores")]
    pub _cores: IgnoredAny,
    #[serde(default, rename = "receivers")]
    pub _receivers: IgnoredAny,
    #[serde(default)]
    pub guests: BTreeMap<String, IgnoredAny>,
    #[serde(default)]
    pub flows: BTreeMap<String, IgnoredAny>,
    /// Makes this one case for each row: how many guests of each group, in the file's order.
    #[serde(default)]
    pub mixes: Vec<Vec<Count>>,
    /// A run with less of what the bottleneck can carry is not valid.
    #[serde(default = "usual_floor")]
    pub goodput_floor: f64,
    /// Where the case stands in a curve, and in which.
    #[serde(default)]
    pub x: Option<f64>,
    #[serde(default)]
    pub series: Option<String>,
    #[serde(default)]
    pub expect: BTreeMap<String, Expectation>,
}

fn usual_floor() -> f64 {
    0.98
}

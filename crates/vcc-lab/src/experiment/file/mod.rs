//! The format of experiment files.

mod bounded;
mod flows;
mod group;
mod requests;
mod vcc;
mod vcpu;

pub use bounded::{Bytes, Ms};
pub(super) use bounded::{Count, IntervalUs, ModerationUs, Percent, Share};
pub(super) use flows::{FlowGroup, FlowPattern};
pub(super) use group::{Group, Receivers};
pub(super) use requests::Request;
pub use vcc::{Vcc, VccMode};
pub(super) use vcpu::{Background, Core, SchedulerKind, Vcpu};

use super::duration::Quick;
use crate::scenario::{Family, HostForm};
use bounded::{Alpha, DelayUs, Mbps, MtuBytes, Phases};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use vcc_fabric::{AnyQueue, TopologyKind};
use vcc_results::measure::MetricSpec;
use vcc_results::report::{Expectation, Headline, InShort, Plot};
use vcc_results::result::{Backend, Schedule, Stack};

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub id: String,
    pub title: String,
    /// The paper's experiment and its measurement.
    pub paper: String,
    /// Differences from the paper.
    #[serde(default)]
    pub scale: Option<String>,
    /// What it shows, in a sentence, and the figure that shows it: for the table of all results.
    #[serde(default)]
    pub claim: Option<String>,
    #[serde(default)]
    pub headline: Option<Headline>,
    pub network: Network,
    #[serde(default)]
    pub hosts: HostForm,
    #[serde(default)]
    pub family: Family,
    #[serde(default)]
    pub stack: Stack,
    /// Its backend, unless a run chooses another.
    #[serde(default)]
    pub backend: Backend,
    pub queues: BTreeMap<String, AnyQueue>,
    /// Parsed here for its errors only; a case's merged tables are used.
    #[serde(default, rename = "cores")]
    pub _cores: BTreeMap<String, Core>,
    /// Windows that flows share, by their names.
    #[serde(default)]
    pub pools: BTreeMap<String, Bytes>,
    pub duration: Duration,
    #[serde(default)]
    pub observe: Observe,
    /// Read here to be checked; the value that a case makes of it applies.
    #[serde(default, rename = "receivers")]
    pub _receivers: Receivers,
    pub guests: Vec<Group>,
    /// Each guest has one, to its receiver, if left out.
    #[serde(default)]
    pub flows: Vec<FlowGroup>,
    /// What flows of requests carry, by their names.
    #[serde(default)]
    pub requests: BTreeMap<String, Request>,
    pub metrics: Vec<MetricSpec>,
    pub cases: Vec<CaseSpec>,
    pub plot: Plot,
    /// The sentence that a run of it ends with.
    #[serde(default)]
    pub in_short: Option<InShort>,
}

impl File {
    /// Names of the groups of flows in metrics and reports.
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
    /// Rate of the bottleneck.
    pub rate_mbps: Mbps,
    /// Rate of the links between hosts and switches; the bottleneck's if left out.
    #[serde(default)]
    pub edge_rate_mbps: Option<Mbps>,
    /// One-way delay of each link.
    pub delay_us: DelayUs,
    /// MTU of every host's device.
    #[serde(default)]
    pub mtu_bytes: MtuBytes,
    /// At the bottleneck, and wherever else the topology has one: one of `queues`.
    pub queue: String,
    /// Memory that the queues of each switch share; without it each has its own room.
    #[serde(default)]
    pub switch_memory: Option<SwitchMemory>,
    /// For a two-tier network: the number of leaf and of spine switches.
    #[serde(default)]
    pub leaves: usize,
    #[serde(default)]
    pub spines: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SwitchMemory {
    pub bytes: Bytes,
    /// A queue's limit, as a multiple of the free memory.
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
    pub quick: Quick,
}

impl Duration {
    pub fn schedule(&self, quick: bool) -> Schedule {
        let Self { warm_up_s, measured_s, runs, .. } = *self;
        if quick { self.quick.schedule() } else { Schedule { warm_up_s, measured_s, runs } }
    }
}

/// The tables of a file that a case can change.
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

/// Sampling besides the counters.
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
    /// One case per row: the number of guests of each group, in the file's order.
    #[serde(default)]
    pub mixes: Vec<Vec<Count>>,
    /// One case per number of the guests of a group.
    #[serde(default)]
    pub counts: BTreeMap<String, Vec<Count>>,
    /// A run with a smaller share of the bottleneck's capacity is not valid.
    #[serde(default = "usual_floor")]
    pub goodput_floor: f64,
    /// Frames for which a guest's ring has no room are a result, and no fault of the run.
    #[serde(default)]
    pub ring_overflows: bool,
    /// The case's place on a curve, and the name of the curve.
    #[serde(default)]
    pub x: Option<f64>,
    #[serde(default)]
    pub series: Option<String>,
    /// The part of the figure that the curve is in.
    #[serde(default)]
    pub panel: String,
    #[serde(default)]
    pub expect: BTreeMap<String, Expectation>,
}

fn usual_floor() -> f64 {
    0.98
}

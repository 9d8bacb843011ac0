//! The format of experiment files with a `[network]`.

mod flows;
mod group;
mod requests;
mod vcpu;

pub use flows::{FlowGroup, FlowPattern};
pub use group::{Group, Receivers};
pub use requests::Request;
pub use vcpu::{Background, Core, SchedulerKind, Vcpu};

use crate::experiment::bounded::{Alpha, Bytes, Count, DelayUs, IntervalUs, Mbps, MtuBytes};
use crate::scenario::{Family, HostForm};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use vcc_fabric::{AnyQueue, TopologyKind};
use vcc_results::measure::MetricSpec;
use vcc_results::report::{InShort, Plot};
use vcc_results::result::{Backend, Stack};

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tables {
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
    pub plot: Plot,
    /// The sentence that a run of it ends with.
    #[serde(default)]
    pub in_short: Option<InShort>,
}

impl Tables {
    /// Names of the groups of flows in metrics and reports.
    pub fn flow_groups(&self) -> impl Iterator<Item = &str> {
        let guests = self.guests.iter().filter(|_| self.flows.is_empty());
        let flows = self.flows.iter().map(|group| group.name.as_str());
        guests.map(|group| group.name.as_str()).chain(flows)
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
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
pub struct SwitchMemory {
    pub bytes: Bytes,
    /// A queue's limit, as a multiple of the free memory.
    pub alpha: Alpha,
}

/// The tables of a file that a case can change.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
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
pub struct Observe {
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
pub struct CaseTable {
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
}

fn usual_floor() -> f64 {
    0.98
}

//! What an experiment file says, as it says it.

use crate::fabric::{AnyQueue, TopologyKind};
use crate::hosts::{Family, HostForm};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

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
    pub queues: BTreeMap<String, AnyQueue>,
    pub duration: Duration,
    #[serde(default)]
    pub observe: Observe,
    pub guests: Vec<Group>,
    pub metrics: Vec<MetricSpec>,
    pub cases: Vec<CaseSpec>,
    pub plot: PlotSpec,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Network {
    pub topology: TopologyKind,
    /// Of the bottleneck.
    pub rate_mbps: f64,
    /// Of the links between hosts and switches; the bottleneck's rate if left out.
    #[serde(default)]
    pub edge_rate_mbps: Option<f64>,
    /// Of each link, one way.
    pub delay_us: u64,
    /// At the head of the bottleneck: one of `queues`.
    pub queue: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NetworkChange {
    pub rate_mbps: Option<f64>,
    pub edge_rate_mbps: Option<f64>,
    pub delay_us: Option<u64>,
    pub queue: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Duration {
    pub warm_up_s: f64,
    pub measured_s: f64,
    pub runs: u32,
    pub quick: QuickDuration,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QuickDuration {
    pub warm_up_s: f64,
    pub measured_s: f64,
    pub runs: u32,
}

/// What is recorded beside the counters.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Observe {
    /// Sample the senders' windows this often.
    #[serde(default)]
    pub windows_every_us: Option<u64>,
    /// Sample the bottleneck's queue this often.
    #[serde(default)]
    pub queue_every_us: Option<u64>,
    /// Keep the times between acknowledgements.
    #[serde(default)]
    pub ack_gaps: bool,
}

/// Guests that are alike. Each has one flow.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Group {
    pub name: String,
    pub count: u32,
    pub ecn: bool,
    #[serde(default = "reno")]
    pub congestion_control: String,
    #[serde(default = "yes")]
    pub tso: bool,
    /// vcc's mode on the guests' ports.
    #[serde(default = "off")]
    pub vcc: String,
    #[serde(default = "reno_ecn")]
    pub underlay: String,
    #[serde(default = "leave")]
    pub guest_ecn: String,
    #[serde(default = "yes")]
    pub prr: bool,
    #[serde(default = "yes")]
    pub pace_push: bool,
}

fn reno() -> String {
    "reno".into()
}
fn off() -> String {
    "off".into()
}
fn reno_ecn() -> String {
    "reno-ecn".into()
}
fn leave() -> String {
    "leave".into()
}
fn yes() -> bool {
    true
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GroupChange {
    pub count: Option<u32>,
    pub ecn: Option<bool>,
    pub congestion_control: Option<String>,
    pub tso: Option<bool>,
    pub vcc: Option<String>,
    pub underlay: Option<String>,
    pub guest_ecn: Option<String>,
    pub prr: Option<bool>,
    pub pace_push: Option<bool>,
}

/// A number that every run yields.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricSpec {
    pub name: String,
    /// One of the measures that the lab knows.
    pub measure: String,
    pub text: String,
    /// The groups that it is about; all guests if left out.
    #[serde(default)]
    pub of: Option<String>,
    /// The groups that it is compared with.
    #[serde(default)]
    pub over: Option<String>,
    #[serde(default)]
    pub from_ms: Option<u32>,
    #[serde(default)]
    pub to_ms: Option<u32>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CaseSpec {
    pub name: String,
    #[serde(default)]
    pub network: NetworkChange,
    #[serde(default)]
    pub guests: BTreeMap<String, GroupChange>,
    /// Makes this one case for each row: how many guests of each group, in the file's order.
    #[serde(default)]
    pub mixes: Vec<Vec<u32>>,
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

/// What the median of a metric has to be for the artefact to count as reproduced.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// The paper's own figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// The bounds are for the quotient with the same metric of this case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relative_to: Option<String>,
    /// Other bounds for the modern stack.
    #[serde(default, skip_serializing)]
    pub modern: Option<Bounds>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    #[serde(default)]
    pub min: Option<f64>,
    #[serde(default)]
    pub max: Option<f64>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlotSpec {
    pub kind: PlotKind,
    /// Of a curve: the metric on the vertical axis.
    #[serde(default)]
    pub metric: Option<String>,
    /// Of a curve: what the horizontal axis shows.
    #[serde(default)]
    pub x: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlotKind {
    /// Bars, one a flow.
    Goodput,
    /// Bars, one a case.
    Metric,
    /// A metric over `x`, one line a series.
    Curve,
    /// Send windows over time.
    Windows,
    /// The bottleneck's queue over time.
    Queue,
    /// How often which time lay between two acknowledgements.
    AckGaps,
}

/// Which of the kernel's TCPs the hosts run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stack {
    /// Without SACK: as near as Linux comes to the NewReno of the papers.
    #[default]
    NewReno,
    /// As the kernel is by default.
    Modern,
}

impl FromStr for Stack {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "newreno" => Ok(Self::NewReno),
            "modern" => Ok(Self::Modern),
            _ => Err(format!("unknown stack '{name}': it is newreno or modern")),
        }
    }
}

impl fmt::Display for Stack {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str(match self {
            Self::NewReno => "newreno",
            Self::Modern => "modern",
        })
    }
}

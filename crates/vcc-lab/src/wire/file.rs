//! The format of experiment files with a `[wire]`.

use crate::experiment::bounded::{Bytes, Mbps, Ms, WireFlows};
use crate::translation::Vcc;
use serde::Deserialize;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tables {
    /// The presence of this table marks an experiment of the CPU cost.
    pub wire: Wire,
}

/// The two halves of a run; a case can have others.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wire {
    #[serde(default)]
    pub without: Treatment,
    #[serde(default)]
    pub with: Treatment,
    /// The metric that the figure shows.
    pub plot: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseTable {
    pub flows: WireFlows,
    /// Bursts of each flow; bulk if left out.
    #[serde(default)]
    pub bursts: Option<Bursts>,
    #[serde(default)]
    pub without: Option<Treatment>,
    #[serde(default)]
    pub with: Option<Treatment>,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bursts {
    pub bytes: Bytes,
    pub every_ms: Ms,
}

/// Treatment of the flows, and configuration of the guests.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Treatment {
    pub sender: End,
    pub receiver: End,
    /// The rate of a token bucket at the uplink of the sender's host.
    pub rate_limit_mbps: Option<Mbps>,
    /// A TCP proxy in the hypervisor with this congestion control and ECN.
    pub proxy: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct End {
    /// The guest asks for ECN and takes part in it.
    pub ecn: bool,
    pub vcc: Vcc,
}

//! The format of experiment files with a `[wire]`.

use crate::experiment::{Bytes, Duration, Ms, Vcc};
use serde::Deserialize;
use std::collections::BTreeMap;
use vcc_results::report::{Expectation, Headline};

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub id: String,
    pub title: String,
    pub paper: String,
    #[serde(default)]
    pub scale: Option<String>,
    /// What it shows, in a sentence, and the figure that shows it: for the table of all results.
    #[serde(default)]
    pub claim: Option<String>,
    #[serde(default)]
    pub headline: Option<Headline>,
    /// The warm-up is of each side, after the first burst of every flow.
    pub duration: Duration,
    /// The presence of this table marks an experiment of the CPU cost.
    pub wire: Wire,
    pub cases: Vec<Case>,
}

/// The two halves of a run; a case can have others.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wire {
    #[serde(default)]
    pub without: Treatment,
    #[serde(default)]
    pub with: Treatment,
    /// The metric that the figure shows.
    pub plot: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    pub name: String,
    pub flows: Flows,
    /// Bursts of each flow; bulk if left out.
    #[serde(default)]
    pub bursts: Option<Bursts>,
    #[serde(default)]
    pub without: Option<Treatment>,
    #[serde(default)]
    pub with: Option<Treatment>,
    #[serde(default)]
    pub expect: BTreeMap<String, Expectation>,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bursts {
    pub bytes: Bytes,
    pub every_ms: Ms,
}

/// Treatment of the flows, and configuration of the guests.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Treatment {
    pub sender: End,
    pub receiver: End,
    /// The rate of a token bucket at the uplink of the sender's host.
    pub rate_limit_mbps: Option<LimitMbps>,
    /// A TCP proxy in the hypervisor with this congestion control and ECN.
    pub proxy: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct End {
    /// The guest asks for ECN and takes part in it.
    pub ecn: bool,
    pub vcc: Vcc,
}

/// All flows connect the same two addresses, so each takes a source port; Linux has about 28,000
/// ephemeral ports.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "u32")]
pub(super) struct Flows(u32);

impl Flows {
    pub fn get(self) -> usize {
        self.0 as usize
    }
}

impl TryFrom<u32> for Flows {
    type Error = String;

    fn try_from(flows: u32) -> Result<Self, String> {
        if (1..=20_000).contains(&flows) {
            Ok(Self(flows))
        } else {
            Err(format!("{flows} is not within 1 and 20000"))
        }
    }
}

/// A rate limit; no emulator bounds the rate of these devices.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "f64")]
pub(super) struct LimitMbps(f64);

impl LimitMbps {
    pub fn bps(self) -> u64 {
        (self.0 * 1e6) as u64
    }
}

impl TryFrom<f64> for LimitMbps {
    type Error = String;

    fn try_from(mbps: f64) -> Result<Self, String> {
        if (0.1..=100_000.0).contains(&mbps) {
            Ok(Self(mbps))
        } else {
            Err(format!("{mbps} is not within 0.1 and 100000"))
        }
    }
}

//! The JSON of `vcc-lab bench`.

mod spread;

use super::{Machine, Sources, origin};
use serde::{Deserialize, Serialize};
pub use spread::Spread;

/// Version of the JSON: it grows by one with each change that breaks a reader.
pub const BENCH_FORMAT_VERSION: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchReport {
    pub format_version: u32,
    #[serde(flatten)]
    pub measurements: Measurements,
    pub vcc_version: Option<String>,
    /// Those that the figures depend on.
    #[serde(default, skip_serializing_if = "Sources::are_unknown")]
    pub sources: Sources,
    /// Seconds that it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_s: Option<f64>,
    pub machine: Machine,
    pub command: String,
    /// Seconds since 1970, by the machine's clock.
    pub finished_unix_s: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "bench", content = "measurements", rename_all = "kebab-case")]
pub enum Measurements {
    Connections(Vec<CrowdCost>),
    Datapath(Vec<Cost>),
    Domain(Vec<SegmentCost>),
    Flood(Vec<Figures>),
    Host(Vec<Figure>),
    Ports(Vec<Figure>),
    Throughput(Throughput),
    Virtual(Vec<Load>),
}

/// Nanoseconds per run of a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    pub name: String,
    pub what: String,
    /// With what repeating and advancing the frame costs.
    pub gross_ns: Spread,
    pub ns: Spread,
}

/// Nanoseconds per run of a program at a host with so many connections, in random order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CrowdCost {
    pub connections: u32,
    pub name: String,
    pub what: String,
    pub ns: Spread,
    /// The median, over that with the first number of connections.
    pub over_fewest: f64,
}

/// Nanoseconds per segment at the driver domain's port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SegmentCost {
    pub name: String,
    pub what: String,
    /// For a segment of data, or for an ACK where the case has no data.
    pub ns: Spread,
    /// Payload, of a bulk transfer with its ACKs.
    pub gbit_s: Option<Spread>,
}

/// One figure of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    pub name: String,
    pub what: String,
    pub value: f64,
    pub unit: String,
}

impl Figure {
    /// The value for people: counts and large values without decimals.
    pub fn number(&self) -> String {
        let decimals = if self.value.fract() == 0.0 || self.value.abs() >= 100.0 { 0 } else { 2 };
        format!("{:.decimals$}", self.value)
    }
}

/// A figure of each of several rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    pub name: String,
    pub what: String,
    pub value: Spread,
    pub unit: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Throughput {
    pub attached_gbit_s: Spread,
    /// With programs that parse each segment and no more: what any program costs.
    pub parsed_gbit_s: Spread,
    /// By the detour of `vcc domain --device`.
    pub detour_gbit_s: Spread,
    pub detached_gbit_s: Spread,
    /// Attached over detached, round by round.
    pub ratio: Spread,
    /// Parsed over detached.
    pub parsed_ratio: Spread,
    /// The detour over detached.
    pub detour_ratio: Spread,
}

/// Seconds on the wall for some load in virtual time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Load {
    pub name: String,
    pub what: String,
    pub virtual_s: f64,
    pub goodput_gbit_s: f64,
    pub wall_per_virtual: Spread,
    pub boot_s: Spread,
    /// Connections, warm-up.
    pub begin_s: Spread,
    pub measured_s: Spread,
    pub end_s: Spread,
    /// All of these.
    pub wall_s: Spread,
}

impl BenchReport {
    /// A report of measurements that this process made on this machine.
    pub fn new(measurements: Measurements, vcc_version: &str) -> Self {
        Self {
            format_version: BENCH_FORMAT_VERSION,
            measurements,
            vcc_version: Some(vcc_version.into()),
            sources: Sources::default(),
            wall_s: None,
            machine: Machine::this(),
            command: origin::this_command(),
            finished_unix_s: origin::now_unix_s(),
        }
    }

    /// Of the command that repeats it.
    pub fn arguments(&self) -> Vec<String> {
        let command = origin::portable_command(&self.command);
        command.split_whitespace().skip(1).map(str::to_owned).collect()
    }

    /// `vcc-lab bench NAME`
    pub fn name(&self) -> &'static str {
        match self.measurements {
            Measurements::Connections(_) => "connections",
            Measurements::Datapath(_) => "datapath",
            Measurements::Domain(_) => "domain",
            Measurements::Flood(_) => "flood",
            Measurements::Throughput(_) => "throughput",
            Measurements::Host(_) => "host",
            Measurements::Ports(_) => "ports",
            Measurements::Virtual(_) => "virtual",
        }
    }
}

/// Names of all benchmarks.
pub const BENCHES: [&str; 8] =
    ["connections", "datapath", "domain", "flood", "host", "ports", "throughput", "virtual"];

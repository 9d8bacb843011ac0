//! The protocol of the control socket: one JSON object per line, a request and its answer. Spaces
//! may precede the answer: a busy daemon sends them as signs of life.

use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use vcc_port::coexistence::Finding;

use crate::Error;
use crate::journal::{self, LogLevel};

/// Interval at which a daemon that is working on an answer sends a space.
pub(crate) const SIGN_OF_LIFE_EVERY: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Applies this policy until the next reload; without one, the file that the daemon was started
    /// with.
    Apply {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        policy: Option<PolicyText>,
    },
    Status,
    Policy,
    /// Up to which level the daemon logs events; with one, from now on.
    LogLevel {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        level: Option<LogLevel>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyText {
    pub text: String,
    /// The name of the file in messages.
    pub file_name: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Applied(Applied),
    Status(Status),
    Policy(PolicyInForce),
    /// That in force.
    LogLevel {
        level: LogLevel,
    },
    /// Nothing has changed.
    Refused {
        why: String,
        /// The findings in the policy, each with its place.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        problems: Vec<String>,
    },
}

impl Answer {
    pub(crate) fn refused(why: impl Into<String>) -> Self {
        Self::Refused { why: why.into(), problems: Vec::new() }
    }

    /// Sets the level, if there is one.
    pub(crate) fn log_level(level: Option<LogLevel>) -> Self {
        if let Some(level) = level {
            journal::set_level(level);
        }
        Self::LogLevel { level: journal::level() }
    }

    pub(crate) fn of_error(error: &Error) -> Self {
        let problems = match error {
            Error::BadPolicy { problems, .. } => problems.problems.as_slice(),
            _ => &[],
        };
        let problems = problems.iter().map(ToString::to_string).collect();
        Self::Refused { why: error.to_string(), problems }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Applied {
    pub file_name: String,
    pub epoch: u32,
    /// Including the default, which exists even if the policy has no `[default]`.
    pub rules: usize,
    #[serde(default)]
    pub has_default: bool,
    pub ports: usize,
    /// Connections that were judged again.
    pub flows: u32,
    /// From the first write until the last connection was judged.
    pub took_us: u64,
    pub warnings: Vec<String>,
    /// Differences between the ports and the policy.
    #[serde(default)]
    pub problems: Vec<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PolicyInForce {
    pub text: String,
    pub file_name: String,
    pub epoch: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    pub version: String,
    pub pid: u32,
    pub since_unix_s: u64,
    /// The file that a reload reads.
    pub config: String,
    /// The source of the policy in force.
    pub policy: String,
    pub epoch: u32,
    /// Including the default, which exists even if the policy has no `[default]`.
    pub rules: usize,
    #[serde(default)]
    pub has_default: bool,
    pub ports: Vec<PortStatus>,
    pub problems: Vec<String>,
    /// What may not be meant; those of a port's neighbours are with the port.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Malformed, too long, too slow, or one connection too many.
    pub rejected_requests: u64,
    /// The kernel's memory of the tables of all ports; none if it cannot be read.
    #[serde(default)]
    pub tables_bytes: Option<u64>,
    /// Where metrics, health and the page are served; none if they are not.
    #[serde(default)]
    pub listen: Option<SocketAddr>,
    /// None if connections are not recorded.
    #[serde(default)]
    pub records: Option<RecordsStatus>,
}

/// The records of connections since the daemon began.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecordsStatus {
    /// The file, or `stdout`.
    pub target: String,
    pub written: u64,
    /// That could not be written.
    pub lost: u64,
    /// Why none can be written now; null if they can.
    #[serde(default)]
    pub failure: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PortStatus {
    pub device: String,
    pub index: u32,
    pub tenant: Option<String>,
    /// The guest that the policy names: its devices are one port, with one index.
    #[serde(default)]
    pub guest: Option<String>,
    pub draining: bool,
    /// The seconds until data of connections that the port does not know is dropped; 0: it is dropped,
    /// none: it passes.
    #[serde(default)]
    pub unknown_dropped_in_s: Option<u32>,
    /// Other programs at the device that may hide segments from vcc or falsify its figures.
    #[serde(default)]
    pub neighbours: Vec<Finding>,
}

//! The conditions of a run: what carries the hosts, which TCP they run, for how long and how often.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The hosts and the clock of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// Network namespaces of this machine's kernel, in real time.
    #[default]
    Live,
    /// Kernels of their own, in virtual time.
    Virtual,
}

impl FromStr for Backend {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "live" => Ok(Self::Live),
            "virtual" => Ok(Self::Virtual),
            _ => Err(format!("unknown backend '{name}': it is live or virtual")),
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str(match self {
            Self::Live => "live",
            Self::Virtual => "virtual",
        })
    }
}

/// Which of the kernel's TCPs the hosts run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stack {
    /// Without SACK: as near as Linux comes to the NewReno of the papers.
    #[default]
    NewReno,
    /// The kernel's defaults.
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

/// Fewer runs than this are no sample, even if a file asks for fewer.
const LEAST_RUNS: u32 = 3;

/// Length and number of runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    pub warm_up_s: f64,
    pub measured_s: f64,
    pub runs: u32,
}

impl Schedule {
    /// The schedule that a verdict needs, if this is the experiment's full one.
    pub fn for_verdict(self) -> Self {
        Self { runs: self.runs.max(LEAST_RUNS), ..self }
    }

    /// Whether these runs are as long and as many.
    pub fn is_enough_for(&self, needed: &Self) -> bool {
        self.runs >= needed.runs
            && self.warm_up_s >= needed.warm_up_s
            && self.measured_s >= needed.measured_s
    }
}

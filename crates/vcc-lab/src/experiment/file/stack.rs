//! The hosts' TCP.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

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

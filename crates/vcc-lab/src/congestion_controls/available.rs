//! Congestion controls that the kernel offers.

use std::fs;

use super::{Error, Result, list, names};

const PATH: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// The names that TCP_CONGESTION accepts.
pub(crate) struct Available(Vec<String>);

impl Available {
    pub fn read() -> Result<Self> {
        let line = fs::read_to_string(PATH).map_err(|source| Error::Available { source })?;
        Ok(Self(line.split_whitespace().map(str::to_owned).collect()))
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|one| one == name)
    }

    /// The names for users, without those that other processes have registered for themselves.
    pub fn known(&self) -> String {
        let kernel = self.0.iter().map(String::as_str).filter(|name| !names::is_ours(name));
        let mut known: Vec<&str> = kernel.chain(list::names().iter().copied()).collect();
        known.sort_unstable();
        known.dedup();
        known.join(", ")
    }
}

//! A port's view of its guest's flow at the end of a run.

use super::Tracking;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Observation {
    /// Number of the guest.
    pub guest: usize,
    pub marks: u32,
    pub reductions: u32,
    pub guest_cwrs: u16,
    pub retransmissions: u32,
    pub drops: u32,
    /// |cwnd - flight| / flight, one for each look at the flow within the window of measurement.
    #[serde(skip)]
    pub cwnd_errors: Vec<f64>,
    /// In shadow mode: the windows of vcc and of the guest itself, next to each other.
    #[serde(skip)]
    pub tracking: Tracking,
    /// In virtual time, in shadow mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlay: Option<Guessed>,
    /// In virtual time: what each connection of the port waited for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delays: Vec<Delayed>,
    /// In virtual time: what the connections to each peer have had of the port's buffer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buffered: Vec<Buffered>,
}

/// What the connections to a peer have had of their port's buffer, over the time in which each has something
/// in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Buffered {
    pub peer: usize,
    pub byte_s: f64,
    pub held_s: f64,
    /// Of the time, that in which a connection has more than its share.
    pub above_share_s: f64,
}

/// The two parts of a connection's round trips, as its port has seen them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Delayed {
    /// The longer part.
    pub by: String,
    pub guest_us: Option<u32>,
    pub fabric_us: Option<u32>,
}

/// The class of the guest's congestion control as its port infers it, next to what the guest runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Guessed {
    /// The guest's congestion control.
    pub congestion_control: String,
    /// The class that this belongs to; none of a congestion control that has no known class.
    pub truth: Option<String>,
    pub class: String,
    pub confidence: f64,
    pub reasons: Vec<String>,
}

impl Guessed {
    /// The class if the port infers none.
    pub const UNKNOWN: &str = "unknown";
}

/// A pool of shared window after a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolSeen {
    pub window_bytes: u32,
    /// The most that its flows ever held together.
    pub most_held_bytes: u32,
    /// The number of times that the flows held more than the pool has.
    pub overdrawn: u32,
}

//! The plan of one guest, which the lab writes for the program inside it.
//!
//! All times are absolute, in nanoseconds of CLOCK_MONOTONIC, which all guests of a run share.

mod check;

use crate::pattern::Pattern;
use crate::requests::RequestsPlan;
use crate::workers::WorkerPlan;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestPlan {
    pub network: Network,
    /// Written in this order, before the device goes up.
    pub sysctls: Vec<Sysctl>,
    pub listeners: Vec<Listener>,
    pub sends: Vec<FlowToSend>,
    /// The workers that send messages over flows of messages.
    #[serde(default)]
    pub workers: Vec<WorkerPlan>,
    /// What it asks for and how it answers, where there are flows of requests.
    #[serde(default)]
    pub requests: RequestsPlan,
    pub receives: Vec<FlowToReceive>,
    pub pings: Vec<Pings>,
    pub measure: Measure,
    /// The time to report and power off, at or after the end of the measurement window.
    pub ends_at_ns: u64,
}

/// The guest's only device, and the other guests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// The name of the device.
    pub device: String,
    pub address: IpAddr,
    pub prefix_bits: u8,
    pub neighbours: Vec<Neighbour>,
    /// Whether the guest may hand super-segments to its device. If not, TSO and GSO are turned off.
    pub tso: bool,
    /// The initial window of all of its connections, if not the kernel's.
    #[serde(default)]
    pub initial_window_segs: Option<u32>,
}

/// A permanent neighbour entry, which avoids ARP and neighbour solicitations (RFC 4861).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Neighbour {
    pub address: IpAddr,
    pub mac: [u8; 6],
}

/// A kernel parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sysctl {
    /// Below /proc/sys, such as `net/ipv4/tcp_ecn`.
    pub path: String,
    pub value: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listener {
    pub port: u16,
    /// The congestion control of accepted connections, by the kernel's name for it.
    pub congestion_control: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowToSend {
    /// The flow's number in the run, the same at both ends.
    pub flow: usize,
    pub to: SocketAddr,
    /// The sender's source port, by which the receiver identifies the flow.
    pub from_port: u16,
    /// The kernel's name of the congestion control, set before the handshake.
    pub congestion_control: String,
    pub pattern: Pattern,
    /// Upper bound of cwnd (snd_cwnd_clamp), which applies to all flows to the same host.
    pub cwnd_clamp_segs: Option<u32>,
    /// The random seed of the payload, the same at both ends.
    pub seed: u64,
    pub connects_at_ns: u64,
    /// Starts to send at this time, or when it is connected, if that is later.
    pub joins_at_ns: u64,
    /// Stops writing at this time, and closes the connection when all data has been sent.
    pub leaves_at_ns: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowToReceive {
    /// The flow's number in the run, the same at both ends.
    pub flow: usize,
    /// The port of one of the listeners.
    pub port: u16,
    /// The sender's source port.
    pub from_port: u16,
    /// A connection from [`introduction_port`] precedes it and is closed at once.
    pub is_introduced: bool,
    pub pattern: Pattern,
    /// The random seed of the payload, the same at both ends.
    pub seed: u64,
}

/// The source port of the connection that creates TCP metrics before the flow from `from_port`
/// connects.
pub fn introduction_port(from_port: u16) -> u16 {
    from_port + 20_000
}

/// ICMP echo requests to one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pings {
    /// The number of these pings in the run; the report repeats it.
    pub number: usize,
    pub to: Ipv4Addr,
    pub times: PingTimes,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "snake_case", deny_unknown_fields)]
pub enum PingTimes {
    At { at_ns: Vec<u64> },
    Every { first_at_ns: u64, interval_ns: u64, count: u64 },
}

impl PingTimes {
    /// When each request must be sent.
    pub fn iter(&self) -> Box<dyn Iterator<Item = u64> + '_> {
        match self {
            Self::At { at_ns } => Box::new(at_ns.iter().copied()),
            &Self::Every { first_at_ns, interval_ns, count } => {
                Box::new((0..count).map(move |i| first_at_ns + i * interval_ns))
            }
        }
    }
}

/// The measurement window and its sampling intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    pub start_ns: u64,
    pub end_ns: u64,
    /// Equal parts of the window; at least one.
    pub phases: u32,
    /// The interval between two samples of the senders' windows.
    pub windows_every_us: Option<u64>,
    /// The interval between two samples of the received bytes.
    pub received_every_us: Option<u64>,
}

impl Measure {
    /// The end of the n-th phase, since the start of the window.
    pub fn bound_ns(&self, phases: u64) -> u64 {
        (self.end_ns - self.start_ns) * phases / u64::from(self.phases)
    }
}

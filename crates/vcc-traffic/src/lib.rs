//! The traffic of the lab's guests: flows whose bytes are all checked, the records of them, and the
//! plan and the report of a guest with a kernel of its own.

pub mod acknowledged;
pub mod agenda;
pub mod clients;
mod cpu;
mod error;
pub mod flow;
mod pattern;
pub mod payload;
pub mod plan;
pub mod report;
pub mod requests;
mod samples;
pub mod sizes;
pub mod socket;
pub mod system;
pub mod tcp_counters;
mod tcp_info;
pub mod tier;
pub mod workers;

pub use cpu::pin_to_cpu;
pub use error::{Doing, Error, Result};
pub use pattern::{Connections, Messages, Order, Pace, Pattern, Requests, Size, Transfers, Until};
pub use samples::{Begun, End, Received, Response, Sample, Transfer};
pub use tcp_counters::TcpCounters;
pub use tcp_info::TcpInfo;

//! Ethernet frames of TCP segments, and of ICMP messages about them, for the benchmark of the
//! datapath, for guests that cheat in the lab, and for tests.
//!
//! This crate shares no code with the datapath, the engine or the driver domain, not even the
//! numbers of the wire formats: their parsers, rewriting and checksums are tested against the frames
//! and sums of this crate.

pub mod checksum;
mod ecn;
mod headers;
pub mod icmp;
pub mod options;
mod packet;
mod tunnel;
pub mod wire;

pub use ecn::mark_ce;
pub use headers::Headers;
pub use packet::{MACS, Packet, payload};
pub use tunnel::{Opened, Tunnel, TunnelHeader};

/// The bytes in hexadecimal, for messages.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

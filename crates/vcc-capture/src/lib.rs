//! Captured packets: read from pcap and pcapng files, and passed through ports of the driver domain in
//! shadow mode.
//!
//! [`Capture`] reads a file packet by packet and keeps none: its memory is bounded by the largest block.
//! [`Replay`] has a port for each place where packets were captured, decides which end of each connection
//! is the guest, and keeps the last state of each connection, up to a limit.
//!
//! [`both`] compares two captures of the same connections, on the two sides of a port.
//!
//! [`Writer`] writes a file, of which an interface may be a side of a port ([`both::PortSide`]).
//!
//! Files come from anywhere. The library `pcap-parser` reads what is inside headers and blocks. Their
//! lengths are checked here beforehand, so that an error has its offset and no length of a file decides
//! how much memory is taken.

pub mod both;
mod capture;
mod clock;
mod compression;
mod connection;
mod handshake;
mod holes;
mod joining;
mod link;
mod options;
mod packet;
mod pcap;
mod pcapng;
mod port_side;
mod problem;
mod replay;
mod resolution;
mod segment;
mod sides;
mod source;
mod stall;
mod syn;
#[cfg(feature = "testing")]
pub mod testing;
mod treatment;
mod tunnel;
mod vantage;
mod watched;
mod whole_frame;
mod writer;

pub use capture::Capture;
pub use compression::Content;
pub use connection::{Connection, LIMITS, Life};
pub use handshake::Handshake;
pub use packet::{Interface, Packet};
pub use problem::{Problem, What};
pub use replay::{Passed, Place, Replay, Replayed};
pub use segment::{Mac, Segment};
pub use stall::{Cause, Stall, Stalls};
pub use syn::{ECN_FLAGS, Syn};
pub use treatment::Treatment;
pub use tunnel::Tunnel;
pub use vantage::{Point, Vantage};
pub use writer::{Statistics, Way, Writer, Written};

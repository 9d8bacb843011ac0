//! vFlood's channel (Gamage and others, SoCC 2011, 3.2): what a port that holds a guest's segments reports
//! to the guest's congestion control, as messages of a fixed size on a byte stream. No I/O.
//!
//! The guest speaks first. The host answers each [`FromGuest::Hello`] with a [`FromHost::Hello`], and from
//! then on reports its state regularly, by [`FromHost::Online`] or [`FromHost::Offline`]. The guest answers
//! each of these with [`FromGuest::Alive`].

mod bad;
mod bytes;
mod fields;
mod flow;
mod from_guest;
mod from_host;
mod stream;

pub use bad::{Bad, Field};
pub use fields::MESSAGE_BYTES;
pub use flow::Flow;
pub use from_guest::FromGuest;
pub use from_host::FromHost;
pub use stream::{Message, Stream};

/// The name of the virtio-serial port in the guest.
pub const PORT_NAME: &str = "org.vcc.flood";

/// The highest version that this end knows, and the only one so far.
pub const VERSION: u16 = 1;

/// Flows that a guest remembers.
pub const FLOWS_MAX: usize = 4096;

/// The longest lease.
pub const LEASE_MAX_MS: u32 = 60_000;

/// The version in which this end talks to one that knows versions up to `other`.
pub fn agreed_version(other: u16) -> u16 {
    other.min(VERSION)
}

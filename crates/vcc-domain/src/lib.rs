//! The driver domain: a shell around the engine in user space, between a guest's virtio-net card
//! and a fabric.
//!
//! A [`Port`] does to each Ethernet frame what the datapath in the kernel does to it, byte for
//! byte: parse, find the flow, ask the engine, rewrite with checksums right. It does no I/O, reads
//! no clock and starts no thread, and everything about it is deterministic: the same frames at the
//! same times give the same frames, in the same order.
//!
//! What differs from the kernel: a VLAN tag stands in the frame and nowhere else, nothing is
//! contended, ACKs are traced in memory, and what is due to the guest alone ([`Port::advance`]) is made
//! here, not by another process.

mod ack;
mod checksum;
mod counters;
mod emit;
mod fack;
mod frame;
mod ip;
mod key;
mod link;
mod neighbours;
mod options;
mod ours;
mod parse;
mod port;
mod rewrite;
mod table;
#[cfg(test)]
mod testing;
mod timer;
mod trace;
mod unjudged;
mod wire;

pub use ack::ack_to_guest;
pub use checksum::Sum;
pub use counters::{Counters, Reason};
pub use frame::{Checksum, Frame, Verdict};
pub use key::FlowKey;
pub use port::Port;
pub use trace::{Inferred, TracedAck};

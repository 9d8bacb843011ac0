//! The driver domain: a shell around the engine in user space, between a guest's virtio-net card
//! and a fabric.
//!
//! A [`Port`] processes each Ethernet frame exactly like the kernel's datapath, byte for byte:
//! parse, look up the flow, run the engine, rewrite and update checksums. It does no I/O, reads no
//! clock and starts no thread. It is deterministic: the same frames at the same times give the same
//! frames in the same order.
//!
//! Differences from the kernel: a VLAN tag is always in the frame, there is no contention, ACKs are
//! traced in memory, and segments due to the guest are generated here ([`Port::advance`]), not by
//! another process.

mod ack;
mod bytes;
mod checksum;
mod control_request;
mod counters;
mod deadlines;
mod emit;
mod empty_segment;
mod fack;
mod feedback_options;
mod flow_view;
mod frame;
mod handover;
mod hold;
mod icmp;
mod ip;
mod ledger;
mod link;
mod minisocks;
mod neighbours;
mod options;
mod parse;
mod pools;
mod port;
mod receipt;
mod recording;
mod rewrite;
mod rules;
mod snoop;
mod spare;
mod status;
mod table;
mod tcp_header;
#[cfg(test)]
mod testing;
mod timer;
mod timers;
mod trace;

pub use bytes::BadBytes;
pub use control_request::{Accepted, Ask, Reloaded};
pub use counters::{Counters, Reason};
pub use flow_view::{BufferShare, Seen};
pub use frame::{Checksum, Frame, Out, Verdict};
pub use handover::CannotTakeOver;
pub use hold::{BufferSpec, Occupancy};
pub use ledger::{Ledger, Promise};
pub use pools::{PoolTotals, PoolUse};
pub use port::{Arrived, Grant, IsnHash, Port, ReceiveRing};
pub use receipt::Receipt;
pub use recording::{Recorded, RecordedAck};
pub use rules::{Judge, Rule, RuleTotals, Rules};
pub use status::Status;
pub use tcp_header::TcpHeader;
pub use trace::{Inferred, TracedAck};

//! `hold` from outside, segment by segment: floods, ends of connections, and segments that an end
//! would discard. The laws are checked at the port ([`common::watch`]).

#[path = "../common/mod.rs"]
mod common;

mod ack_thinning;
mod broken;
mod buffer_share;
mod close;
mod ends;
mod flood;
mod fractional;
mod granting;
mod moving;
mod out_of_order;
mod pacing;
mod pools;
mod random;
mod rare_segments;
mod retransmit;
mod split;
mod too_big;

/// At least what the port keeps of a frame in addition to its bytes.
const BESIDE_A_FRAME_BYTES: u32 = 256;

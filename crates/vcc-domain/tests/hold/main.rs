//! `hold` from outside, segment by segment: floods, ends of connections, and segments that an end
//! would discard. The laws are checked at the port ([`common::watch`]).

#[path = "../common/mod.rs"]
mod common;

mod close;
mod ends;
mod flood;
mod odd;
mod random;

//! `receive` from outside, segment by segment: what is acknowledged in the guest's name and when, what
//! never is, and what becomes of the guest's own acknowledgements.

#[path = "../common/mod.rs"]
mod common;

mod both;
mod buffer;
mod delay;
mod guest;
mod guest_acks;
mod never;
mod promised;
mod random;
mod receiver;
mod shared;

//! What the tests of the port from outside share.

#![allow(dead_code, reason = "each test target uses a part")]

pub mod rng;
pub mod segment;
pub mod watch;

//! What the tests of the port from outside share.

#![allow(dead_code, reason = "each test target uses a part")]

pub mod memory;
pub mod promises;
/// The generator of the engine's tests.
#[path = "../../../vcc-engine/tests/common/sim/rng.rs"]
pub mod rng;
pub mod rules;
pub mod sealed;
pub mod segment;
pub mod watch;

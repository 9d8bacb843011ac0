//! Helpers for the tests of several crates. Only dev-dependencies name this crate.
//!
//! In the unit tests of `vcc-port`, which this crate depends on, [`Netns`] is another type than
//! `crate::Netns`: Rust compiles that crate twice, once for its tests and once for us.

pub mod documents;
mod host;
pub mod kubernetes;
mod open_vswitch;
mod process;
mod skip;
pub mod tun;
mod wait;

pub use host::{
    accept_detours, add_second_device, guest, ip, isolated, on_a_host, tc, up_without_link_local,
};
pub use open_vswitch::OpenVSwitch;
pub use process::process_status;
pub use skip::{can_attach, skip};
pub use vcc_port::{Netns, testing::end_chain};
pub use wait::{EndOnDrop, eventually};

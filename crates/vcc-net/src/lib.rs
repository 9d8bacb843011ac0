//! What several crates need of the network: numbers of the wire formats, checksums, sequence numbers,
//! segments without payload, rtnetlink, vhost-user, local peers, waiting and its clock, the heap, and the lab's
//! random numbers.
//! It knows no other crate.
//!
//! Frames for tests are built by `vcc-frames`, which shares nothing with this crate: what it sums up is
//! what the checksums here are tested against.

pub mod checksum;
pub mod clock;
pub mod empty_segment;
pub mod fds;
pub mod heap;
pub mod netlink;
pub mod peer;
pub mod random;
pub mod ready;
pub mod seq;
pub mod vhost_user;
pub mod virtio;
pub mod wire;

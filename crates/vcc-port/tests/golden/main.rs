//! Golden packets: what the kernel's datapath makes of frames, byte for byte.
//!
//! Frames go through the BPF programs by BPF_PROG_RUN, which needs no device. What comes out is
//! compared with fixed bytes, with the natively compiled engine whose action is applied here with
//! checksums from scratch, or, where the datapath has no business, with what went in. The driver
//! domain (`vcc-domain`) gets every frame as well, and must make the same of it.
//!
//! BPF_PROG_RUN knows no partial checksums and no VLAN tags that a device took out of the frame:
//! for these there are TAP devices.

mod bad;
mod conversation;
mod direction;
mod domain;
mod dual;
mod evasion;
mod feedback;
mod fixed;
mod full;
mod headers;
mod layout;
mod layouts;
mod mix;
mod mptcp;
mod offload;
mod policy;
mod random;
mod scenarios;
mod segment;
mod setup;
mod shells;
mod state;
mod table;
mod tap;
mod unjudged;

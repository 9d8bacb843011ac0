//! Golden packets: the output of the kernel's datapath, byte for byte.
//!
//! Frames go through the BPF programs by BPF_PROG_RUN, which needs no device. The output is
//! compared with fixed bytes, with the action of the natively compiled engine, applied here with
//! checksums from scratch, or, if the datapath must not change the frame, with the input. The
//! driver domain (`vcc-domain`) gets every frame as well, and its output must be the same.
//!
//! BPF_PROG_RUN supports neither partial checksums nor VLAN tags that a device took out of the
//! frame: TAP devices are used for these.

mod bad;
mod conversation;
mod direction;
mod domain;
mod dual;
mod evasion;
mod feedback;
mod fixed;
mod fragments;
mod full;
mod fuzzed;
mod guest_rate;
mod headers;
mod inside;
mod layout;
mod layouts;
mod loaded;
mod mix;
mod mptcp;
mod offload;
mod paced;
mod policy;
mod random;
mod scenarios;
mod segment;
mod setup;
mod shells;
mod state;
mod table;
mod tap;
mod ticks;
mod unjudged;
mod unknown;

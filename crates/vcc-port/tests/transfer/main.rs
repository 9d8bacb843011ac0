//! Live TCP through ports, between kernels that know nothing of vcc.
//!
//! VLAN tags, in the frame and taken out of it, are the golden packets' matter: not every kernel has
//! VLAN devices.

mod common;
mod evasion;
mod feedback;
mod forger;
mod offloads;
mod watch;

//! Live TCP through ports, between kernels without vcc.
//!
//! VLAN tags are tested by the golden packets, because not every kernel has VLAN devices.

mod common;
mod detour;
mod evasion;
mod feedback;
mod forger;
mod offloads;
mod overlay;
mod trains;
mod two_cards;
mod watch;

//! The program inside guests, here in network namespaces on one kernel.

mod exchange;
mod failures;
mod init;
mod tiers;
mod world;

//! Errors, system calls, Ctrl-C, progress and the machine's CPU use, for all other modules.

pub mod error;
pub mod interrupt;
pub mod meter;
pub mod progress;
pub mod system;

//! Errors, system calls, Ctrl-C and progress, for all other modules.

pub mod error;
pub mod interrupt;
pub mod progress;
pub mod system;

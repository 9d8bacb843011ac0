//! What everything else stands on: errors, system calls, Ctrl-C, progress.

pub mod error;
pub mod interrupt;
pub mod progress;
pub mod system;

//! Virtual CPUs as the host's scheduler sees them: threads of QEMU's process, which the kernel
//! accounts for in /proc (proc_pid_schedstat(5)).
//!
//! [`Machines`] has the machine behind a tap, or of a process, and two times [`Machine::read`] are
//! [`Shares`] of the time between them.

mod machine;
mod proc;
mod shares;
mod text;

pub use machine::{Machine, Reading};
pub use proc::Machines;
pub use shares::{Shares, Want};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error(
        "the taps of process {process}, a virtual machine, cannot be seen: {why}; it takes root, or \
         CAP_SYS_PTRACE"
    )]
    Hidden { process: u32, why: String },
    #[error("several processes have a tap of the name `{tap}` open: {processes:?}")]
    Several { tap: String, processes: Vec<u32> },
    #[error(
        "process {process} has no threads named `CPU 0/KVM` or `CPU 0/TCG`: start QEMU with \
         `-name guest=NAME,debug-threads=on`"
    )]
    NoCpus { process: u32 },
    #[error("{path} cannot be read: {why}")]
    Unreadable { path: String, why: String },
    #[error("{path} is `{text}`: this kernel does not account for threads that wait for a CPU")]
    Uncounted { path: String, text: String },
}

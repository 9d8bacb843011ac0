//! For tests of other crates.

use std::os::fd::OwnedFd;

use libbpf_rs::libbpf_sys;

use crate::device::Device;
use crate::doctor::probe;
use crate::tcx::Hook;
use crate::{Error, Result};

/// A program of another application: attaches one named `ends_chain` to a device of the calling thread's
/// network namespace, behind those that are there. It passes what the guest sends and ends the chain,
/// until the descriptor is closed.
pub fn end_chain(device: &str) -> Result<OwnedFd> {
    const TCX_PASS: i32 = 0;
    let ifindex = Device::named(device)?.ifindex;
    let loaded = probe::load_program(libbpf_sys::BPF_PROG_TYPE_SCHED_CLS, c"ends_chain", TCX_PASS);
    loaded
        .and_then(|program| probe::attach(&program, ifindex, Hook::FromGuest))
        .map_err(|e| Error::system(format!("attach a program to {device}"), e))
}

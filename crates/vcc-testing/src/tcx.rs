//! A program of another application at a TCX hook.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libbpf_rs::libbpf_sys;

/// Attaches a program named `ends_chain` to a device of the calling thread's network namespace, behind
/// those that are there. It passes what the guest sends and ends the chain, until the descriptor is
/// closed.
pub fn end_chain(device: &str) -> OwnedFd {
    const MOV64_IMM: u8 = 0xb7;
    const EXIT: u8 = 0x95;
    const TCX_PASS: i32 = 0;
    let instruction = |code, imm| libbpf_sys::bpf_insn { code, imm, ..Default::default() };
    let instructions = [instruction(MOV64_IMM, TCX_PASS), instruction(EXIT, 0)];
    // SAFETY: the instructions and both strings outlive the call; null stands for no options.
    let program = owned(unsafe {
        libbpf_sys::bpf_prog_load(
            libbpf_sys::BPF_PROG_TYPE_SCHED_CLS,
            c"ends_chain".as_ptr(),
            c"GPL".as_ptr(),
            instructions.as_ptr(),
            instructions.len() as libbpf_sys::size_t,
            std::ptr::null_mut(),
        )
    });
    let name = CString::new(device).expect("a name");
    // SAFETY: the name ends in NUL and outlives the call.
    let ifindex = unsafe { libc::if_nametoindex(name.as_ptr()) };
    assert_ne!(ifindex, 0, "{device}: {}", io::Error::last_os_error());
    // SAFETY: the call takes no pointers but the options, for which null stands for none.
    owned(unsafe {
        libbpf_sys::bpf_link_create(
            program.as_raw_fd(),
            ifindex as libc::c_int,
            libbpf_sys::BPF_TCX_INGRESS,
            std::ptr::null(),
        )
    })
}

/// A negative number is -errno.
fn owned(fd: libc::c_int) -> OwnedFd {
    assert!(fd >= 0, "{}", io::Error::from_raw_os_error(-fd));
    // SAFETY: the kernel has just made this descriptor for us alone.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

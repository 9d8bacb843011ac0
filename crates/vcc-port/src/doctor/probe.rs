//! Probes TCX on the loopback device of a new network namespace.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libbpf_rs::libbpf_sys;

use crate::tcx::{self, Hook};
use crate::{Netns, libbpf};

const LOOPBACK_IFINDEX: u32 = 1;

/// Attaches a program that does nothing, and detaches it; returns what was found.
pub(super) fn tcx() -> io::Result<String> {
    libbpf::silence();
    let nowhere = match Netns::create() {
        // Attaching to a port takes no new namespace, nor CAP_SYS_ADMIN: the hook is only queried.
        Err(e) => {
            tcx::attached(LOOPBACK_IFINDEX, Hook::FromGuest)?;
            return Ok(format!(
                "the kernel has the hook; not tried, because no namespace could be created ({e})"
            ));
        }
        Ok(created) => created,
    };
    nowhere.inside(|| {
        let program = load_empty_program()?;
        attach(&program, LOOPBACK_IFINDEX, Hook::FromGuest).map(drop)
    })??;
    Ok("a program attaches".into())
}

/// A negative return value is -errno.
fn owned(fd: libc::c_int) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(-fd));
    }
    // SAFETY: the kernel has just made this descriptor for us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

pub(crate) fn load_empty_program() -> io::Result<OwnedFd> {
    const TCX_NEXT: i32 = -1;
    load_program(libbpf_sys::BPF_PROG_TYPE_SCHED_CLS, c"vcc_probe", TCX_NEXT)
}

/// A program that only returns `verdict`.
pub(crate) fn load_program(
    kind: libbpf_sys::bpf_prog_type,
    name: &CStr,
    verdict: i32,
) -> io::Result<OwnedFd> {
    const MOV64_IMM: u8 = 0xb7;
    const EXIT: u8 = 0x95;
    let instruction = |code, imm| libbpf_sys::bpf_insn { code, imm, ..Default::default() };
    let instructions = [instruction(MOV64_IMM, verdict), instruction(EXIT, 0)];
    // SAFETY: the instructions and both strings outlive the call; null stands for no options.
    owned(unsafe {
        libbpf_sys::bpf_prog_load(
            kind,
            name.as_ptr(),
            c"GPL".as_ptr(),
            instructions.as_ptr(),
            instructions.len() as libbpf_sys::size_t,
            std::ptr::null_mut(),
        )
    })
}

pub(crate) fn attach(program: &OwnedFd, ifindex: u32, hook: Hook) -> io::Result<OwnedFd> {
    // SAFETY: the call takes no pointers but the options, for which null stands for none.
    owned(unsafe {
        libbpf_sys::bpf_link_create(
            program.as_raw_fd(),
            ifindex as libc::c_int,
            hook.attach_type(),
            std::ptr::null(),
        )
    })
}

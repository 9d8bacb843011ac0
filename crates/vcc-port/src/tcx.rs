//! The kernel's hook: TCX, which libbpf-rs does not wrap.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr::NonNull;

use libbpf_rs::query::LinkTypeInfo;
use libbpf_rs::{AsRawLibbpf, Link, ProgramMut, libbpf_sys};
use vcc_engine::sys;
use vcc_policy::Order;

use crate::{Error, Result};

/// The most programs that one hook of a device holds (BPF_MPROG_MAX).
const MAX_PROGRAMS: usize = 64;

/// A TCX hook of the port: what the guest sends arrives at the ingress hook.
#[derive(Clone, Copy)]
pub(crate) enum Hook {
    FromGuest,
    ToGuest,
}

impl Hook {
    pub(crate) const BOTH: [Self; 2] = [Self::FromGuest, Self::ToGuest];

    pub(crate) const fn program_name(self) -> &'static str {
        match self {
            Self::FromGuest => "from_guest",
            Self::ToGuest => "to_guest",
        }
    }

    /// The program of a detour (`datapath/detour.bpf.c`).
    pub(crate) const fn detour_program_name(self) -> &'static str {
        match self {
            Self::FromGuest => "detour_out",
            Self::ToGuest => "detour_in",
        }
    }

    /// The programs of the host that the port's program calls, in the order of enum vcc_call
    /// (datapath/abi.h).
    pub(crate) const fn host_program_names(self) -> &'static [&'static str] {
        match self {
            Self::FromGuest => {
                &["fast_from_guest", "all_from_guest", "rewrite_from_guest", "fack_from_guest"]
            }
            Self::ToGuest => &["fast_to_guest", "all_to_guest", "rewrite_to_guest"],
        }
    }

    /// The program that takes all segments. It has had its name in each version.
    pub(crate) const fn whole_program_name(self) -> &'static str {
        self.host_program_names()[sys::CALL_WHOLE as usize]
    }

    pub(crate) fn attach_type(self) -> libbpf_sys::bpf_attach_type {
        match self {
            Self::FromGuest => libbpf_sys::BPF_TCX_INGRESS,
            Self::ToGuest => libbpf_sys::BPF_TCX_EGRESS,
        }
    }
}

/// The programs at a hook of a device, and the hook's revision at that time.
pub(crate) struct Attached {
    pub program_ids: Vec<u32>,
    pub revision: u64,
}

pub(crate) fn attached(ifindex: u32, hook: Hook) -> io::Result<Attached> {
    let mut program_ids = vec![0u32; MAX_PROGRAMS];
    // SAFETY: all-zero bytes are a valid bpf_prog_query_opts.
    let mut options: libbpf_sys::bpf_prog_query_opts = unsafe { std::mem::zeroed() };
    options.sz = size_of_val(&options) as libbpf_sys::size_t;
    options.prog_ids = program_ids.as_mut_ptr();
    options.__bindgen_anon_1.prog_cnt = MAX_PROGRAMS as u32;
    // SAFETY: the call writes at most `prog_cnt` ids to the vector, which outlives it.
    let status = unsafe {
        libbpf_sys::bpf_prog_query_opts(ifindex as libc::c_int, hook.attach_type(), &mut options)
    };
    if status == -libc::ENOENT {
        return Ok(Attached { program_ids: Vec::new(), revision: 0 });
    }
    if status < 0 {
        return Err(io::Error::from_raw_os_error(-status));
    }
    // SAFETY: a u32 under either of the union's names.
    let count = unsafe { options.__bindgen_anon_1.prog_cnt };
    program_ids.truncate(count as usize);
    Ok(Attached { program_ids, revision: options.revision })
}

/// Where a program runs, beside another.
#[derive(Clone, Copy)]
pub(crate) enum Beside {
    Before,
    Behind,
}

/// Attaches behind the existing programs, or before them. With a `hook_revision` other than 0, the kernel returns
/// ESTALE if the hook has changed since.
pub(crate) fn attach(
    program: &ProgramMut<'_>,
    ifindex: u32,
    order: Order,
    hook_revision: u64,
) -> io::Result<Link> {
    let mut options = no_options();
    options.expected_revision = hook_revision;
    options.flags = match order {
        Order::Last => 0,
        // Of nobody: of all.
        Order::First => libbpf_sys::BPF_F_BEFORE,
    };
    attach_with(program, ifindex, &options)
}

/// Attaches beside the program of a link. The kernel returns ENOENT if that is not at this hook any more.
pub(crate) fn attach_beside(
    program: &ProgramMut<'_>,
    ifindex: u32,
    beside: Beside,
    link: &Link,
) -> io::Result<Link> {
    let mut options = no_options();
    options.flags = libbpf_sys::BPF_F_LINK
        | match beside {
            Beside::Before => libbpf_sys::BPF_F_BEFORE,
            Beside::Behind => libbpf_sys::BPF_F_AFTER,
        };
    options.relative_fd = link.as_fd().as_raw_fd() as u32;
    attach_with(program, ifindex, &options)
}

fn no_options() -> libbpf_sys::bpf_tcx_opts {
    // SAFETY: all-zero bytes are a valid bpf_tcx_opts.
    let mut options: libbpf_sys::bpf_tcx_opts = unsafe { std::mem::zeroed() };
    options.sz = size_of_val(&options) as libbpf_sys::size_t;
    options
}

fn attach_with(
    program: &ProgramMut<'_>,
    ifindex: u32,
    options: &libbpf_sys::bpf_tcx_opts,
) -> io::Result<Link> {
    let program = program.as_libbpf_object().as_ptr();
    // SAFETY: the program is loaded and lives as long as the borrow of it.
    let link =
        unsafe { libbpf_sys::bpf_program__attach_tcx(program, ifindex as libc::c_int, options) };
    match NonNull::new(link) {
        // SAFETY: libbpf made this link just now and nobody else has the pointer.
        Some(link) => Ok(unsafe { Link::from_ptr(link) }),
        None => Err(io::Error::last_os_error()),
    }
}

/// False if the device has gone, or the program was detached.
pub(crate) fn is_attached(link: &Link) -> Result<bool> {
    let info = link.info().map_err(|e| Error::system("read what a link is attached to", e))?;
    Ok(!matches!(info.info, LinkTypeInfo::Tcx(tcx) if tcx.ifindex == 0))
}

/// The name of a loaded program; None if it has gone.
pub(crate) fn program_name(program_id: u32) -> Option<String> {
    let fd = libbpf_rs::Program::fd_from_id(program_id).ok()?;
    let info = program_info(fd.as_fd()).ok()?;
    let name = info.name.iter().map(|&c| c as u8).take_while(|&byte| byte != 0).collect();
    String::from_utf8(name).ok()
}

/// The kernel's digest of a program's instructions as loaded, without its maps: programs with the
/// same tag do the same.
pub(crate) type Tag = [u8; 8];

pub(crate) fn program_tag(program: BorrowedFd<'_>) -> io::Result<Tag> {
    Ok(program_info(program)?.tag)
}

/// The tag of a link's program. Opening the program by its ID would require CAP_SYS_ADMIN; reading
/// fdinfo requires no capability.
pub(crate) fn attached_tag(link: &Link) -> io::Result<Tag> {
    let path = format!("/proc/self/fdinfo/{}", link.as_fd().as_raw_fd());
    let text = fs::read_to_string(&path)?;
    let tag = text.lines().find_map(|line| line.strip_prefix("prog_tag:"));
    tag.and_then(|tag| u64::from_str_radix(tag.trim(), 16).ok())
        .map(u64::to_be_bytes)
        .ok_or_else(|| io::Error::other(format!("{path} shows no program")))
}

pub(crate) fn program_info(program: BorrowedFd<'_>) -> io::Result<libbpf_sys::bpf_prog_info> {
    // SAFETY: all-zero bytes are a valid bpf_prog_info, and they ask for none of its arrays.
    let mut info: libbpf_sys::bpf_prog_info = unsafe { std::mem::zeroed() };
    let mut length = size_of_val(&info) as u32;
    // SAFETY: the call writes at most `length` bytes to `info`.
    let status =
        unsafe { libbpf_sys::bpf_prog_get_info_by_fd(program.as_raw_fd(), &mut info, &mut length) };
    if status < 0 {
        return Err(io::Error::from_raw_os_error(-status));
    }
    Ok(info)
}

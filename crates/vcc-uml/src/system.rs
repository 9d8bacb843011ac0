//! Thin wrappers of system calls.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use vcc_net::ready::ready;

pub(crate) fn check(status: libc::c_int) -> io::Result<libc::c_int> {
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(status) }
}

/// Error for a protocol violation by a guest.
pub(crate) fn strange(what: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_string())
}

/// Pins the calling thread, and processes that it starts, to its current CPU. Until dropped, by the
/// same thread.
pub(crate) struct OneCpu {
    before: libc::cpu_set_t,
}

impl OneCpu {
    pub fn hold() -> io::Result<Self> {
        // SAFETY: an all-zero cpu_set_t is an empty set.
        let mut before: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: `before` is valid and of the size given; 0 is the calling thread.
        check(unsafe { libc::sched_getaffinity(0, size_of_val(&before), &mut before) })?;
        // SAFETY: takes nothing.
        let cpu = check(unsafe { libc::sched_getcpu() })?;
        // SAFETY: an all-zero cpu_set_t is an empty set; CPU_SET ignores a CPU beyond the set.
        let one = unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(cpu as usize, &mut set);
            set
        };
        set_affinity(&one)?;
        Ok(Self { before })
    }
}

fn set_affinity(set: &libc::cpu_set_t) -> io::Result<()> {
    // SAFETY: `set` is valid and of the size given; 0 is the calling thread.
    check(unsafe { libc::sched_setaffinity(0, size_of_val(set), set) }).map(drop)
}

impl Drop for OneCpu {
    fn drop(&mut self) {
        // The former CPUs are still allowed, unless the kernel has removed them.
        let _ = set_affinity(&self.before);
    }
}

/// An anonymous file of zeros.
pub(crate) fn memory_file(name: &std::ffi::CStr, bytes: u64) -> io::Result<OwnedFd> {
    // SAFETY: a valid name.
    let fd = check(unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) })?;
    // SAFETY: the descriptor was made just now and is nobody else's.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: takes no pointers.
    check(unsafe { libc::ftruncate(fd.as_raw_fd(), bytes as libc::off_t) })?;
    Ok(fd)
}

/// Which of these are readable or have ended. None on timeout or signal.
pub(crate) fn readable<const N: usize>(
    fds: [BorrowedFd<'_>; N],
    patience: Duration,
) -> io::Result<[bool; N]> {
    let places = fds.map(|fd| (fd.as_raw_fd(), libc::POLLIN));
    Ok(ready(places, patience)?.map(|events| events != 0))
}

//! The process at the other end of a connection on this host.

use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// Its ids when it connected or began to listen, in this process's namespaces; None if they are unknown.
pub fn credentials(stream: &UnixStream) -> Option<libc::ucred> {
    let mut credentials = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of_val(&credentials) as libc::socklen_t;
    // SAFETY: pointer and length are those of the structure, which outlives the call.
    let status = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            std::ptr::from_mut(&mut credentials).cast(),
            &mut length,
        )
    };
    (status == 0).then_some(credentials)
}

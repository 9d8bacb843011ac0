//! The process at the other end of a socket.

use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// Its id when it connected, in this process's PID namespace; 0 if that is unknown.
pub(crate) fn process(stream: &UnixStream) -> u32 {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: writes no more than `length` bytes into the structure, which outlives the call.
    let status = unsafe {
        let value = (&raw mut peer).cast();
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            value,
            &mut length,
        )
    };
    if status < 0 { 0 } else { u32::try_from(peer.pid).unwrap_or(0) }
}

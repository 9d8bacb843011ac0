//! The limit of open files.

use std::io;

/// Raises the soft limit to the hard one. The soft limit is low for the sake of programs that call
/// select(2). An open port takes two files, nine with `emit`, and a host may have thousands of ports.
pub fn allow_most() -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for writes.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } < 0 {
        return Err(io::Error::last_os_error());
    }
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: `limit` is valid for reads.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

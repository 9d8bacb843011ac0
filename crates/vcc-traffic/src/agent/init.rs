//! The duties of a guest's first process.

use std::ffi::CStr;
use std::io;
use vcc_traffic::system::check;
use vcc_traffic::{Doing, Result};

const MOUNTS: [(&CStr, &CStr); 2] = [(c"proc", c"/proc"), (c"sysfs", c"/sys")];

/// # Errors
/// A mount point or a file system does not exist.
pub fn mount_all() -> Result<()> {
    MOUNTS.iter().try_for_each(|(kind, place)| {
        let no_data = std::ptr::null();
        // SAFETY: all strings end with a zero; neither file system takes data.
        let result =
            unsafe { libc::mount(kind.as_ptr(), place.as_ptr(), kind.as_ptr(), 0, no_data) };
        check(result).map(drop).doing(|| format!("mount {}", place.to_string_lossy()))
    })
}

/// Returns only if the guest could not be powered off, with the reason.
pub fn power_off() -> io::Error {
    // Output that the console has not taken yet would be lost. This fails if it is not a terminal.
    // SAFETY: takes no pointers.
    unsafe { libc::tcdrain(libc::STDOUT_FILENO) };
    // SAFETY: takes no pointers. There is no file system to be synchronised.
    match check(unsafe { libc::reboot(libc::RB_POWER_OFF) }) {
        Ok(_) => io::Error::other("reboot(2) returned without an error"),
        Err(error) => error,
    }
}

//! What a guest's first process has to do beside its work.

use std::ffi::CStr;
use std::io;
use vcc_traffic::system::check;
use vcc_traffic::{Doing, Result};

const MOUNTS: [(&CStr, &CStr); 2] = [(c"proc", c"/proc"), (c"sysfs", c"/sys")];

/// # Errors
/// The root has no place for one of them, or the kernel does not have it.
pub fn mount_all() -> Result<()> {
    MOUNTS.iter().try_for_each(|(kind, place)| {
        let no_data = std::ptr::null();
        // SAFETY: all strings end with a zero; neither file system takes data.
        let result =
            unsafe { libc::mount(kind.as_ptr(), place.as_ptr(), kind.as_ptr(), 0, no_data) };
        check(result).map(drop).doing(|| format!("mount {}", place.to_string_lossy()))
    })
}

/// Does not return but with the reason why the guest is still running.
pub fn power_off() -> io::Error {
    // What is still on its way to the console would be lost. If it is no terminal, nothing is.
    // SAFETY: takes no pointers.
    unsafe { libc::tcdrain(libc::STDOUT_FILENO) };
    // SAFETY: takes no pointers. There is no file system to be synchronised.
    match check(unsafe { libc::reboot(libc::RB_POWER_OFF) }) {
        Ok(_) => io::Error::other("the kernel has taken the order and goes on"),
        Err(error) => error,
    }
}

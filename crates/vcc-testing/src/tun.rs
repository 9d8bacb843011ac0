//! TUN and TAP devices.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

pub const TUN: &str = "/dev/net/tun";

/// Creates a device in the calling thread's network namespace, which ends with the file. `kind` is
/// IFF_TUN or IFF_TAP, with more flags of TUNSETIFF if need be; the device has no tun_pi header.
/// `open_flags` are those of open(2).
pub fn create(name: &str, kind: libc::c_int, open_flags: libc::c_int) -> File {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).custom_flags(open_flags).open(TUN).expect(TUN);
    // SAFETY: all-zero bytes are a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (kind | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes an ifreq, which `request` is.
    let status = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &mut request) };
    assert_eq!(status, 0, "{TUN}: {name}: {}", io::Error::last_os_error());
    file
}

//! TAP devices without offloads: what is read and written are whole frames, checksums and all.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;

const TUN: &str = "/dev/net/tun";

/// A device `name` in the calling thread's network namespace, gone with the file.
pub fn create(name: &str) -> File {
    let file = OpenOptions::new().read(true).write(true).open(TUN).expect(TUN);
    // SAFETY: all-zero bytes are a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the request is a live ifreq.
    let status = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &mut request) };
    assert_eq!(status, 0, "{TUN}: {name}: {}", io::Error::last_os_error());
    file
}

//! Descriptors that become ready.

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

/// Which of these events (poll(2)) have come at each descriptor, after at most this time in whole milliseconds. None
/// on timeout or signal. A descriptor below 0 has no events.
///
/// # Errors
/// The kernel has no memory.
pub fn ready<const N: usize>(
    places: [(RawFd, libc::c_short); N],
    at_most: Duration,
) -> io::Result<[libc::c_short; N]> {
    let mut polled = places.map(|(fd, events)| libc::pollfd { fd, events, revents: 0 });
    let at_most_ms = at_most.as_millis() as libc::c_int;
    // SAFETY: an array of that length.
    let status = unsafe { libc::poll(polled.as_mut_ptr(), N as libc::nfds_t, at_most_ms) };
    if status >= 0 {
        return Ok(polled.map(|place| place.revents));
    }
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::Interrupted => Ok([0; N]),
        error => Err(error),
    }
}

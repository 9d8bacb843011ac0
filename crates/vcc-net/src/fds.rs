//! Messages with descriptors over Unix sockets.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// Maximum number of descriptors with a message: as many as vhost-user has regions of memory
/// (VHOST_MEMORY_BASELINE_NREGIONS).
pub const FDS_MAX: usize = 8;
// SAFETY: computes a length.
const CONTROL_BYTES: usize =
    unsafe { libc::CMSG_SPACE((FDS_MAX * size_of::<libc::c_int>()) as libc::c_uint) as usize };

/// A buffer for control messages, with their alignment.
#[repr(align(8))]
struct Control([u8; CONTROL_BYTES]);

/// Reads once, with descriptors. 0 bytes: the other end has closed.
///
/// # Errors
/// `ENOBUFS`: there are more than [`FDS_MAX`] descriptors, or more than this process may have.
pub fn receive_with_fds(
    stream: &UnixStream,
    buffer: &mut [u8],
) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut control = Control([0; CONTROL_BYTES]);
    let mut slice = IoSliceMut::new(buffer);
    // SAFETY: all zeros are a valid msghdr.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = (&raw mut slice).cast();
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = CONTROL_BYTES as _;
    let bytes = loop {
        // SAFETY: all that `message` points to lives and is as long as it says.
        let status =
            unsafe { libc::recvmsg(stream.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC) };
        if status >= 0 {
            break status as usize;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    };
    let mut fds = Vec::new();
    // SAFETY: the kernel has filled `control` and said how far; the macros stay inside of that.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(&message);
        while let Some(it) = header.as_ref() {
            if it.cmsg_level == libc::SOL_SOCKET && it.cmsg_type == libc::SCM_RIGHTS {
                let data_bytes = it.cmsg_len - libc::CMSG_LEN(0) as usize;
                let data = libc::CMSG_DATA(header).cast::<libc::c_int>();
                for i in 0..(data_bytes / size_of::<libc::c_int>()).min(FDS_MAX) {
                    fds.push(OwnedFd::from_raw_fd(data.add(i).read_unaligned()));
                }
            }
            header = libc::CMSG_NXTHDR(&message, header);
        }
    }
    if message.msg_flags & libc::MSG_CTRUNC != 0 {
        return Err(io::Error::from_raw_os_error(libc::ENOBUFS));
    }
    Ok((bytes, fds))
}

/// Writes everything in one message with these descriptors.
///
/// # Errors
/// The other end is gone, or does not take all of it.
///
/// # Panics
/// With more than [`FDS_MAX`] descriptors.
pub fn send_with_fds(stream: &UnixStream, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut control = Control([0; CONTROL_BYTES]);
    let raw: Vec<libc::c_int> = fds.iter().map(AsRawFd::as_raw_fd).collect();
    let fds_bytes = size_of_val(raw.as_slice()) as libc::c_uint;
    let slice = IoSlice::new(bytes);
    // SAFETY: all zeros are a valid msghdr.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = (&raw const slice).cast_mut().cast();
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    // SAFETY: computes a length.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(fds_bytes) } as _;
    assert!(fds.len() <= FDS_MAX, "room for all descriptors");
    // SAFETY: `control` has room for one header and these descriptors, as asserted.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(fds_bytes) as _;
        let data = libc::CMSG_DATA(header);
        std::ptr::copy_nonoverlapping(raw.as_ptr().cast(), data, fds_bytes as usize);
    }
    // SAFETY: all that `message` points to lives and is as long as it says.
    let sent = unsafe { libc::sendmsg(stream.as_raw_fd(), &message, libc::MSG_NOSIGNAL) };
    match usize::try_from(sent) {
        Ok(sent) if sent == bytes.len() => Ok(()),
        Ok(_) => Err(io::ErrorKind::WriteZero.into()),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

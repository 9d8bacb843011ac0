//! Thin wrappers of system calls.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

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
    let mut polled =
        fds.map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 });
    let patience_ms = patience.as_millis() as libc::c_int;
    // SAFETY: an array of that length.
    let status = unsafe { libc::poll(polled.as_mut_ptr(), N as libc::nfds_t, patience_ms) };
    match check(status) {
        Ok(_) => Ok(polled.map(|it| it.revents != 0)),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok([false; N]),
        Err(error) => Err(error),
    }
}

/// Maximum number of descriptors in a received message.
const FDS_MAX: usize = 8;
const CONTROL_BYTES: usize = 64;

/// A buffer for control messages, with their alignment.
#[repr(align(8))]
struct Control([u8; CONTROL_BYTES]);

/// Reads once, with descriptors. 0 bytes: the other end has closed.
pub(crate) fn receive_with_fds(
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
    Ok((bytes, fds))
}

/// Writes everything in one message with these descriptors.
pub(crate) fn send_with_fds(
    stream: &UnixStream,
    bytes: &[u8],
    fds: &[BorrowedFd<'_>],
) -> io::Result<()> {
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
    debug_assert!(message.msg_controllen as usize <= CONTROL_BYTES);
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

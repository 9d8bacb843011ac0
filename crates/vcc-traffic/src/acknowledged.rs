//! Whether the peer has acknowledged all that was written to a TCP socket, and a notice when it has.

use crate::error::{Doing, Result};
use crate::system::check;
use socket2::Socket;
use std::os::fd::AsRawFd;

/// Makes the socket's error queue, and so a poll of the socket, report when the bytes written from
/// now on are acknowledged (Documentation/networking/timestamping.rst).
///
/// # Errors
/// The kernel has no such timestamps.
pub fn enable(socket: &Socket) -> Result<()> {
    let options = libc::SOF_TIMESTAMPING_TX_ACK
        | libc::SOF_TIMESTAMPING_SOFTWARE
        | libc::SOF_TIMESTAMPING_OPT_TSONLY;
    // SAFETY: `options` is valid for the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPING,
            (&raw const options).cast(),
            size_of_val(&options) as libc::socklen_t,
        )
    };
    check(result).map(drop).doing(|| "ask for the times of acknowledgements".into())
}

/// Whether all bytes have been acknowledged. Empties the error queue. A FIN behind them counts as
/// one in the kernel's figure (tcp_ioctl()).
///
/// # Errors
/// This is not a TCP socket.
pub fn is_all(socket: &Socket) -> Result<bool> {
    let fd = socket.as_raw_fd();
    let mut control = [0u8; 256];
    loop {
        // SAFETY: all zero is valid: no address, no data.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = control.len() as _;
        // SAFETY: `message` points to the `control` of this length.
        if unsafe { libc::recvmsg(fd, &mut message, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT) } < 0 {
            break;
        }
    }
    let mut unacknowledged: libc::c_int = 0;
    // SAFETY: SIOCOUTQ writes one int.
    let result = unsafe { libc::ioctl(fd, libc::TIOCOUTQ, &mut unacknowledged) };
    check(result).doing(|| "read what a socket has unacknowledged (SIOCOUTQ)".into())?;
    Ok(unacknowledged <= 1)
}

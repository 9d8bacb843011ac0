//! A tap with virtio-net headers, so that checksums and super-segments pass as they are.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice, Read, Write};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::header::HEADER_BYTES;
use crate::offload::Offload;
use crate::wire::Wire;

const TUN: &str = "/dev/net/tun";
/// The greatest of a tap.
const MTU_MAX: libc::c_int = 0xffff - 14;
/// Of a temporary tap.
const QUEUE_FRAMES: libc::c_int = 4096;

/// A tap of this host. It is one's own until this is dropped.
pub struct Tap {
    file: File,
    name: String,
}

#[derive(Debug, thiserror::Error)]
pub enum TapError {
    #[error(
        "there is no tap `{0}`: create it with `ip tuntap add dev {0} mode tap`, so that it outlives \
         this process"
    )]
    Missing(String),
    #[error("cannot open {TUN}: {0}")]
    Open(io::Error),
    #[error("`{0}` is no name of a device: it has 1 to 15 bytes")]
    BadName(String),
    #[error("the tap `{0}` is in use by another process")]
    Busy(String),
    #[error("cannot use `{name}` as a tap with one queue: {error}")]
    Refused { name: String, error: io::Error },
    #[error("cannot create a tap for the detour: {0}")]
    Create(io::Error),
}

impl Tap {
    /// Opens a persistent tap: one that ended with its process would leave its bridge with it.
    ///
    /// # Errors
    /// There is no such tap, or it is in use.
    pub fn open(name: &str) -> Result<Self, TapError> {
        let c_name = CString::new(name).ok().filter(|_| (1..libc::IFNAMSIZ).contains(&name.len()));
        let Some(c_name) = c_name else { return Err(TapError::BadName(name.to_owned())) };
        // SAFETY: the name ends with a zero byte.
        if unsafe { libc::if_nametoindex(c_name.as_ptr()) } == 0 {
            return Err(TapError::Missing(name.to_owned()));
        }
        let refused = |error: io::Error| match error.raw_os_error() {
            Some(libc::EBUSY) => TapError::Busy(name.to_owned()),
            _ => TapError::Refused { name: name.to_owned(), error },
        };
        Self::attach(open_tun()?, name).map_err(refused)
    }

    /// Makes a tap that ends with this value, and is down. The kernel replaces the `%d` in `pattern` by a
    /// number.
    ///
    /// # Errors
    /// The kernel makes no taps, or none for this process.
    pub fn temporary(pattern: &str) -> Result<Self, TapError> {
        let tap = Self::attach(open_tun()?, pattern).map_err(TapError::Create)?;
        // Without IPv6, there is no such file. An address of the host's here would be of no use.
        let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{}/disable_ipv6", tap.name), "1");
        Ok(tap)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    fn attach(file: File, name: &str) -> io::Result<Self> {
        let mut request = request(name);
        let flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
        request.ifr_ifru.ifru_flags = flags as libc::c_short;
        // SAFETY: TUNSETIFF reads and writes an ifreq, which `request` is.
        check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &mut request) })?;
        let name = request.ifr_name.iter().map(|c| *c as u8).take_while(|byte| *byte != 0);
        let name = String::from_utf8_lossy(&name.collect::<Vec<u8>>()).into_owned();
        let tap = Tap { file, name };
        tap.set(libc::TUNSETVNETHDRSZ, HEADER_BYTES as libc::c_int)?;
        tap.set(libc::TUNSETVNETLE, 1)?;
        tap.offload(0)?;
        Ok(tap)
    }

    /// Sets a temporary tap up, with a queue for bursts while this process does not run.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn set_up(&self) -> Result<(), TapError> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(TapError::Create)?;
        let ask = |what: libc::Ioctl, request: &libc::ifreq| {
            // SAFETY: the requests below read an ifreq.
            check(unsafe { libc::ioctl(socket.as_raw_fd(), what, request) })
                .map_err(TapError::Create)
        };
        let mut request = request(&self.name);
        request.ifr_ifru.ifru_mtu = MTU_MAX;
        ask(libc::SIOCSIFMTU, &request)?;
        request.ifr_ifru.ifru_metric = QUEUE_FRAMES;
        ask(libc::SIOCSIFTXQLEN, &request)?;
        request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
        ask(libc::SIOCSIFFLAGS, &request)
    }

    fn set(&self, what: libc::Ioctl, value: libc::c_int) -> io::Result<()> {
        // SAFETY: these requests read an int.
        check(unsafe { libc::ioctl(self.file.as_raw_fd(), what, &value) })
    }

    fn offload(&self, flags: libc::c_uint) -> io::Result<()> {
        // SAFETY: TUNSETOFFLOAD takes its flags by value.
        check(unsafe {
            libc::ioctl(self.file.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(flags))
        })
    }
}

fn open_tun() -> Result<File, TapError> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open(TUN)
        .map_err(TapError::Open)
}

fn request(name: &str) -> libc::ifreq {
    // SAFETY: all-zero bytes are a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request
}

/// A tap that was deleted does not come back to those that had it open.
fn with_remedy(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::EBADFD) => io::ErrorKind::NotConnected.into(),
        // Of a write.
        Some(libc::EIO) => io::ErrorKind::NetworkDown.into(),
        _ => error,
    }
}

fn check(status: libc::c_int) -> io::Result<()> {
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

impl AsRawFd for Tap {
    fn as_raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

impl Wire for Tap {
    fn receive(&mut self, frame: &mut [u8]) -> io::Result<usize> {
        self.file.read(frame).map_err(with_remedy)
    }

    fn send(&mut self, header: &[u8; HEADER_BYTES], frame: &[u8]) -> io::Result<()> {
        self.file
            .write_vectored(&[IoSlice::new(header), IoSlice::new(frame)])
            .map(drop)
            .map_err(with_remedy)
    }

    fn set_offload(&mut self, offload: Offload) -> io::Result<()> {
        let flags = [
            (offload.checksum, libc::TUN_F_CSUM),
            (offload.tso4, libc::TUN_F_TSO4),
            (offload.tso6, libc::TUN_F_TSO6),
            (offload.ecn, libc::TUN_F_TSO_ECN),
        ];
        self.offload(flags.iter().filter(|(on, _)| *on).fold(0, |all, (_, flag)| all | flag))
    }
}

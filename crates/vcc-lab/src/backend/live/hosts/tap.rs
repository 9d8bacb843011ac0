//! TAP devices: where frames pass between a host's kernel and the emulator.

use crate::base::error::{Doing, Error, Result};
use crate::base::system::check;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

const CLONE_DEVICE: &str = "/dev/net/tun";
const ETHERNET_HEADER_BYTES: usize = 14;
/// The longest IP packet with its Ethernet and virtio-net headers.
const SUPER_SEGMENT_ROOM_BYTES: usize = 65_535 + 64;

pub struct Tap {
    file: File,
    /// Buffer size: a full frame, and room to detect a longer one.
    frame_room_bytes: usize,
}

impl Tap {
    /// Creates the device in the namespace of the calling thread. Without offloads, so that the
    /// kernel hands over frames as they would be on a wire: segmented, with full checksums.
    pub fn create(name: &str, mtu_bytes: u16) -> Result<Self> {
        let frame_bytes = ETHERNET_HEADER_BYTES + usize::from(mtu_bytes);
        Self::open(name, 0, (frame_bytes + 1).next_power_of_two())
    }

    /// As [`Tap::create`], but frames have a virtio-net header, and may be super-segments with
    /// checksums left to do. The header is good for another such device.
    pub fn with_offloads(name: &str) -> Result<Self> {
        let tap = Self::open(name, libc::IFF_VNET_HDR, SUPER_SEGMENT_ROOM_BYTES)?;
        let offloads = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
        // SAFETY: TUNSETOFFLOAD takes its flags by value.
        check(unsafe { libc::ioctl(tap.fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(offloads)) })
            .doing(|| format!("set the offloads of the TAP device {name}"))?;
        Ok(tap)
    }

    fn open(name: &str, flags: libc::c_int, frame_room_bytes: usize) -> Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(CLONE_DEVICE)
            .map_err(|error| Error::Missing {
                what: format!("{CLONE_DEVICE} ({error})"),
                remedy: "load the tun module".into(),
            })?;
        // SAFETY: all-zero is a valid ifreq.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI | flags) as libc::c_short;
        // SAFETY: TUNSETIFF reads and writes an ifreq, which `request` is.
        check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &mut request) })
            .doing(|| format!("create the TAP device {name}"))?;
        Ok(Self { file, frame_room_bytes })
    }

    pub fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Reads a frame into `buffer`; false when there is none.
    pub fn read(&self, buffer: &mut Vec<u8>) -> io::Result<bool> {
        buffer.resize(self.frame_room_bytes, 0);
        match (&self.file).read(buffer) {
            Ok(bytes) => {
                buffer.truncate(bytes);
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Hands a frame to the kernel; false when it did not take it.
    pub fn write(&self, frame: &[u8]) -> bool {
        (&self.file).write(frame).is_ok_and(|bytes| bytes == frame.len())
    }
}

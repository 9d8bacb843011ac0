//! TAP devices as a hypervisor uses them: each frame has a virtio-net header.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;

use vcc_testing::tun;

/// From linux/virtio_net.h.
const NEEDS_CSUM: u8 = 1;
pub const DATA_VALID: u8 = 2;
pub const GSO_NONE: u8 = 0;
pub const GSO_TCPV4: u8 = 1;
pub const GSO_TCPV6: u8 = 4;
/// A flag in addition to the type: the super-segment carries CWR.
pub const GSO_ECN: u8 = 0x80;
const VNET_HEADER_BYTES: usize = 10;

const FRAME_MAX_BYTES: usize = 1 << 16;
const PATIENCE_MS: libc::c_int = 2_000;

/// struct virtio_net_hdr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VnetHeader {
    pub flags: u8,
    pub gso_type: u8,
    pub gso_size: u16,
    pub csum_start: u16,
    pub csum_offset: u16,
}

impl VnetHeader {
    /// The device has to sum from `start` on, and store the checksum `offset` bytes behind it.
    pub fn partial(start: usize, offset: usize) -> Self {
        VnetHeader {
            flags: NEEDS_CSUM,
            csum_start: start as u16,
            csum_offset: offset as u16,
            ..Self::default()
        }
    }

    pub fn is_partial(&self) -> bool {
        self.flags & NEEDS_CSUM != 0
    }

    fn bytes(&self) -> Vec<u8> {
        // For a super-segment, the bytes up to the payload; the kernel determines them itself.
        let header_bytes = self.csum_start;
        let words = [header_bytes, self.gso_size, self.csum_start, self.csum_offset];
        let words = words.into_iter().flat_map(u16::to_ne_bytes);
        [self.flags, self.gso_type].into_iter().chain(words).collect()
    }

    fn parse(bytes: &[u8]) -> Self {
        let word = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        VnetHeader {
            flags: bytes[0],
            gso_type: bytes[1],
            gso_size: word(4),
            csum_start: word(6),
            csum_offset: word(8),
        }
    }
}

pub struct Tap {
    file: File,
}

impl Tap {
    pub fn create(name: &str) -> Self {
        Tap { file: tun::create(name, libc::IFF_TAP | libc::IFF_VNET_HDR, 0) }
    }

    /// Sets whether the reader supports partial checksums and super-segments.
    pub fn set_offloads(&self, on: bool) {
        let all = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
        let offloads = libc::c_ulong::from(if on { all } else { 0 });
        // SAFETY: the argument is a number.
        let status =
            unsafe { libc::ioctl(self.file.as_raw_fd(), libc::TUNSETOFFLOAD as _, offloads) };
        assert!(status >= 0, "TUNSETOFFLOAD: {}", io::Error::last_os_error());
    }

    /// Sends as the guest or the fabric behind the device.
    pub fn send(&self, header: VnetHeader, frame: &[u8]) {
        let bytes = [header.bytes(), frame.to_vec()].concat();
        (&self.file).write_all(&bytes).expect("the device takes the frame");
    }

    /// The next frame for which `ours` holds; the kernel sends frames of its own, too.
    pub fn receive(&self, ours: impl Fn(&[u8]) -> bool) -> (VnetHeader, Vec<u8>) {
        loop {
            self.wait();
            let mut bytes = vec![0; VNET_HEADER_BYTES + FRAME_MAX_BYTES];
            let read = (&self.file).read(&mut bytes).expect("a frame");
            let (header, frame) = bytes[..read].split_at(VNET_HEADER_BYTES);
            if ours(frame) {
                return (VnetHeader::parse(header), frame.to_vec());
            }
        }
    }

    fn wait(&self) {
        let mut poll = libc::pollfd { fd: self.file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one live pollfd.
        let ready = unsafe { libc::poll(&mut poll, 1, PATIENCE_MS) };
        assert_eq!(ready, 1, "no frame came");
    }
}

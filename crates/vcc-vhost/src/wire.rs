//! The host's side of the card.

use std::io;
use std::os::fd::AsRawFd;

use crate::features::Features;
use crate::header::HEADER_BYTES;

/// Carries frames between the card and the host's network. Its descriptor is readable when a frame
/// waits. No call blocks.
pub trait Wire: AsRawFd + Send + Sync {
    /// Reads a virtio-net header and a frame behind it. Returns the bytes of both.
    ///
    /// # Errors
    /// `WouldBlock`: no frame waits. `NotConnected`: there is no wire any more. Others: this frame is
    /// lost.
    fn receive(&mut self, frame: &mut [u8]) -> io::Result<usize>;

    /// Sends a frame with its virtio-net header.
    ///
    /// # Errors
    /// The frame is not sent. `NetworkDown`: none is now. `NotConnected`: there is no wire any more.
    fn send(&mut self, header: &[u8; HEADER_BYTES], frame: &[u8]) -> io::Result<()>;

    /// What the guest takes from now on; nothing before the first call.
    fn set_offload(&mut self, offload: Offload) -> io::Result<()>;
}

/// What a guest accepts in a frame to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// Checksums to be completed.
    pub checksum: bool,
    /// Super-segments.
    pub tso4: bool,
    pub tso6: bool,
    /// Super-segments with CWR.
    pub ecn: bool,
}

impl Offload {
    /// Segmentation needs checksums (virtio 1.2, 5.1.3.1).
    pub(crate) fn of(features: Features) -> Self {
        let checksum = features.has(Features::GUEST_CSUM);
        let [tso4, tso6] =
            [Features::GUEST_TSO4, Features::GUEST_TSO6].map(|bit| checksum && features.has(bit));
        Offload { checksum, tso4, tso6, ecn: (tso4 || tso6) && features.has(Features::GUEST_ECN) }
    }
}

//! The host's side of the card.

use std::io;
use std::os::fd::AsRawFd;

use crate::header::HEADER_BYTES;
use crate::offload::Offload;

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

    /// The offloads that the guest takes from now on; none before the first call.
    fn set_offload(&mut self, offload: Offload) -> io::Result<()>;
}

//! The host's side of the card, and both sides of a relay.

use std::io;
use std::os::fd::AsRawFd;

use vcc_domain::Frame;

use crate::header::{FRAME_MAX_BYTES, HEADER_BYTES, Header};
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

/// What has come of reading a wire.
pub(crate) enum Received {
    Frame(Header, Frame),
    Nothing,
    /// There is no wire any more.
    Gone,
    /// A frame is lost.
    Failed,
}

/// Why a wire has not taken a frame.
pub(crate) enum Unsent {
    Gone,
    Down,
    Refused,
}

/// Memory for a frame with its header.
pub(crate) fn frame_memory() -> Box<[u8]> {
    vec![0; HEADER_BYTES + FRAME_MAX_BYTES].into()
}

/// Reads a frame. It takes over `memory`, so that none is allocated.
pub(crate) fn receive(wire: &mut dyn Wire, read: &mut [u8], memory: &mut Vec<u8>) -> Received {
    let bytes = match wire.receive(read) {
        Ok(bytes) => bytes,
        Err(error) => {
            return match error.kind() {
                io::ErrorKind::WouldBlock => Received::Nothing,
                io::ErrorKind::NotConnected => Received::Gone,
                _ => Received::Failed,
            };
        }
    };
    let Some((header, bytes)) = read[..bytes].split_first_chunk() else { return Received::Failed };
    let header = Header::read(header);
    let mut memory = std::mem::take(memory);
    memory.clear();
    memory.extend_from_slice(bytes);
    Received::Frame(header, header.frame(memory))
}

pub(crate) fn send(wire: &mut dyn Wire, header: Header, frame: &Frame) -> Result<(), Unsent> {
    wire.send(&header.bytes(), &frame.bytes).map_err(|error| match error.kind() {
        io::ErrorKind::NotConnected => Unsent::Gone,
        io::ErrorKind::NetworkDown => Unsent::Down,
        _ => Unsent::Refused,
    })
}

//! Frames that pass the port.

/// State of a frame's TCP checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// Complete, as on a wire.
    Full,
    /// Complete, and verified by the device that the frame comes from (VIRTIO_NET_HDR_F_DATA_VALID).
    Verified,
    /// To be completed by the next device (VIRTIO_NET_HDR_F_NEEDS_CSUM): the field holds the sum of
    /// the pseudo-header, not complemented.
    Partial,
}

impl Checksum {
    /// Does it cover all of TCP?
    pub(crate) fn is_complete(self) -> bool {
        self != Checksum::Partial
    }
}

/// A frame between a guest's card and the fabric, described as by virtio-net.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Starts with the Ethernet header and contains the 802.1Q tag, if any.
    pub bytes: Vec<u8>,
    /// Payload of each full segment of a super-segment; 0: a single segment. Segmentation keeps CWR
    /// on the first segment only (RFC 3168, 6.1.2).
    pub gso_size: u16,
    /// For TCP; frames of other protocols pass unchanged.
    pub checksum: Checksum,
}

impl Frame {
    /// A single segment with a full checksum.
    pub fn full(bytes: Vec<u8>) -> Self {
        Frame { bytes, gso_size: 0, checksum: Checksum::Full }
    }

    /// Gives memory back that the bytes do not need, before the frame is kept: its buffer may have had a
    /// super-segment before.
    pub fn shrink_to_keep(&mut self) {
        if self.bytes.capacity() > 2 * self.bytes.len() {
            self.bytes.shrink_to_fit();
        }
    }

    /// Takes the frame out of the caller's buffer, to keep it.
    pub(crate) fn take_to_keep(&mut self) -> Self {
        let mut taken = Frame { bytes: std::mem::take(&mut self.bytes), ..*self };
        taken.shrink_to_keep();
        taken
    }

    /// Trims or extends the frame. As in the kernel, it is no super-segment afterwards.
    pub(crate) fn resize(&mut self, bytes: usize) {
        self.bytes.resize(bytes, 0);
        self.gso_size = 0;
    }
}

/// The fate of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// Forward it as rewritten.
    Pass,
    /// Drop it; it is unchanged.
    Drop,
    /// The port has taken it, and forwards it later or in parts.
    Held,
}

/// Frames to forward, in this order, after the frame that the call was about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Out {
    pub to_fabric: Vec<Frame>,
    /// They must not pass through the port again.
    pub to_guest: Vec<Frame>,
}

/// The direction of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    FromGuest,
    ToGuest,
}

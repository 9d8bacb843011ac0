//! What crosses the port.

/// How far a frame's TCP checksum is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// As it must be on a wire.
    Full,
    /// The next device completes it (VIRTIO_NET_HDR_F_NEEDS_CSUM): the field holds the sum of the
    /// pseudo-header alone, not complemented.
    Partial,
}

/// A frame between a guest's card and the fabric, as virtio-net describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// From the Ethernet header on; an 802.1Q tag stands in it.
    pub bytes: Vec<u8>,
    /// Payload in bytes of each full segment of a super-segment; 0: a single segment. Whoever cuts
    /// it leaves CWR, where the header has it, to the first segment (RFC 3168, 6.1.2).
    pub gso_size: u16,
    /// Of TCP; frames of other protocols pass as they are.
    pub checksum: Checksum,
}

impl Frame {
    /// A single segment whose checksum is full.
    pub fn full(bytes: Vec<u8>) -> Self {
        Frame { bytes, gso_size: 0, checksum: Checksum::Full }
    }

    /// Cuts the frame off, or makes room. As in the kernel it is no super-segment from then on.
    pub(crate) fn resize(&mut self, bytes: usize) {
        self.bytes.resize(bytes, 0);
        self.gso_size = 0;
    }
}

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// It goes on, as it stands now.
    Pass,
    /// It ends here, and stands as it came.
    Drop,
}

/// Which way a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    FromGuest,
    ToGuest,
}

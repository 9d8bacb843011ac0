//! A packet of a capture, and where it was captured.

use std::ops::Range;

use crate::link::Link;

/// More than any device passes at once, a super-segment of BIG TCP included.
pub(crate) const PACKET_MAX_BYTES: u32 = 1 << 20;

/// An interface at which packets were captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// From the file, or else its number.
    pub name: String,
}

/// A packet as an Ethernet frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Of its record, from the file's start.
    pub offset: u64,
    /// Since 1970.
    pub time_ns: u64,
    /// The index in [`Capture::interfaces`].
    pub interface: usize,
    /// The number of the device, of which an interface may have captured several.
    pub device: Option<u32>,
    /// Of a recording of a port: whether the guest sent it.
    pub from_guest: Option<bool>,
    /// The size of the frame when it was captured.
    pub frame_bytes: usize,
    /// What was kept of it.
    pub frame: Vec<u8>,
}

/// A packet in the bytes of its record.
pub(crate) struct Raw {
    pub offset: u64,
    pub time_ns: u64,
    pub interface: usize,
    pub from_guest: Option<bool>,
    pub link: Link,
    pub original_bytes: u32,
    pub place: Range<usize>,
}

impl Raw {
    pub(crate) fn write(self, bytes: &[u8], packet: &mut Packet) {
        let captured = bytes.get(self.place).unwrap_or_default();
        // Some programs leave the original length 0.
        let original_bytes = captured.len().max(self.original_bytes as usize);
        self.link.write_frame(captured, &mut packet.frame);
        packet.frame_bytes = self.link.frame_bytes(original_bytes);
        packet.device = self.link.device(captured);
        packet.offset = self.offset;
        packet.time_ns = self.time_ns;
        packet.interface = self.interface;
        packet.from_guest = self.from_guest;
    }
}

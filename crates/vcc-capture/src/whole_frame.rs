//! Frames in the size that they had, of which a capture may have kept a part.

use std::mem;

use vcc_domain::{Checksum, Frame, TcpHeader};

use crate::packet::{PACKET_MAX_BYTES, Packet};
use crate::segment::Segment;
use crate::watched::SEGMENT_BYTES;

/// Of a TCP header without options.
const TCP_HEADER_BYTES: usize = 20;

impl Packet {
    /// None if it is not TCP, is a fragment behind the first, or was cut before the end of the TCP header
    /// without options. With a header that was cut, the segment's payload is not known.
    pub fn segment(&mut self) -> Option<Segment> {
        let captured_bytes = self.frame.len();
        let frame = whole(self);
        let is_there = |header: &TcpHeader| header.at + TCP_HEADER_BYTES <= captured_bytes;
        let header = frame.tcp_header().filter(is_there);
        let segment = header.map(|header| Segment::read(&frame, &header));
        self.frame = frame.bytes;
        self.frame.truncate(captured_bytes);
        segment
    }
}

/// The frame in the size that it had, with 0 for what was not captured: ports read headers alone. Checksums
/// are not verified, because a sender's own device computes them behind the place of the capture.
pub(crate) fn whole(packet: &mut Packet) -> Frame {
    let mut bytes = mem::take(&mut packet.frame);
    let original_bytes = packet.frame_bytes.min(PACKET_MAX_BYTES as usize);
    if bytes.len() < original_bytes {
        bytes.resize(original_bytes, 0);
    }
    Frame { bytes, gso_size: SEGMENT_BYTES, checksum: Checksum::Verified }
}

//! Where a frame has its TCP header, for devices that complete checksums and segment.

use vcc_engine::sys;

use crate::frame::{Direction, Frame};
use crate::parse::parse;

/// A frame's TCP header. Offsets are from the frame's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpHeader {
    pub at: usize,
    pub end: usize,
    pub is_ipv6: bool,
    pub has_cwr: bool,
    /// The payload is longer than `gso_size`, which is not 0.
    pub is_super_segment: bool,
}

impl Frame {
    /// None if the port passes the frame as not TCP, malformed or a fragment.
    pub fn tcp_header(&self) -> Option<TcpHeader> {
        // The direction decides which end is the guest, and no more.
        let parsed = parse(self, Direction::FromGuest).ok()?;
        Some(TcpHeader {
            at: parsed.ip.tcp_at,
            end: parsed.header_end(),
            is_ipv6: parsed.ip.ipv6,
            has_cwr: u32::from(parsed.segment.flags) & sys::TCP_CWR != 0,
            is_super_segment: parsed.segment.seg_bytes > 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use vcc_frames::{Packet, payload};

    use super::*;
    use crate::testing::{Talk, framed};

    #[test]
    fn it_lies_behind_the_ip_header() {
        for (talk, at, is_ipv6) in [(Talk::v4(), 34, false), (Talk::v6(), 54, true)] {
            let data = Packet { payload: payload(200), options: vec![1; 4], ..talk.segment(true) };
            let has_cwr = false;
            let header = TcpHeader { at, end: at + 24, is_ipv6, has_cwr, is_super_segment: true };
            let frame = Frame { gso_size: 100, ..framed(&data) };
            assert_eq!(frame.tcp_header(), Some(header));
            let single = Frame { gso_size: 200, ..framed(&data) };
            assert_eq!(single.tcp_header(), Some(TcpHeader { is_super_segment: false, ..header }));
            let flags = data.flags | sys::TCP_CWR as u16;
            let reduced = framed(&Packet { flags, ..data }).tcp_header().expect("TCP");
            assert!(reduced.has_cwr);
        }
        assert_eq!(Frame::full(vec![0; 60]).tcp_header(), None);
    }
}

//! struct virtio_net_hdr_v1 (virtio 1.2, 5.1.6): what a frame leaves to the device behind it. A tap
//! and a card use the same.

use vcc_domain::{Checksum, Frame};

use vcc_net::virtio::feature;

use crate::features::Features;
use crate::offload::Offload;

/// Bytes of a virtio-net header.
pub const HEADER_BYTES: usize = 12;
/// A super-segment of 64 KiB of IP, with Ethernet header and 802.1Q tag.
pub(crate) const FRAME_MAX_BYTES: usize = 14 + 4 + 0xffff;
const FRAME_MIN_BYTES: usize = 14;
const CHECKSUM_BYTES: usize = 2;

/// VIRTIO_NET_HDR_F_NEEDS_CSUM.
const NEEDS_CHECKSUM: u8 = 1;
/// VIRTIO_NET_HDR_F_DATA_VALID.
const CHECKSUM_IS_VALID: u8 = 2;
/// VIRTIO_NET_HDR_GSO_NONE, _TCPV4, _TCPV6, _ECN.
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_ECN: u8 = 0x80;
const TCP_CHECKSUM_AT: u16 = 16;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    flags: u8,
    gso_type: u8,
    /// A hint: Ethernet to TCP.
    headers_bytes: u16,
    gso_size: u16,
    checksum_start: u16,
    checksum_offset: u16,
    /// Buffers that the frame takes in the guest's ring.
    buffers: u16,
}

/// Why a frame of the guest is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bad;

impl Header {
    pub(crate) fn read(bytes: &[u8; HEADER_BYTES]) -> Self {
        let word = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        Header {
            flags: bytes[0],
            gso_type: bytes[1],
            headers_bytes: word(2),
            gso_size: word(4),
            checksum_start: word(6),
            checksum_offset: word(8),
            buffers: word(10),
        }
    }

    pub(crate) fn bytes(&self) -> [u8; HEADER_BYTES] {
        let words = [
            self.headers_bytes,
            self.gso_size,
            self.checksum_start,
            self.checksum_offset,
            self.buffers,
        ];
        let mut bytes = [self.flags, self.gso_type, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        for (place, word) in bytes[2..].chunks_exact_mut(2).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The frame takes this many buffers of the guest.
    pub(crate) fn in_buffers(self, buffers: u16) -> Self {
        Header { buffers, ..self }
    }

    /// Does it ask for no more than the guest has accepted?
    pub(crate) fn within(&self, offload: Offload) -> bool {
        let needs_checksum = self.flags & NEEDS_CHECKSUM != 0;
        let marks = self.gso_type & GSO_ECN == 0 || offload.ecn;
        let segments = match self.gso_type & !GSO_ECN {
            GSO_NONE => true,
            GSO_TCPV4 => offload.tso4,
            GSO_TCPV6 => offload.tso6,
            _ => false,
        };
        segments && marks && (!needs_checksum || offload.checksum)
    }

    /// Is CWR for the first segment alone, which the guest has not agreed to see to?
    pub(crate) fn must_keep_cwr_apart(&self, offload: Offload) -> bool {
        self.gso_type & GSO_ECN != 0 && !offload.ecn
    }

    /// Without what a guest has not accepted and that may be left out: a verified checksum is there.
    pub(crate) fn for_guest(self, offload: Offload) -> Self {
        match offload.checksum {
            true => self,
            false => Header { flags: self.flags & !CHECKSUM_IS_VALID, ..self },
        }
    }

    /// Does it describe a frame of this length, by the features that the guest has accepted?
    ///
    /// # Errors
    /// It does not: a super-segment without segment size or checksum, one that was not negotiated, with
    /// or without CWR, a checksum beyond the frame, a frame too short or too long.
    pub(crate) fn check(&self, frame_bytes: usize, features: Features) -> Result<(), Bad> {
        let needs_checksum = self.flags & NEEDS_CHECKSUM != 0;
        let checksum_end =
            usize::from(self.checksum_start) + usize::from(self.checksum_offset) + CHECKSUM_BYTES;
        let may_segment = match self.gso_type & !GSO_ECN {
            GSO_NONE => true,
            GSO_TCPV4 => features.has(feature::HOST_TSO4),
            GSO_TCPV6 => features.has(feature::HOST_TSO6),
            _ => false,
        };
        let segments = self.gso_type & !GSO_ECN != GSO_NONE;
        let may_mark = self.gso_type & GSO_ECN == 0 || segments && features.has(feature::HOST_ECN);
        let holds = (FRAME_MIN_BYTES..=FRAME_MAX_BYTES).contains(&frame_bytes)
            && may_segment
            && may_mark
            && (!segments || self.gso_size > 0 && needs_checksum)
            && (!needs_checksum || features.has(feature::CSUM) && checksum_end <= frame_bytes);
        if holds { Ok(()) } else { Err(Bad) }
    }

    /// Without what a guest cannot vouch for: what it sends has been verified by none.
    pub(crate) fn of_guest(self) -> Self {
        Header { flags: self.flags & !CHECKSUM_IS_VALID, ..self }
    }

    /// The frame as the port takes it.
    pub(crate) fn frame(&self, bytes: Vec<u8>) -> Frame {
        let checksum = match self.flags {
            flags if flags & NEEDS_CHECKSUM != 0 => Checksum::Partial,
            flags if flags & CHECKSUM_IS_VALID != 0 => Checksum::Verified,
            _ => Checksum::Full,
        };
        let segments = self.gso_type & !GSO_ECN != GSO_NONE;
        Frame { bytes, gso_size: if segments { self.gso_size } else { 0 }, checksum }
    }

    /// The header of a frame that the port has passed, and may have rewritten. The frame had this
    /// one, which stays as it is for other frames than TCP's.
    pub(crate) fn passed(self, frame: &Frame) -> Self {
        Self::from_frame(frame).unwrap_or(Header { buffers: 1, ..self })
    }

    /// The header of a segment of TCP; None for other frames.
    pub(crate) fn from_frame(frame: &Frame) -> Option<Self> {
        let tcp = frame.tcp_header()?;
        let mut header = Header { buffers: 1, ..Header::default() };
        match frame.checksum {
            Checksum::Full => {}
            Checksum::Verified => header.flags = CHECKSUM_IS_VALID,
            Checksum::Partial => {
                header.flags = NEEDS_CHECKSUM;
                header.checksum_start = tcp.at as u16;
                header.checksum_offset = TCP_CHECKSUM_AT;
            }
        }
        if tcp.is_super_segment {
            let ecn = if tcp.has_cwr { GSO_ECN } else { 0 };
            header.gso_type = ecn | if tcp.is_ipv6 { GSO_TCPV6 } else { GSO_TCPV4 };
            header.gso_size = frame.gso_size;
            header.headers_bytes = tcp.end as u16;
        }
        Some(header)
    }
}

#[cfg(test)]
mod tests {
    use vcc_frames::wire::CWR;
    use vcc_frames::{Packet, payload};

    use super::*;

    const ALL: Features = Features::OFFERED;

    fn segment(gso_size: u16) -> Frame {
        let [from, to] = ["10.0.0.1:40000", "10.0.0.2:80"].map(|end| end.parse().expect("an end"));
        let packet = Packet { payload: payload(3000), ..Packet::new(from, to) };
        Frame { bytes: packet.frame(), gso_size, checksum: Checksum::Partial }
    }

    #[test]
    fn what_is_written_is_read() {
        let header = Header {
            flags: 1,
            gso_type: 0x81,
            headers_bytes: 66,
            gso_size: 1448,
            checksum_start: 34,
            checksum_offset: 16,
            buffers: 3,
        };
        let bytes = header.bytes();
        assert_eq!(bytes, [1, 0x81, 66, 0, 168, 5, 34, 0, 16, 0, 3, 0]);
        assert_eq!(Header::read(&bytes), header);
    }

    #[test]
    fn a_super_segment_is_described() {
        let frame = segment(1400);
        let header = Header::from_frame(&frame).expect("TCP");
        let at = 14 + 20;
        let expected = Header {
            flags: NEEDS_CHECKSUM,
            gso_type: GSO_TCPV4,
            headers_bytes: at + 20,
            gso_size: 1400,
            checksum_start: at,
            checksum_offset: 16,
            buffers: 1,
        };
        assert_eq!(header, expected);
        assert_eq!(header.check(frame.bytes.len(), ALL), Ok(()));
        assert_eq!(header.frame(frame.bytes.clone()), frame);
        let full = Frame { checksum: Checksum::Full, ..segment(0) };
        assert_eq!(Header::from_frame(&full), Some(Header { buffers: 1, ..Header::default() }));
    }

    /// The port has set CWR on what the guest sent without.
    #[test]
    fn a_super_segment_with_cwr_is_marked() {
        let mut frame = segment(1400);
        let header = Header::from_frame(&frame).expect("TCP");
        frame.bytes[14 + 20 + 13] |= CWR as u8;
        let marked = Header { gso_type: GSO_TCPV4 | GSO_ECN, ..header };
        assert_eq!(header.passed(&frame), marked);
        let single = Frame { gso_size: 0, ..frame };
        assert_eq!(header.passed(&single).gso_type, GSO_NONE);
    }

    #[test]
    fn a_guest_gets_no_more_than_it_accepts() {
        let all = Offload::from_features(ALL);
        let segment = Header::from_frame(&segment(1400)).expect("TCP");
        assert!(segment.within(all) && !segment.within(Offload { tso4: false, ..all }));
        let reduced = Header { gso_type: GSO_TCPV4 | GSO_ECN, ..segment };
        let without_ecn = Offload { ecn: false, ..all };
        assert!(reduced.within(all) && !reduced.within(without_ecn));
        assert!(segment.within(without_ecn));
        assert!(reduced.must_keep_cwr_apart(without_ecn) && !reduced.must_keep_cwr_apart(all));
        let needs_checksum = Header { gso_type: GSO_NONE, ..segment };
        assert!(!needs_checksum.within(Offload::default()));
        assert!(good_plain().within(Offload::default()));
    }

    #[test]
    fn what_a_guest_may_not_say_is_refused() {
        let good = Header::from_frame(&segment(1400)).expect("TCP");
        let plain = Header::default();
        let frame_bytes = 3054;
        let bad = [
            (Header { gso_size: 0, ..good }, frame_bytes, ALL),
            (Header { flags: 0, ..good }, frame_bytes, ALL),
            (Header { gso_type: 3, ..good }, frame_bytes, ALL),
            (Header { gso_type: 5, ..good }, frame_bytes, ALL),
            (Header { gso_type: 0x7f, ..good }, frame_bytes, ALL),
            (Header { gso_type: GSO_ECN, ..plain }, frame_bytes, ALL),
            (
                Header { gso_type: GSO_TCPV4 | GSO_ECN, ..good },
                frame_bytes,
                Features(Features::OFFERED.0 & !feature::HOST_ECN),
            ),
            (good, frame_bytes, Features(Features::OFFERED.0 & !feature::HOST_TSO4)),
            (good, frame_bytes, Features(Features::OFFERED.0 & !feature::CSUM)),
            (Header { checksum_start: 3037, ..good }, frame_bytes, ALL),
            (Header { checksum_offset: u16::MAX, ..good }, frame_bytes, ALL),
            (Header { checksum_start: u16::MAX, ..good }, frame_bytes, ALL),
            (plain, 13, ALL),
            (plain, 0, ALL),
            (plain, FRAME_MAX_BYTES + 1, ALL),
        ];
        for (header, frame_bytes, features) in bad {
            assert_eq!(header.check(frame_bytes, features), Err(Bad), "{header:?}, {frame_bytes}");
        }
        for frame_bytes in [FRAME_MIN_BYTES, FRAME_MAX_BYTES] {
            assert_eq!(plain.check(frame_bytes, ALL), Ok(()));
        }
    }

    /// ARP, and a datagram whose checksum is not TCP's.
    #[test]
    fn other_frames_keep_their_header() {
        let header = Header { flags: 1, checksum_start: 34, checksum_offset: 6, ..good_plain() };
        let frame = header.frame(vec![0; 60]);
        assert_eq!(header.passed(&frame), header);
    }

    #[test]
    fn a_verified_checksum_stays_verified() {
        let header = Header { flags: CHECKSUM_IS_VALID, ..good_plain() };
        let verified = Frame { checksum: Checksum::Verified, ..segment(0) };
        assert_eq!(header.frame(verified.bytes.clone()), verified);
        assert_eq!(header.passed(&verified), header);
        let both = Header { flags: CHECKSUM_IS_VALID | NEEDS_CHECKSUM, ..header };
        assert_eq!(both.frame(Vec::new()).checksum, Checksum::Partial, "it is not complete");
        assert_eq!(header.of_guest().frame(Vec::new()).checksum, Checksum::Full);
    }

    fn good_plain() -> Header {
        Header { buffers: 1, ..Header::default() }
    }
}

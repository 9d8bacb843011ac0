//! The card's offloads: cuts super-segments and completes checksums.

use vcc_domain::{Checksum, Frame};
use vcc_net::checksum::Sum;

const ETHERNET_BYTES: usize = 14;
const VLAN_BYTES: usize = 4;
const ETHERTYPE_VLAN: [u8; 2] = [0x81, 0x00];
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const ETHERTYPE_IPV6: [u8; 2] = [0x86, 0xdd];
const IPV6_BYTES: usize = 40;
const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;
const FLAGS: usize = 13;
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// Offsets of a frame's headers.
#[derive(Clone, Copy)]
struct Headers {
    ip: usize,
    is_ipv6: bool,
    protocol: u8,
    transport: usize,
}

impl Headers {
    /// None for a frame that is not IP, or truncated. A guest's TCP sends no IPv6 extension
    /// headers.
    fn parse(frame: &[u8]) -> Option<Self> {
        let has_tag = frame.get(12..14)? == ETHERTYPE_VLAN;
        let ip = ETHERNET_BYTES + if has_tag { VLAN_BYTES } else { 0 };
        let ethertype: [u8; 2] = frame.get(ip - 2..ip)?.try_into().ok()?;
        match ethertype {
            ETHERTYPE_IPV4 => {
                let transport = ip + usize::from(frame.get(ip)? & 15) * 4;
                Some(Self { ip, is_ipv6: false, protocol: *frame.get(ip + 9)?, transport })
            }
            ETHERTYPE_IPV6 => {
                let (protocol, transport) = (*frame.get(ip + 6)?, ip + IPV6_BYTES);
                Some(Self { ip, is_ipv6: true, protocol, transport })
            }
            _ => None,
        }
    }

    fn checksum_at(&self) -> Option<usize> {
        match self.protocol {
            PROTOCOL_TCP => Some(self.transport + 16),
            PROTOCOL_UDP => Some(self.transport + 6),
            _ => None,
        }
    }

    /// Updates the lengths and IPv4's checksum to the frame's size.
    fn fit(&self, frame: &mut [u8]) {
        let bytes = frame.len();
        if self.is_ipv6 {
            put(frame, self.ip + 4, (bytes - self.ip - IPV6_BYTES) as u16);
            return;
        }
        put(frame, self.ip + 2, (bytes - self.ip) as u16);
        put(frame, self.ip + 10, 0);
        let sum = Sum::MINUS_ZERO.with_words(&frame[self.ip..self.transport]);
        put(frame, self.ip + 10, sum.checksum());
    }

    /// Computes the full checksum of TCP or UDP.
    fn complete(&self, frame: &mut [u8]) {
        let Some(at) = self.checksum_at().filter(|at| at + 2 <= frame.len()) else { return };
        put(frame, at, 0);
        let addresses = if self.is_ipv6 { 8..40 } else { 12..20 };
        let addresses = &frame[self.ip + addresses.start..self.ip + addresses.end];
        let length = (frame.len() - self.transport) as u16;
        let pseudo = Sum::MINUS_ZERO.with_words(addresses).with(self.protocol.into()).with(length);
        let sum = pseudo.with_words(&frame[self.transport..]);
        put(frame, at, sum.checksum());
    }
}

fn get(frame: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([frame[at], frame[at + 1]])
}

fn put(frame: &mut [u8], at: usize, value: u16) {
    frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Passes to `out` the frames on the wire for one frame from the guest.
pub(super) fn cut(frame: &mut Frame, mut out: impl FnMut(Vec<u8>)) {
    let bytes = &mut frame.bytes;
    let size = usize::from(frame.gso_size);
    let headers = Headers::parse(bytes);
    if let Some(headers) = headers {
        let header_bytes = headers.transport
            + bytes.get(headers.transport + 12).map_or(0, |offset| usize::from(offset >> 4) * 4);
        let is_super = size > 0 && headers.protocol == PROTOCOL_TCP;
        if is_super && bytes.len() > header_bytes + size {
            return segments(bytes, &headers, header_bytes, size).for_each(out);
        }
        if frame.checksum == Checksum::Partial {
            headers.complete(bytes);
        }
    }
    out(std::mem::take(bytes));
}

/// Segments as TCP would have sent them one by one (Linux: tcp_gso_segment): FIN and PSH on the
/// last, CWR on the first (RFC 3168, 6.1.2), consecutive IPv4 identifications.
fn segments(
    frame: &[u8],
    headers: &Headers,
    header_bytes: usize,
    size: usize,
) -> impl Iterator<Item = Vec<u8>> {
    let (header, payload) = frame.split_at(header_bytes);
    let (seq_at, flags_at) = (headers.transport + 4, headers.transport + FLAGS);
    let seq = u32::from(get(header, seq_at)) << 16 | u32::from(get(header, seq_at + 2));
    let flags = header[flags_at];
    let parts = payload.chunks(size).enumerate();
    let last = payload.len().div_ceil(size) - 1;
    parts.map(move |(i, part)| {
        let mut bytes = [header, part].concat();
        let seq = seq.wrapping_add((i * size) as u32);
        put(&mut bytes, seq_at, (seq >> 16) as u16);
        put(&mut bytes, seq_at + 2, seq as u16);
        let not_here = if i < last { FIN | PSH } else { 0 } | if i > 0 { CWR } else { 0 };
        bytes[flags_at] = flags & !not_here;
        if !headers.is_ipv6 {
            let id = get(header, headers.ip + 4).wrapping_add(i as u16);
            put(&mut bytes, headers.ip + 4, id);
        }
        headers.fit(&mut bytes);
        headers.complete(&mut bytes);
        bytes
    })
}

#[cfg(test)]
mod tests {
    use vcc_frames::wire::{self, ACK};
    use vcc_frames::{Packet, checksum};

    use super::*;

    fn cut(mut frame: Frame) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        super::cut(&mut frame, |frame| frames.push(frame));
        frames
    }

    fn super_segment(payload: &[u8]) -> Packet {
        Packet {
            ipv4_id: 0xffff,
            seq: 0xffff_fff0,
            flags: ACK | wire::CWR | wire::PSH,
            payload: payload.to_vec(),
            ..Packet::new(([10, 77, 0, 1], 1).into(), ([10, 77, 0, 2], 2).into())
        }
    }

    /// The frame that the guest hands over, with a partial checksum.
    fn partial(packet: &Packet) -> Vec<u8> {
        let mut frame = packet.frame();
        checksum::make_partial(&mut frame, &packet.headers());
        frame
    }

    fn checks_out(frame: &[u8]) -> bool {
        let at = vcc_frames::Headers { ipv6: false, l3: 14, l4: 34, end: frame.len() };
        usize::from(get(frame, 16)) == frame.len() - 14 && checksum::verify(frame, &at)
    }

    #[test]
    fn a_super_segment_is_cut_as_tcp_would() {
        let payload: Vec<u8> = (0..=249).collect();
        let frame = Frame {
            bytes: partial(&super_segment(&payload)),
            gso_size: 100,
            checksum: Checksum::Partial,
        };
        let frames = cut(frame);
        assert_eq!(frames.iter().map(Vec::len).collect::<Vec<_>>(), [154, 154, 104]);
        assert!(frames.iter().all(|frame| checks_out(frame)));
        let flags: Vec<u8> = frames.iter().map(|frame| frame[34 + FLAGS]).collect();
        assert_eq!(flags, [0x10 | CWR, 0x10, 0x10 | PSH]);
        let ids: Vec<u16> = frames.iter().map(|frame| get(frame, 18)).collect();
        assert_eq!(ids, [0xffff, 0, 1]);
        let seqs: Vec<u16> = frames.iter().map(|frame| get(frame, 40)).collect();
        assert_eq!(seqs, [0xfff0, 0x0054, 0x00b8], "past the wrap");
        let joined: Vec<u8> = frames.iter().flat_map(|frame| frame[54..].to_vec()).collect();
        assert_eq!(joined, payload);
    }

    #[test]
    fn a_partial_checksum_is_completed_and_a_full_one_left_alone() {
        let packet = super_segment(&[1, 2, 3]);
        let with = |bytes, checksum| Frame { bytes, gso_size: 0, checksum };
        assert_eq!(cut(with(partial(&packet), Checksum::Partial)), [packet.frame()]);
        let partial = partial(&packet);
        assert_eq!(cut(with(partial.clone(), Checksum::Full)), [partial]);
    }

    #[test]
    fn other_frames_pass() {
        let arp = [&[0xff; 12][..], &[0x08, 0x06], &[0; 28]].concat();
        let frame = Frame { bytes: arp.clone(), gso_size: 0, checksum: Checksum::Full };
        assert_eq!(cut(frame), [arp]);
    }
}

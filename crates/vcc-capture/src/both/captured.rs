//! What a capture has of a segment.

use vcc_domain::{Frame, TcpHeader};
use vcc_net::wire::*;

use crate::options::Options;
use crate::segment::{ip_at, payload_end};

pub(crate) const FIN: u16 = 0x001;
pub(crate) const SYN: u16 = 0x002;
pub(crate) const RST: u16 = 0x004;
pub(crate) const PSH: u16 = 0x008;
pub(crate) const ACK: u16 = 0x010;
pub(crate) const URG: u16 = 0x020;
pub(crate) const ECE: u16 = 0x040;
pub(crate) const CWR: u16 = 0x080;
pub(crate) const AE: u16 = 0x100;

const IPV4_ID_AT: usize = 4;
const IPV4_FRAGMENT_AT: usize = 6;
const IPV4_TTL_AT: usize = 8;
const IPV6_HOPS_AT: usize = 7;

/// The fields of the IP header that neither find the connection nor follow from the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IpFields {
    /// Its lowest two bits are the ECN field.
    pub traffic_class: u8,
    pub hops: u8,
    /// IPv6 only.
    pub flow_label: u32,
    /// IPv4 only.
    pub dont_fragment: bool,
    pub ipv4_id: Option<u16>,
    /// IPv4's options, or IPv6's extension headers.
    pub more: Vec<u8>,
}

/// A segment, or a super-segment.
#[derive(Clone, Debug)]
pub(crate) struct Captured {
    /// Of its record in the file.
    pub offset: u64,
    pub time_ns: u64,
    pub ip: IpFields,
    pub seq: u32,
    pub ack: u32,
    pub flags: u16,
    pub reserved: u16,
    pub window: u16,
    /// By which the window is shifted; None: the handshake is not in the file.
    pub scale: Option<u8>,
    pub urgent: u16,
    pub options: Options,
    pub timestamps: Option<[u32; 2]>,
    pub payload_bytes: u32,
    /// As far as it was captured.
    pub payload: Vec<u8>,
}

impl Captured {
    /// Of a frame that is as long as it was on the wire, of which `captured_bytes` are in the file. The
    /// header is whole.
    pub(crate) fn read(frame: &Frame, header: &TcpHeader, captured_bytes: usize) -> Self {
        let bytes = &frame.bytes;
        let ip_at = ip_at(bytes);
        let ip = match header.is_ipv6 {
            false => ipv4(bytes, ip_at, header.at),
            true => ipv6(bytes, ip_at, header.at),
        };
        let end = payload_end(bytes, header);
        let tcp = &bytes[header.at..];
        let word = read_u16(tcp, TCP_OFFSET_FLAGS_AT);
        let options = Options::read(frame, header);
        let kept = header.end..end.min(captured_bytes).max(header.end);
        Self {
            offset: 0,
            time_ns: 0,
            ip,
            seq: read_u32(tcp, TCP_SEQ_AT),
            ack: read_u32(tcp, TCP_ACK_AT),
            flags: word & TCP_FLAGS_MASK,
            reserved: word & TCP_RESERVED_MASK,
            window: read_u16(tcp, TCP_WINDOW_AT),
            scale: None,
            urgent: read_u16(tcp, TCP_URGENT_AT),
            timestamps: options.timestamps(),
            options,
            payload_bytes: (end - header.end) as u32,
            payload: bytes[kept].to_vec(),
        }
    }

    pub(crate) fn has(&self, flags: u16) -> bool {
        self.flags & flags != 0
    }

    /// The numbers in sequence space in front of the payload: that of a SYN.
    pub(crate) fn front(&self) -> u32 {
        self.has(SYN).into()
    }

    /// How many sequence numbers it takes (RFC 9293, 3.4).
    pub(crate) fn numbers(&self) -> u32 {
        self.front() + self.payload_bytes + u32::from(self.has(FIN))
    }

    /// The sequence number behind the payload.
    pub(crate) fn payload_end(&self) -> u32 {
        self.seq.wrapping_add(self.front() + self.payload_bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.numbers() == 0
    }
}

fn ipv4(bytes: &[u8], at: usize, tcp_at: usize) -> IpFields {
    let ip = &bytes[at..];
    IpFields {
        traffic_class: ip[1],
        hops: ip[IPV4_TTL_AT],
        flow_label: 0,
        dont_fragment: read_u16(ip, IPV4_FRAGMENT_AT) & IPV4_DONT_FRAGMENT != 0,
        ipv4_id: Some(read_u16(ip, IPV4_ID_AT)),
        more: bytes[at + IPV4_BYTES..tcp_at].to_vec(),
    }
}

fn ipv6(bytes: &[u8], at: usize, tcp_at: usize) -> IpFields {
    let ip = &bytes[at..];
    let first = read_u32(ip, 0);
    IpFields {
        traffic_class: (first >> 20) as u8,
        hops: ip[IPV6_HOPS_AT],
        flow_label: first & 0xf_ffff,
        dont_fragment: true,
        ipv4_id: None,
        more: bytes[at + IPV6_BYTES..tcp_at].to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use vcc_frames::{Packet, options, payload};

    use super::*;

    #[test]
    fn fields_are_those_of_the_packet() {
        for (from, to) in [("10.0.0.1:40000", "10.0.0.2:80"), ("[fd00::1]:40000", "[fd00::2]:80")] {
            let [from, to] = [from, to].map(|end| end.parse().expect("an end"));
            for tags in [vec![], vec![(ETHERTYPE_VLAN, 7)]] {
                let packet = Packet {
                    tags,
                    traffic_class: 0xb9,
                    seq: 7,
                    ack: 8,
                    flags: FIN | ACK | PSH,
                    window: 9,
                    urgent: 3,
                    options: options::join(&[options::timestamps(1, 2)]),
                    payload: payload(100),
                    padding: vec![0xa5; 3],
                    ..Packet::new(from, to)
                };
                let frame = Frame::full(packet.frame());
                let header = frame.tcp_header().expect("TCP");
                let whole = Captured::read(&frame, &header, frame.bytes.len());
                assert_eq!((whole.seq, whole.ack, whole.window, whole.urgent), (7, 8, 9, 3));
                assert_eq!((whole.flags, whole.reserved), (packet.flags, 0));
                assert_eq!((whole.ip.traffic_class, whole.ip.hops), (0xb9, 64));
                assert_eq!((whole.payload_bytes, &whole.payload), (100, &payload(100)));
                assert_eq!((whole.numbers(), whole.payload_end()), (101, 107));
                assert_eq!(whole.timestamps, Some([1, 2]));
                let cut = Captured::read(&frame, &header, header.end + 10);
                assert_eq!((cut.payload_bytes, cut.payload.len()), (100, 10));
                let none = Captured::read(&frame, &header, header.end);
                assert_eq!((none.payload_bytes, none.payload.len()), (100, 0));
            }
        }
    }
}

//! Numbers and fields of the wire formats, written down apart from the headers in `datapath/` and
//! `engine/`, which are what is tested.

/// TCP header flags (RFC 9293, 3.1; RFC 3168, 6.1; AE: RFC 9768, 3.1).
pub const FIN: u16 = 0x001;
pub const SYN: u16 = 0x002;
pub const RST: u16 = 0x004;
pub const PSH: u16 = 0x008;
pub const ACK: u16 = 0x010;
pub const URG: u16 = 0x020;
pub const ECE: u16 = 0x040;
pub const CWR: u16 = 0x080;
pub const AE: u16 = 0x100;
pub const ALL_FLAGS: u16 = 0x1ff;

/// The ECN field, the lowest two bits of the traffic class (RFC 3168, 5).
pub const ECN_MASK: u8 = 3;
pub const ECT_1: u8 = 1;
pub const ECT_0: u8 = 2;
pub const CE: u8 = 3;

pub const ETHERTYPE_IPV4: u16 = 0x0800;
pub const ETHERTYPE_ARP: u16 = 0x0806;
/// Transparent Ethernet bridging (RFC 1701).
pub const ETHERTYPE_ETHERNET: u16 = 0x6558;
pub const ETHERTYPE_VLAN: u16 = 0x8100;
pub const ETHERTYPE_QINQ: u16 = 0x88a8;
pub const ETHERTYPE_IPV6: u16 = 0x86dd;

pub const PROTOCOL_HOP_BY_HOP: u8 = 0;
pub const PROTOCOL_ICMP: u8 = 1;
pub const PROTOCOL_TCP: u8 = 6;
pub const PROTOCOL_UDP: u8 = 17;
pub const PROTOCOL_ROUTING: u8 = 43;
pub const PROTOCOL_FRAGMENT: u8 = 44;
pub const PROTOCOL_GRE: u8 = 47;
pub const PROTOCOL_ICMPV6: u8 = 58;
pub const PROTOCOL_DESTINATION: u8 = 60;

pub const ETHERNET_BYTES: usize = 14;
pub const TAG_BYTES: usize = 4;
pub const IPV4_BYTES: usize = 20;
pub const IPV6_BYTES: usize = 40;
pub const TCP_BYTES: usize = 20;

/// The checksum fields, from the start of their headers.
pub const IPV4_CHECK_AT: usize = 10;
pub const TCP_CHECK_AT: usize = 16;
pub const TCP_URGENT_AT: usize = 18;

/// Option kinds (RFC 9293, 3.1; RFC 7323; RFC 2018).
pub const OPTION_END: u8 = 0;
pub const OPTION_NOP: u8 = 1;
pub const OPTION_MSS: u8 = 2;
pub const OPTION_WSCALE: u8 = 3;
pub const OPTION_SACK_PERMITTED: u8 = 4;
pub const OPTION_SACK: u8 = 5;
pub const OPTION_TIMESTAMPS: u8 = 8;
/// RFC 7413.
pub const OPTION_FAST_OPEN: u8 = 34;
/// RFC 8684.
pub const OPTION_MPTCP: u8 = 30;

/// The options of vcc: the PACK has the kind and layout of an AccECN option (RFC 9768, 3.2.3);
/// Hello and FACK are an experiment (RFC 6994) whose identifier is "vc".
pub const OPTION_PACK: u8 = 172;
/// AccECN1, with the ECT counters in the other order.
pub const OPTION_ACCECN1: u8 = 174;
pub const OPTION_EXPERIMENT: u8 = 253;
pub const EXPERIMENT_NAME: [u8; 2] = *b"vc";
pub const VERSION: u8 = 1;
pub const HELLO_OFFER: u8 = 1;
pub const HELLO_ACCEPT: u8 = 2;
pub const FACK: u8 = 3;

/// The byte counters of PACK and FACK have 24 bits each.
pub const COUNTER_MASK: u32 = 0xff_ffff;

pub fn read_u24(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([0, bytes[at], bytes[at + 1], bytes[at + 2]])
}

pub fn read_u16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

pub fn read_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

pub fn write_u16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

pub fn write_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
}

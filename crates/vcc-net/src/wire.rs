//! Integers in network byte order, and numbers of the wire formats.

pub const ETHERTYPE_IPV4: u16 = 0x0800;
pub const ETHERTYPE_VLAN: u16 = 0x8100;
pub const ETHERTYPE_IPV6: u16 = 0x86dd;

pub const PROTOCOL_ICMP: u8 = 1;
pub const PROTOCOL_TCP: u8 = 6;
pub const PROTOCOL_ICMPV6: u8 = 58;

pub const MAC_BYTES: usize = 6;
pub const ETHERNET_BYTES: usize = 14;
pub const VLAN_TAG_BYTES: usize = 4;
pub const VLAN_ID_MASK: u16 = 0x0fff;
pub const IPV4_BYTES: usize = 20;
/// Offsets of the addresses.
pub const IPV4_SOURCE_AT: usize = 12;
pub const IPV4_DESTINATION_AT: usize = 16;
/// Offset of the header checksum.
pub const IPV4_CHECK_AT: usize = 10;
pub const IPV4_DONT_FRAGMENT: u16 = 0x4000;
pub const IPV6_BYTES: usize = 40;
pub const IPV6_SOURCE_AT: usize = 8;
pub const IPV6_DESTINATION_AT: usize = 24;

/// A TCP header without options (RFC 9293, 3.1), and the offsets of its fields.
pub const TCP_BYTES: usize = 20;
pub const TCP_SEQ_AT: usize = 4;
pub const TCP_ACK_AT: usize = 8;
pub const TCP_OFFSET_FLAGS_AT: usize = 12;
pub const TCP_WINDOW_AT: usize = 14;
pub const TCP_CHECK_AT: usize = 16;
pub const TCP_URGENT_AT: usize = 18;
pub const TCP_OPTIONS_MAX_BYTES: usize = 40;
/// The flags in the word at [`TCP_OFFSET_FLAGS_AT`], AE included (RFC 9768, 3.1).
pub const TCP_FLAGS_MASK: u16 = 0x1ff;
/// Its reserved bits, which stay unchanged.
pub const TCP_RESERVED_MASK: u16 = 0x0e00;

/// # Panics
/// This function and those below panic past the end of `bytes`; callers have checked.
#[inline]
pub fn read_u16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[inline]
pub fn read_u24(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([0, bytes[at], bytes[at + 1], bytes[at + 2]])
}

#[inline]
pub fn read_u32(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_be_bytes(word)
}

#[inline]
pub fn write_u16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

#[inline]
pub fn write_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
}

/// The word with TCP's data offset and flags.
#[inline]
pub fn tcp_offset_flags(header_bytes: usize, flags: u16) -> u16 {
    (header_bytes as u16 / 4) << 12 | flags
}

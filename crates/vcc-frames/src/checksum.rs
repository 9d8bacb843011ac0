//! Internet checksums from scratch (RFC 1071).
//!
//! The product updates checksums incrementally (RFC 1624) or sums in wider words: `datapath/` in C
//! and `vcc-domain` in Rust. This word-by-word routine is the oracle for both, so it stays apart
//! from them.

use crate::headers::Headers;
use crate::wire::*;

/// The one's complement sum of 16-bit words. A part of odd length is padded with a zero.
fn sum(parts: &[&[u8]]) -> u16 {
    let mut total: u32 = 0;
    for part in parts {
        for word in part.chunks(2) {
            let low = word.get(1).copied().unwrap_or(0);
            total += u32::from(u16::from_be_bytes([word[0], low]));
            total = (total & 0xffff) + (total >> 16);
        }
    }
    total as u16
}

/// The checksum over these bytes, in which the checksum field is 0.
pub fn checksum(bytes: &[u8]) -> u16 {
    !sum(&[bytes])
}

fn tcp_sum(frame: &[u8], at: &Headers) -> u16 {
    let tcp = &frame[at.l4..at.end];
    let addresses = if at.ipv6 { at.l3 + 8..at.l3 + 40 } else { at.l3 + 12..at.l3 + 20 };
    // The pseudo-headers of RFC 9293, 3.1, and RFC 8200, 8.1, have the same sum.
    let length = (tcp.len() as u32).to_be_bytes();
    sum(&[&frame[addresses], &[0, PROTOCOL_TCP], &length, tcp])
}

fn ip_sum(frame: &[u8], at: &Headers) -> u16 {
    sum(&[&frame[at.l3..at.l4]])
}

/// The checksum of a UDP datagram between two addresses; its own checksum field is summed as it is.
pub fn udp(addresses: &[u8], datagram: &[u8]) -> u16 {
    let length = (datagram.len() as u32).to_be_bytes();
    !sum(&[addresses, &[0, PROTOCOL_UDP], &length, datagram])
}

/// Sets the checksum of an IPv4 header.
pub fn fill_ipv4(header: &mut [u8]) {
    write_u16(header, IPV4_CHECK_AT, 0);
    let check = checksum(header);
    write_u16(header, IPV4_CHECK_AT, check);
}

/// Sets the checksums of TCP and, for IPv4, of the IP header.
pub fn fill(frame: &mut [u8], at: &Headers) {
    write_u16(frame, at.l4 + TCP_CHECK_AT, 0);
    let check = !tcp_sum(frame, at);
    write_u16(frame, at.l4 + TCP_CHECK_AT, check);
    if !at.ipv6 {
        fill_ipv4(&mut frame[at.l3..at.l4]);
    }
}

/// Whether a receiver accepts the checksums.
pub fn verify(frame: &[u8], at: &Headers) -> bool {
    tcp_sum(frame, at) == 0xffff && (at.ipv6 || ip_sum(frame, at) == 0xffff)
}

/// Zeroes the checksums, to compare the rest of two frames.
pub fn clear(frame: &mut [u8], at: &Headers) {
    write_u16(frame, at.l4 + TCP_CHECK_AT, 0);
    if !at.ipv6 {
        write_u16(frame, at.l3 + IPV4_CHECK_AT, 0);
    }
}

/// Replaces TCP's checksum by the partial one of a sender with checksum offload: the sum of the
/// pseudo-header, not complemented.
pub fn make_partial(frame: &mut [u8], at: &Headers) {
    write_u16(frame, at.l4 + TCP_CHECK_AT, 0);
    let whole = tcp_sum(frame, at);
    let header_and_payload = sum(&[&frame[at.l4..at.end]]);
    // In one's complement, adding the complement subtracts.
    let pseudo = sum(&[&whole.to_be_bytes(), &(!header_and_payload).to_be_bytes()]);
    write_u16(frame, at.l4 + TCP_CHECK_AT, pseudo);
}

/// Completes a partial checksum, as a device with checksum offload does.
pub fn complete(frame: &mut [u8], at: &Headers) {
    let check = !sum(&[&frame[at.l4..at.end]]);
    write_u16(frame, at.l4 + TCP_CHECK_AT, check);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_as_the_example_of_rfc_1071() {
        assert_eq!(sum(&[&[0x00, 0x01, 0xf2, 0x03], &[0xf4, 0xf5, 0xf6, 0xf7]]), 0xddf2);
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
        assert_eq!(sum(&[&[0x12, 0x34, 0x56]]), 0x1234 + 0x5600);
    }
}

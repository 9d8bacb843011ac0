//! Internet checksums from scratch (RFC 1071), where the datapath updates them (RFC 1624).

use crate::layout::Layout;
use crate::wire::*;

const IPV4_CHECK_AT: usize = 10;
/// From the TCP header's start.
pub const TCP_CHECK_AT: usize = 16;

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

fn tcp_sum(frame: &[u8], at: &Layout) -> u16 {
    let tcp = &frame[at.l4..at.end];
    let addresses = if at.ipv6 { at.l3 + 8..at.l3 + 40 } else { at.l3 + 12..at.l3 + 20 };
    // The pseudo-headers of RFC 9293, 3.1, and RFC 8200, 8.1, sum up alike.
    let length = (tcp.len() as u32).to_be_bytes();
    sum(&[&frame[addresses], &[0, PROTOCOL_TCP], &length, tcp])
}

fn ip_sum(frame: &[u8], at: &Layout) -> u16 {
    sum(&[&frame[at.l3..at.l4]])
}

/// Sets the checksums of a frame, where it is whole enough to have any.
pub fn fill(frame: &mut [u8]) {
    let Ok(at) = Layout::of(frame, 1) else { return };
    write_u16(frame, at.l4 + TCP_CHECK_AT, 0);
    let tcp_check = !tcp_sum(frame, &at);
    write_u16(frame, at.l4 + TCP_CHECK_AT, tcp_check);
    if at.ipv6 {
        return;
    }
    write_u16(frame, at.l3 + IPV4_CHECK_AT, 0);
    let ip_check = !ip_sum(frame, &at);
    write_u16(frame, at.l3 + IPV4_CHECK_AT, ip_check);
}

/// Are they right, as a receiver sees it: do they make the whole sum up to -0?
pub fn verify(frame: &[u8], at: &Layout) -> bool {
    tcp_sum(frame, at) == 0xffff && (at.ipv6 || ip_sum(frame, at) == 0xffff)
}

/// Zeroes them, to compare what is left of two frames.
pub fn clear(frame: &mut [u8], at: &Layout) {
    write_u16(frame, at.l4 + TCP_CHECK_AT, 0);
    if !at.ipv6 {
        write_u16(frame, at.l3 + IPV4_CHECK_AT, 0);
    }
}

/// Leaves what a sender leaves to its device: the sum of the pseudo-header, not complemented.
pub fn make_partial(frame: &mut [u8], at: &Layout) {
    write_u16(frame, at.l4 + TCP_CHECK_AT, 0);
    let whole = tcp_sum(frame, at);
    let header_and_payload = sum(&[&frame[at.l4..at.end]]);
    // One's complement: what is added to one part of the sum is subtracted from the other.
    let pseudo = sum(&[&whole.to_be_bytes(), &(!header_and_payload).to_be_bytes()]);
    write_u16(frame, at.l4 + TCP_CHECK_AT, pseudo);
}

/// What the device then does: sums up all that lies behind, the partial sum included.
pub fn complete(frame: &mut [u8], at: &Layout) {
    let check = !sum(&[&frame[at.l4..at.end]]);
    write_u16(frame, at.l4 + TCP_CHECK_AT, check);
}

#[test]
fn sums_as_the_example_of_rfc_1071() {
    assert_eq!(sum(&[&[0x00, 0x01, 0xf2, 0x03], &[0xf4, 0xf5, 0xf6, 0xf7]]), 0xddf2);
    assert_eq!(sum(&[&[0x12, 0x34, 0x56]]), 0x1234 + 0x5600);
}

//! TCP's checksum in a frame, which may be partial.

use vcc_net::wire::{TCP_CHECK_AT, read_u16, write_u16};

use crate::frame::Checksum;
pub(crate) use vcc_net::checksum::*;

/// Updates TCP's checksum for a change of its header from `before`. A partial checksum does not
/// cover the header.
pub(crate) fn tcp_header_changed(kind: Checksum, before: &[u8], now: &mut [u8]) {
    if kind.is_complete() {
        // The checksum field is the same in both, which adds -0.
        let check = updated(read_u16(now, TCP_CHECK_AT), before, now);
        write_u16(now, TCP_CHECK_AT, check);
    }
}

/// Updates TCP's checksum for a change of the pseudo-header's length, which has 32 bits for BIG TCP
/// (RFC 2675, 4).
pub(crate) fn tcp_length_changed(
    kind: Checksum,
    header: &mut [u8],
    before_bytes: u32,
    now_bytes: u32,
) {
    let (before, now) = (before_bytes.to_be_bytes(), now_bytes.to_be_bytes());
    let check = read_u16(header, TCP_CHECK_AT);
    let check = match kind {
        Checksum::Full | Checksum::Verified => updated(check, &before, &now),
        Checksum::Partial => !updated(!check, &before, &now),
    };
    write_u16(header, TCP_CHECK_AT, check);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A partial checksum covers only the pseudo-header with its length, and is not complemented.
    #[test]
    fn a_partial_checksum_covers_only_the_length() {
        let mut header = [0; 20];
        write_u16(&mut header, TCP_CHECK_AT, 0x1000);
        let mut changed = header;
        changed[0] = 7;
        tcp_header_changed(Checksum::Partial, &header, &mut changed);
        assert_eq!(read_u16(&changed, TCP_CHECK_AT), 0x1000);
        tcp_length_changed(Checksum::Partial, &mut changed, 20, 28);
        assert_eq!(read_u16(&changed, TCP_CHECK_AT), 0x1008);
        tcp_length_changed(Checksum::Partial, &mut changed, 0x1_0000 + 28, 20);
        assert_eq!(read_u16(&changed, TCP_CHECK_AT), 0x1000 - 1);
    }
}

//! Will the guest's stack read the frame? What the link or IP layer discards is not promised.

use super::Headers;
use crate::checksum;
use crate::frame::{Checksum, Frame};
use crate::parse::Parsed;
use vcc_net::wire::*;

/// Is the frame addressed to the guest, without IP options that the guest may refuse, and are its
/// checksums right?
pub(crate) fn is_sound(frame: &Frame, parsed: &Parsed, headers: &Headers) -> bool {
    is_readable(frame, parsed, headers) && has_right_sums(frame, parsed)
}

/// The same of a frame whose checksums are right.
pub(crate) fn is_readable(frame: &Frame, parsed: &Parsed, headers: &Headers) -> bool {
    frame.bytes[..MAC_BYTES] == *headers.guest_mac()
        && parsed.ip.is_plain()
        && !parsed.places.malformed
}

/// Are the checksums right? The device that completes a partial one vouches for it, as does the one
/// that has verified it.
pub(crate) fn has_right_sums(frame: &Frame, parsed: &Parsed) -> bool {
    let (ip, bytes) = (&parsed.ip, &frame.bytes[..]);
    (ip.ipv6 || checksum::of_ipv4(&bytes[ip.at..ip.tcp_at]) == 0)
        && (frame.checksum != Checksum::Full || {
            let tcp = &bytes[ip.tcp_at..ip.tcp_at + ip.tcp_bytes];
            parsed.tcp_checksum(tcp) == 0
        })
}

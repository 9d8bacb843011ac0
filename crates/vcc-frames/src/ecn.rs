//! Congestion marks.

use crate::checksum;
use crate::wire::{CE, IPV4_BYTES};

/// Marks an IPv4 header without options, as a congested router does (RFC 3168, 5).
pub fn mark_ce(ipv4_header: &mut [u8]) {
    ipv4_header[1] |= CE;
    checksum::fill_ipv4(&mut ipv4_header[..IPV4_BYTES]);
}

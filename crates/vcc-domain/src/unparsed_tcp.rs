//! TCP that [`crate::parse`] cannot read but an end may accept: dropped if the port polices
//! (`datapath/unparsed_tcp.h`).

use crate::ip::{
    IPV6_OFFSET_MASK, PROTOCOL_DESTINATION, PROTOCOL_FRAGMENT, PROTOCOL_HOP_BY_HOP,
    PROTOCOL_ROUTING,
};
use vcc_net::wire::*;

/// Beyond these limits, the payload is assumed to be TCP.
const TAGS_MAX: usize = 4;
const IPV6_HEADERS_MAX: usize = 16;

const ETHERTYPE_QINQ: u16 = 0x88a8;

/// May the frame hold TCP, or a fragment of it?
pub(crate) fn holds_tcp(frame: &[u8]) -> bool {
    let is_tag = |ethertype| [ETHERTYPE_VLAN, ETHERTYPE_QINQ].contains(&ethertype);
    let ethertype_at = |at: usize| frame.get(at..at + 2).map(|bytes| read_u16(bytes, 0));
    let mut at = ETHERNET_BYTES - 2;
    for _ in 0..=TAGS_MAX {
        let Some(ethertype) = ethertype_at(at) else { return false };
        let ip = frame.get(at + 2..).unwrap_or_default();
        match ethertype {
            ETHERTYPE_IPV4 => return ip.get(9) == Some(&PROTOCOL_TCP),
            ETHERTYPE_IPV6 => return ipv6_holds_tcp(ip),
            _ if is_tag(ethertype) => at += VLAN_TAG_BYTES,
            _ => return false,
        }
    }
    true
}

/// Does an IPv6 packet hold TCP, or the fragment of a TCP segment?
fn ipv6_holds_tcp(ip: &[u8]) -> bool {
    let Some(&(mut next)) = ip.get(6) else { return false };
    let mut at = IPV6_BYTES;
    for _ in 0..IPV6_HEADERS_MAX {
        if next == PROTOCOL_TCP {
            return true;
        }
        let is_fragment = next == PROTOCOL_FRAGMENT;
        if !is_fragment
            && ![PROTOCOL_HOP_BY_HOP, PROTOCOL_ROUTING, PROTOCOL_DESTINATION].contains(&next)
        {
            return false;
        }
        let Some(head) = ip.get(at..at + 4) else { return false };
        // A later fragment of deeper TCP may pass: it is useless without the first.
        if is_fragment && read_u16(head, 2) & IPV6_OFFSET_MASK != 0 {
            return head[0] == PROTOCOL_TCP;
        }
        at += if is_fragment { 8 } else { (usize::from(head[1]) + 1) * 8 };
        next = head[0];
    }
    true
}

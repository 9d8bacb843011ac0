//! Ethernet and one 802.1Q tag.

use vcc_engine::sys;

use crate::counters::Reason;
use vcc_net::wire::*;

/// The parsed link layer.
pub(crate) struct Link {
    /// VLAN ID; 0 if untagged.
    pub vlan: u16,
    pub ethertype: u16,
    /// Offset of the network layer from the frame's start.
    pub l3_at: usize,
}

/// # Errors
/// The frame is truncated.
pub(crate) fn parse(bytes: &[u8]) -> Result<Link, Reason> {
    if bytes.len() < ETHERNET_BYTES {
        return Err(sys::COUNT_NOT_IP);
    }
    let ethertype = read_u16(bytes, ETHERNET_BYTES - 2);
    if ethertype != ETHERTYPE_VLAN {
        return Ok(Link { vlan: 0, ethertype, l3_at: ETHERNET_BYTES });
    }
    let l3_at = ETHERNET_BYTES + VLAN_TAG_BYTES;
    if bytes.len() < l3_at {
        return Err(sys::COUNT_NOT_IP);
    }
    let vlan = read_u16(bytes, ETHERNET_BYTES) & VLAN_ID_MASK;
    Ok(Link { vlan, ethertype: read_u16(bytes, l3_at - 2), l3_at })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_tag_is_read_and_its_priority_is_not_the_vlan() {
        let mut bytes = vec![0; ETHERNET_BYTES + VLAN_TAG_BYTES];
        write_u16(&mut bytes, 12, ETHERTYPE_IPV6);
        let link = parse(&bytes).expect("whole");
        assert_eq!((link.vlan, link.ethertype, link.l3_at), (0, ETHERTYPE_IPV6, 14));
        write_u16(&mut bytes, 12, ETHERTYPE_VLAN);
        write_u16(&mut bytes, 14, 0xe007);
        write_u16(&mut bytes, 16, ETHERTYPE_VLAN);
        let link = parse(&bytes).expect("whole");
        // A second tag is an unknown ethertype.
        assert_eq!((link.vlan, link.ethertype, link.l3_at), (7, ETHERTYPE_VLAN, 18));
    }

    #[test]
    fn truncated_headers_are_refused() {
        let mut bytes = vec![0; ETHERNET_BYTES + VLAN_TAG_BYTES - 1];
        write_u16(&mut bytes, 12, ETHERTYPE_VLAN);
        for length in [0, ETHERNET_BYTES - 1, bytes.len()] {
            assert_eq!(parse(&bytes[..length]).err(), Some(sys::COUNT_NOT_IP));
        }
    }
}

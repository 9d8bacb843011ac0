//! Parses rtnetlink(7)'s messages about devices. Only the attributes that are needed are read, so that no
//! new or malformed attribute hides a device.

use vcc_net::netlink::{Attributes, Message, bytes};

use super::{Link, LinkNews};

/// struct ifinfomsg.
const LINK_HEADER_BYTES: usize = 16;

/// Asks for each device.
pub(super) const ALL_DEVICES: [u8; LINK_HEADER_BYTES] = [0; LINK_HEADER_BYTES];

/// None if the message is not about a device.
pub(super) fn news(message: &Message<'_>) -> Option<LinkNews> {
    // A bridge reports a device that left it by the same message with another family.
    let family = message.payload.first().copied().map(i32::from);
    match message.kind {
        _ if family != Some(libc::AF_UNSPEC) => None,
        libc::RTM_NEWLINK => link(message.payload).map(LinkNews::Is),
        libc::RTM_DELLINK => Some(LinkNews::Gone { index: index(message.payload)? }),
        _ => None,
    }
}

pub(super) fn link(payload: &[u8]) -> Option<Link> {
    let name = Attributes::behind(LINK_HEADER_BYTES, payload).get(libc::IFLA_IFNAME)?;
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    Some(Link {
        index: index(payload)?,
        name: String::from_utf8_lossy(name).into_owned(),
        is_exact: std::str::from_utf8(name).is_ok(),
    })
}

fn index(payload: &[u8]) -> Option<u32> {
    bytes(payload, 4).map(u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use vcc_net::netlink::messages;

    use super::*;

    const HEADER_BYTES: usize = 16;
    const ALIGNMENT: usize = 4;
    const IFLA_IFNAME: u16 = libc::IFLA_IFNAME;

    fn message(kind: u16, payload: &[u8]) -> Vec<u8> {
        let length = (HEADER_BYTES + payload.len()) as u32;
        let mut message = length.to_ne_bytes().to_vec();
        message.extend(kind.to_ne_bytes());
        message.extend([0; 10]);
        message.extend(payload);
        message.resize(message.len().next_multiple_of(ALIGNMENT), 0);
        message
    }

    fn link(family: u8, index: u32, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut payload = vec![family, 0, 0, 0];
        payload.extend(index.to_ne_bytes());
        payload.extend([0; 8]);
        for (kind, value) in attributes {
            payload.extend((value.len() as u16 + 4).to_ne_bytes());
            payload.extend(kind.to_ne_bytes());
            payload.extend(*value);
            payload.resize(payload.len().next_multiple_of(ALIGNMENT), 0);
        }
        payload
    }

    fn names(datagram: &[u8]) -> Vec<String> {
        let names = messages(datagram).map(|message| match news(&message) {
            Some(LinkNews::Is(Link { index, name, is_exact })) => {
                format!("{index} {name} {is_exact}")
            }
            Some(news) => format!("{news:?}"),
            None => "else".into(),
        });
        names.collect()
    }

    #[test]
    fn devices_are_found_among_other_messages() {
        const ODD: u16 = 65_000;
        let name = IFLA_IFNAME;
        let datagram = [
            message(libc::RTM_NEWLINK, &link(0, 7, &[(ODD, b"\xff"), (name, b"vnet0\0")])),
            message(libc::RTM_NEWLINK, &link(0, 8, &[(name, b"vnet\xff\0"), (ODD, b"")])),
            message(libc::RTM_NEWLINK, &link(libc::AF_BRIDGE as u8, 9, &[(name, b"vnet1\0")])),
            message(libc::RTM_DELLINK, &link(0, 7, &[])),
            message(libc::RTM_NEWADDR, &[0; 8]),
        ];
        let expected =
            ["7 vnet0 true", "8 vnet\u{fffd} false", "else", "Gone { index: 7 }", "else"];
        assert_eq!(names(&datagram.concat()), expected);
    }

    #[test]
    fn a_truncated_message_ends_the_list() {
        let name: &[(u16, &[u8])] = &[(IFLA_IFNAME, b"vnet0\0")];
        let whole = message(libc::RTM_NEWLINK, &link(0, 7, name));
        for end in 0..whole.len() {
            assert!(names(&whole[..end]).is_empty(), "{end}");
            let mut short = whole[..end].to_vec();
            if let Some(length) = short.get_mut(..4) {
                length.copy_from_slice(&(end as u32).to_ne_bytes());
            }
            assert!(names(&short).len() <= 1, "{end}");
        }
        assert_eq!(names(&[0; 16]), [""; 0], "a message is no shorter than its header");
    }
}

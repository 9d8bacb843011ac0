//! Parser of rtnetlink(7) messages about devices. It reads only the attributes that it needs, so
//! that no new or malformed attribute hides a device.

use std::io;

use super::{Link, LinkNews};

/// struct nlmsghdr, and struct ifinfomsg behind it.
const HEADER_BYTES: usize = 16;
const LINK_HEADER_BYTES: usize = 16;
const REQUEST_BYTES: usize = HEADER_BYTES + LINK_HEADER_BYTES;
const ATTRIBUTE_HEADER_BYTES: usize = 4;
/// NLMSG_ALIGNTO and RTA_ALIGNTO.
const ALIGNMENT: usize = 4;

/// linux/if_link.h.
const IFLA_IFNAME: u16 = 3;

/// Asks for each device.
pub(super) fn request_of_all() -> [u8; REQUEST_BYTES] {
    let mut request = [0; REQUEST_BYTES];
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    request[0..4].copy_from_slice(&(REQUEST_BYTES as u32).to_ne_bytes());
    request[4..6].copy_from_slice(&libc::RTM_GETLINK.to_ne_bytes());
    request[6..8].copy_from_slice(&flags.to_ne_bytes());
    request
}

pub(super) struct Message<'a> {
    kind: u16,
    flags: u16,
    payload: &'a [u8],
}

pub(super) enum Content {
    Link(LinkNews),
    Done,
    Error(io::Error),
    Else,
}

/// The messages of a datagram, up to one that claims to be longer than the datagram.
pub(super) fn messages(datagram: &[u8]) -> impl Iterator<Item = Message<'_>> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(bytes(rest, 0)?) as usize;
        let message = rest.get(..length).filter(|message| message.len() >= HEADER_BYTES)?;
        rest = rest.get(length.next_multiple_of(ALIGNMENT)..).unwrap_or_default();
        Some(Message {
            kind: u16::from_ne_bytes(bytes(message, 4)?),
            flags: u16::from_ne_bytes(bytes(message, 6)?),
            payload: &message[HEADER_BYTES..],
        })
    })
}

impl Message<'_> {
    /// Whether devices came or went while they were listed.
    pub(super) fn was_interrupted(&self) -> bool {
        self.flags & libc::NLM_F_DUMP_INTR as u16 != 0
    }

    pub(super) fn content(&self) -> Content {
        match i32::from(self.kind) {
            libc::NLMSG_DONE => Content::Done,
            libc::NLMSG_ERROR => Content::Error(self.error()),
            _ => self.link().map_or(Content::Else, Content::Link),
        }
    }

    fn error(&self) -> io::Error {
        let number = bytes(self.payload, 0).map(i32::from_ne_bytes);
        number.map_or(io::ErrorKind::InvalidData.into(), |number| {
            io::Error::from_raw_os_error(number.wrapping_neg())
        })
    }

    fn link(&self) -> Option<LinkNews> {
        // A bridge tells in the same words, but for the family, that a device left it.
        let family = self.payload.first().copied().map(i32::from);
        let index = u32::from_ne_bytes(bytes(self.payload, 4)?);
        match self.kind {
            _ if family != Some(libc::AF_UNSPEC) => None,
            libc::RTM_NEWLINK => {
                let name = self.attribute(IFLA_IFNAME)?;
                let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
                Some(LinkNews::Is(Link {
                    index,
                    name: String::from_utf8_lossy(name).into_owned(),
                    is_exact: std::str::from_utf8(name).is_ok(),
                }))
            }
            libc::RTM_DELLINK => Some(LinkNews::Gone { index }),
            _ => None,
        }
    }

    fn attribute(&self, wanted: u16) -> Option<&[u8]> {
        let mut rest = self.payload.get(LINK_HEADER_BYTES..)?;
        loop {
            let length = usize::from(u16::from_ne_bytes(bytes(rest, 0)?));
            let kind = u16::from_ne_bytes(bytes(rest, 2)?);
            let value = rest.get(ATTRIBUTE_HEADER_BYTES..length)?;
            if kind == wanted {
                return Some(value);
            }
            rest = rest.get(length.next_multiple_of(ALIGNMENT)..)?;
        }
    }
}

fn bytes<const N: usize>(of: &[u8], at: usize) -> Option<[u8; N]> {
    of.get(at..at + N)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn told(datagram: &[u8]) -> Vec<String> {
        let told = messages(datagram).map(|message| match message.content() {
            Content::Link(LinkNews::Is(Link { index, name, is_exact })) => {
                format!("{index} {name} {is_exact}")
            }
            Content::Link(news) => format!("{news:?}"),
            Content::Done => "done".into(),
            Content::Error(error) => error.to_string(),
            Content::Else => "else".into(),
        });
        told.collect()
    }

    #[test]
    fn devices_are_told_whatever_else_is() {
        const ODD: u16 = 65_000;
        let name = IFLA_IFNAME;
        let datagram = [
            message(libc::RTM_NEWLINK, &link(0, 7, &[(ODD, b"\xff"), (name, b"vnet0\0")])),
            message(libc::RTM_NEWLINK, &link(0, 8, &[(name, b"vnet\xff\0"), (ODD, b"")])),
            message(libc::RTM_NEWLINK, &link(libc::AF_BRIDGE as u8, 9, &[(name, b"vnet1\0")])),
            message(libc::RTM_DELLINK, &link(0, 7, &[])),
            message(libc::NLMSG_DONE as u16, &[0; 4]),
            message(libc::NLMSG_ERROR as u16, &(-libc::EPERM).to_ne_bytes()),
            message(libc::RTM_NEWADDR, &[0; 8]),
        ];
        let expected = [
            "7 vnet0 true",
            "8 vnet\u{fffd} false",
            "else",
            "Gone { index: 7 }",
            "done",
            "Operation not permitted (os error 1)",
            "else",
        ];
        assert_eq!(told(&datagram.concat()), expected);
    }

    #[test]
    fn what_is_cut_ends_the_messages() {
        let name: &[(u16, &[u8])] = &[(IFLA_IFNAME, b"vnet0\0")];
        let whole = message(libc::RTM_NEWLINK, &link(0, 7, name));
        for end in 0..whole.len() {
            assert!(told(&whole[..end]).is_empty(), "{end}");
            let mut short = whole[..end].to_vec();
            if let Some(length) = short.get_mut(..4) {
                length.copy_from_slice(&(end as u32).to_ne_bytes());
            }
            assert!(told(&short).len() <= 1, "{end}");
        }
        assert_eq!(told(&[0; 16]), [""; 0], "a message is no shorter than its header");
    }
}

//! Parser of netlink(7) messages and their attributes. What is cut or malformed ends a list, and hides
//! nothing before it.

/// struct nlmsghdr.
pub(super) const HEADER_BYTES: usize = 16;
const ATTRIBUTE_HEADER_BYTES: usize = 4;
/// NLMSG_ALIGNTO and NLA_ALIGNTO.
const ALIGNMENT: usize = 4;
/// Without NLA_F_NESTED and NLA_F_NET_BYTEORDER.
const ATTRIBUTE_KIND_MASK: u16 = 0x3fff;

pub struct Message<'a> {
    pub kind: u16,
    flags: u16,
    pub payload: &'a [u8],
}

/// The messages of a datagram, up to one that claims to be longer than the datagram.
pub fn messages(datagram: &[u8]) -> impl Iterator<Item = Message<'_>> {
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
    /// Whether what is listed changed while it was listed.
    pub fn was_interrupted(&self) -> bool {
        self.flags & libc::NLM_F_DUMP_INTR as u16 != 0
    }

    /// Of a message of the kind NLMSG_ERROR; None if it is an acknowledgement.
    pub fn error(&self) -> Option<std::io::Error> {
        match bytes(self.payload, 0).map(i32::from_ne_bytes) {
            Some(0) => None,
            Some(number) => Some(std::io::Error::from_raw_os_error(number.wrapping_neg())),
            None => Some(std::io::ErrorKind::InvalidData.into()),
        }
    }
}

/// A list of attributes (struct nlattr).
#[derive(Clone, Copy, Default)]
pub struct Attributes<'a>(&'a [u8]);

impl<'a> Attributes<'a> {
    /// Those of a payload behind its family's header.
    pub fn behind(header_bytes: usize, payload: &'a [u8]) -> Self {
        Self(payload.get(header_bytes..).unwrap_or_default())
    }

    pub fn get(self, wanted: u16) -> Option<&'a [u8]> {
        self.iter().find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
    }

    /// Empty if the attribute is missing.
    pub fn nested(self, wanted: u16) -> Self {
        Self(self.get(wanted).unwrap_or_default())
    }

    pub fn u32(self, wanted: u16) -> Option<u32> {
        bytes(self.get(wanted)?, 0).map(u32::from_ne_bytes)
    }

    /// Bytes that are not UTF-8 are replaced.
    pub fn text(self, wanted: u16) -> Option<String> {
        let value = self.get(wanted)?.split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(value).into_owned())
    }

    pub fn iter(self) -> impl Iterator<Item = (u16, &'a [u8])> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let length = usize::from(u16::from_ne_bytes(bytes(rest, 0)?));
            let kind = u16::from_ne_bytes(bytes(rest, 2)?) & ATTRIBUTE_KIND_MASK;
            let value = rest.get(ATTRIBUTE_HEADER_BYTES..length)?;
            rest = rest.get(length.next_multiple_of(ALIGNMENT)..).unwrap_or_default();
            Some((kind, value))
        })
    }
}

/// An attribute with its value, padded to whole words.
pub fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = ATTRIBUTE_HEADER_BYTES + value.len();
    let mut bytes = [&(length as u16).to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat();
    bytes.resize(length.next_multiple_of(ALIGNMENT), 0);
    bytes
}

pub fn bytes<const N: usize>(of: &[u8], at: usize) -> Option<[u8; N]> {
    of.get(at..at.checked_add(N)?)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_in_lists_and_in_each_other() {
        const NESTED: u16 = 0x8000;
        let inner = [attribute(1, b"vxlan\0"), attribute(2, &7u32.to_ne_bytes())].concat();
        let payload = [vec![9; 4], attribute(5, b"odd"), attribute(18 | NESTED, &inner)].concat();
        let attributes = Attributes::behind(4, &payload);
        assert_eq!(attributes.get(5), Some(&b"odd"[..]));
        assert_eq!(attributes.nested(18).text(1).as_deref(), Some("vxlan"));
        assert_eq!(attributes.nested(18).u32(2), Some(7));
        assert_eq!(attributes.nested(5).u32(2), None);
        assert_eq!(Attributes::behind(9, &[0; 4]).iter().count(), 0);
    }

    #[test]
    fn what_is_cut_ends_a_list() {
        let whole = [attribute(1, b"one"), attribute(2, b"two")].concat();
        for end in 0..whole.len() {
            // The last byte is only padding.
            let expected = usize::from(end >= 7) + usize::from(end >= 15);
            assert_eq!(Attributes(&whole[..end]).iter().count(), expected, "{end}");
        }
        assert_eq!(Attributes(&[0; 8]).iter().count(), 0, "no shorter than its header");
    }

    #[test]
    fn errors_have_their_number() {
        let error_of = |payload: &[u8]| {
            let header = [(HEADER_BYTES + payload.len()) as u32, 2, 0, 0].map(u32::to_ne_bytes);
            let datagram = [header.as_flattened(), payload].concat();
            let error = messages(&datagram).next().expect("a message").error();
            error.map(|error| error.raw_os_error())
        };
        assert_eq!(error_of(&(-libc::EPERM).to_ne_bytes()), Some(Some(libc::EPERM)));
        assert_eq!(error_of(&0i32.to_ne_bytes()), None, "an acknowledgement");
        assert_eq!(error_of(&[]), Some(None));
    }
}

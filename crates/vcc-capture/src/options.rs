//! The TCP options of a segment.

use vcc_domain::{Frame, TcpHeader};
use vcc_net::wire::{TCP_BYTES, read_u16, read_u32};

const END: u8 = 0;
const NOP: u8 = 1;
pub(crate) const MSS: u8 = 2;
pub(crate) const SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const TIMESTAMPS: u8 = 8;
/// RFC 8684.
pub(crate) const MPTCP: u8 = 30;
/// RFC 9768: the two orders of its counters. vcc's reports have the first of them.
const ACCECN: [u8; 2] = [172, 174];
/// RFC 6994, with the identifier of vcc.
const EXPERIMENT: u8 = 253;
const EXPERIMENT_OF_VCC: [u8; 2] = *b"vc";
/// The fourth byte of a report in a segment of its own, behind the identifier and the version.
const FACK: u8 = 3;

/// An option with its value; NOPs and padding are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TcpOption<'a> {
    pub kind: u8,
    pub value: &'a [u8],
}

impl TcpOption<'_> {
    /// Does vcc add and remove such options (docs/feedback.md, docs/accecn.md)?
    pub(crate) fn is_of_vcc(self) -> bool {
        ACCECN.contains(&self.kind)
            || self.kind == EXPERIMENT && self.value.starts_with(&EXPERIMENT_OF_VCC)
    }

    fn is_fack(self) -> bool {
        self.kind == EXPERIMENT && self.is_of_vcc() && self.value.get(3) == Some(&FACK)
    }
}

/// The bytes between TCP's header and its payload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options(Vec<u8>);

impl Options {
    pub(crate) fn read(frame: &Frame, header: &TcpHeader) -> Self {
        Self::new(frame.bytes.get(header.at + TCP_BYTES..header.end).unwrap_or_default())
    }

    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    /// A malformed option is the last one, with all the rest as its value.
    pub(crate) fn iter(&self) -> impl Iterator<Item = TcpOption<'_>> {
        let mut rest = &self.0[..];
        std::iter::from_fn(move || {
            while let [NOP, behind @ ..] = rest {
                rest = behind;
            }
            let (&kind, behind) = rest.split_first().filter(|(kind, _)| **kind != END)?;
            let bytes = behind.first().map_or(0, |bytes| usize::from(*bytes));
            match rest.split_at_checked(bytes).filter(|(option, _)| option.len() >= 2) {
                Some((option, others)) => {
                    rest = others;
                    Some(TcpOption { kind, value: &option[2..] })
                }
                None => {
                    rest = &[];
                    Some(TcpOption { kind, value: behind })
                }
            }
        })
    }

    /// The options that `other` lacks, in this order; a repeated one as often as it lacks it.
    pub(crate) fn without(&self, other: &Self) -> Vec<TcpOption<'_>> {
        let mut others: Vec<TcpOption> = other.iter().collect();
        let is_new = |option: &TcpOption| match others.iter().position(|it| it == option) {
            Some(at) => {
                others.swap_remove(at);
                false
            }
            None => true,
        };
        self.iter().filter(is_new).collect()
    }

    fn value(&self, kind: u8, bytes: usize) -> Option<&[u8]> {
        let mut values = self.iter().filter(|option| option.kind == kind);
        values.find(|option| option.value.len() == bytes).map(|option| option.value)
    }

    /// TSval and TSecr.
    pub(crate) fn timestamps(&self) -> Option<[u32; 2]> {
        self.value(TIMESTAMPS, 8).map(|value| [read_u32(value, 0), read_u32(value, 4)])
    }

    pub(crate) fn mss_bytes(&self) -> Option<u16> {
        self.value(MSS, 2).map(|value| read_u16(value, 0))
    }

    pub(crate) fn permits_sack(&self) -> bool {
        self.value(SACK_PERMITTED, 0).is_some()
    }

    pub(crate) fn scale(&self) -> Option<u8> {
        self.value(SCALE, 1).map(|value| value[0])
    }

    /// Has it a report of vcc to another vcc, so that vcc has sent it?
    pub(crate) fn has_fack(&self) -> bool {
        self.iter().any(TcpOption::is_fack)
    }
}

/// The number in an option's value, of MSS or window scale.
pub(crate) fn number(value: &[u8]) -> Option<u16> {
    match value {
        [byte] => Some((*byte).into()),
        [_, _] => Some(read_u16(value, 0)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use vcc_frames::options::{fack, hello, join, mss, pack, sack_permitted, timestamps, wscale};

    use super::*;

    fn options(parts: &[Vec<u8>]) -> Options {
        Options::new(&join(parts))
    }

    #[test]
    fn options_are_read_without_padding() {
        let syn = options(&[mss(1460), vec![1], wscale(7), timestamps(5, 6)]);
        let kinds: Vec<u8> = syn.iter().map(|option| option.kind).collect();
        assert_eq!(kinds, [MSS, SCALE, TIMESTAMPS]);
        assert_eq!((syn.scale(), syn.timestamps()), (Some(7), Some([5, 6])));
        assert_eq!(number(syn.iter().next().expect("an option").value), Some(1460));
        let ended = Options::new(&[3, 3, 1, 0, 2, 4, 5, 6]);
        assert_eq!(ended.iter().count(), 1);
        for malformed in [&[3][..], &[3, 0], &[3, 1, 9], &[3, 9, 9]] {
            let malformed = Options::new(malformed);
            let all: Vec<_> = malformed.iter().collect();
            assert_eq!((all.len(), all[0].kind), (1, SCALE), "{malformed:?}");
        }
    }

    #[test]
    fn options_that_another_segment_lacks() {
        let one = options(&[mss(1460), pack(1, 2), sack_permitted(), sack_permitted()]);
        let other = options(&[sack_permitted(), mss(1448)]);
        let kinds = |list: Vec<TcpOption>| list.iter().map(|it| it.kind).collect::<Vec<_>>();
        assert_eq!(kinds(one.without(&other)), [2, 172, 4]);
        assert_eq!(kinds(other.without(&one)), [2]);
    }

    #[test]
    fn options_of_vcc() {
        let is_ours = |option: Vec<u8>| options(&[option]).iter().all(TcpOption::is_of_vcc);
        assert!(is_ours(hello(1)) && is_ours(fack(1, 2)) && is_ours(pack(1, 2)));
        assert!(!is_ours(vec![253, 4, 1, 2]) && !is_ours(timestamps(1, 2)));
        assert!(options(&[fack(1, 2)]).has_fack() && !options(&[hello(2)]).has_fack());
    }
}

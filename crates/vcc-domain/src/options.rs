//! Parses TCP options: their values, their offsets, and whether they are valid.

use std::num::NonZeroU8;

use vcc_engine::sys;

use crate::feedback_options::{
    self, APPENDED_BYTES, EXPERIMENT_NAME, FACK_BYTES, KIND_ACCECN1, KIND_EXPERIMENT, KIND_PACK,
};
use vcc_net::wire::*;

/// RFC 9293, 3.1; RFC 2018; RFC 7323.
const KIND_END: u8 = 0;
pub(crate) const KIND_NOP: u8 = 1;
const KIND_MSS: u8 = 2;
const KIND_WSCALE: u8 = 3;
const KIND_SACK_PERMITTED: u8 = 4;
pub(crate) const KIND_SACK: u8 = 5;
const KIND_TIMESTAMPS: u8 = 8;
/// Two NOPs align their values (RFC 7323, appendix A).
pub(crate) const ALIGNED_TIMESTAMPS: [u8; 4] = [KIND_NOP, KIND_NOP, KIND_TIMESTAMPS, 10];
const ALIGNED_TIMESTAMPS_BYTES: usize = ALIGNED_TIMESTAMPS.len() + 8;
/// RFC 2385 and RFC 5925.
const KIND_MD5: u8 = 19;
const KIND_AO: u8 = 29;
/// RFC 8684.
const KIND_MPTCP: u8 = 30;

/// Offsets of option values, in as little room as they need: each segment has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places {
    /// Mask of the option bytes to strip; bit 0 is the first byte.
    pub ours: u64,
    /// From the start of the TCP header.
    pub mss_at: Option<NonZeroU8>,
    pub wscale_at: Option<NonZeroU8>,
    /// TSval; TSecr follows it.
    pub timestamps_at: Option<NonZeroU8>,
    /// The SACK option, kind and length included.
    pub sack_at: Option<(NonZeroU8, u8)>,
    /// Offset of KIND_END; options after it are not read.
    pub end_at: Option<NonZeroU8>,
    /// An invalid option ended the list.
    pub malformed: bool,
}

/// The values of the options, as in `struct vcc_segment`. If an option is repeated, the last one
/// counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// `enum vcc_option`.
    pub present: u16,
    pub mss: u16,
    pub wscale: u8,
    pub hello: u8,
    pub feedback: sys::vcc_feedback,
    pub dsack_bytes: u32,
    pub dsack_seq: u32,
    pub places: Places,
    /// Mask of the bytes of MPTCP options.
    mptcp: u64,
}

/// A mask of `length` bytes of the options from `at`, one bit per byte.
pub(crate) fn byte_mask(at: usize, length: usize) -> u64 {
    debug_assert!(at + length <= TCP_OPTIONS_MAX_BYTES);
    ((1 << length) - 1) << at
}

/// Those of most segments: timestamps alone (Linux: tcp_parse_aligned_timestamp).
#[inline]
pub(crate) fn timestamps_alone(options: &[u8]) -> Option<Options> {
    let alone =
        options.len() == ALIGNED_TIMESTAMPS_BYTES && options.starts_with(&ALIGNED_TIMESTAMPS);
    alone.then(|| {
        let timestamps_at = offset(ALIGNED_TIMESTAMPS.len());
        let places = Places { timestamps_at, ..Places::default() };
        Options { present: sys::OPT_TIMESTAMPS as u16, places, ..Options::default() }
    })
}

/// Reads the options of a segment that acknowledges `ack`, as Linux does (`tcp_parse_options`): an
/// invalid length ends the list, and the options before it are used.
pub(crate) fn read(options: &[u8], ack: u32) -> Options {
    let mut read = Options::default();
    let mut at = 0;
    while let Some(&kind) = options.get(at) {
        match kind {
            KIND_END => {
                read.places.end_at = offset(at);
                break;
            }
            KIND_NOP => at += 1,
            _ => {
                let Some(option) = whole_option(&options[at..]) else {
                    read.places.malformed = true;
                    break;
                };
                read.take(option, at, ack);
                at += option.len();
            }
        }
    }
    read
}

/// From the start of the TCP header, of what is at `at` in its options.
fn offset(at: usize) -> Option<NonZeroU8> {
    debug_assert!(at <= TCP_OPTIONS_MAX_BYTES);
    NonZeroU8::new((TCP_BYTES + at) as u8)
}

/// The option at the start of `rest`, kind and length included; None if it does not fit.
fn whole_option(rest: &[u8]) -> Option<&[u8]> {
    let length = usize::from(*rest.get(1)?);
    rest.get(..length).filter(|option| option.len() >= 2)
}

impl Options {
    /// Adds MPTCP's options to the mask, for a SYN. They do not matter on other segments
    /// (`engine/mptcp.h`).
    pub(crate) fn note_syn(&mut self) {
        if self.mptcp != 0 {
            self.present |= sys::OPT_MPTCP as u16;
            self.places.ours |= self.mptcp;
        }
    }

    fn take(&mut self, option: &[u8], at: usize, ack: u32) {
        let said = match (option[0], option.len()) {
            (KIND_MSS, 4) if read_u16(option, 2) != 0 => {
                self.mss = read_u16(option, 2);
                self.places.mss_at = offset(at + 2);
                sys::OPT_MSS
            }
            (KIND_WSCALE, 3) => {
                self.wscale = option[2];
                self.places.wscale_at = offset(at + 2);
                sys::OPT_WSCALE
            }
            (KIND_SACK_PERMITTED, 2) => sys::OPT_SACK_PERMITTED,
            (KIND_TIMESTAMPS, 10) => {
                self.places.timestamps_at = offset(at + 2);
                sys::OPT_TIMESTAMPS
            }
            (KIND_SACK, 10 | 18 | 26 | 34) => {
                (self.dsack_seq, self.dsack_bytes) = dsack(&option[2..], ack);
                self.places.sack_at = offset(at).map(|at| (at, option.len() as u8));
                sys::OPT_SACK
            }
            (KIND_MD5 | KIND_AO, _) => sys::OPT_SIGNED,
            (KIND_MPTCP, _) => {
                self.mptcp |= byte_mask(at, option.len());
                0
            }
            (KIND_PACK | KIND_ACCECN1, _) => self.take_ours(option, at),
            (KIND_EXPERIMENT, 4..) if option[2..4] == EXPERIMENT_NAME => self.take_ours(option, at),
            _ => 0,
        };
        self.present |= said as u16;
    }

    /// Reads an option of our kinds; its length and version decide which one it is.
    fn take_ours(&mut self, option: &[u8], at: usize) -> u32 {
        self.places.ours |= byte_mask(at, option.len());
        match (option[0], option.len(), option.get(4..6)) {
            (KIND_PACK, APPENDED_BYTES, _) => {
                self.feedback = read_counters(&option[2..]);
                sys::OPT_PACK
            }
            (KIND_PACK | KIND_ACCECN1, length, _) => {
                // The whole fields that fit count; the second one is CE's in both orders.
                if length >= APPENDED_BYTES {
                    self.feedback = read_counters(&option[2..]);
                    sys::OPT_ACCECN | sys::OPT_ACCECN_CE
                } else {
                    sys::OPT_ACCECN
                }
            }
            (
                KIND_EXPERIMENT,
                FACK_BYTES,
                Some(&[feedback_options::VERSION, feedback_options::WHAT_FACK]),
            ) => {
                self.feedback = read_counters(&option[6..]);
                sys::OPT_FACK
            }
            (KIND_EXPERIMENT, APPENDED_BYTES, Some(&[feedback_options::VERSION, what]))
                if is_hello(what) && option[6..] == [0, 0] =>
            {
                self.hello = what;
                sys::OPT_HELLO
            }
            _ => sys::OPT_OURS_BAD,
        }
    }
}

fn is_hello(what: u8) -> bool {
    [sys::HELLO_OFFER, sys::HELLO_ACCEPT].contains(&u32::from(what))
}

fn read_counters(bytes: &[u8]) -> sys::vcc_feedback {
    sys::vcc_feedback { ect0_bytes: read_u24(bytes, 0), ce_bytes: read_u24(bytes, 3) }
}

/// The blocks of a SACK option, kind and length included: left and right edges (RFC 2018, 3).
pub(crate) fn sack_blocks(option: &[u8]) -> impl Iterator<Item = (u32, u32)> {
    let blocks = option.get(2..).unwrap_or_default().chunks_exact(8);
    blocks.map(|block| (read_u32(block, 0), read_u32(block, 4)))
}

/// DSACK (RFC 2883, 4), as in `engine/sack.h`: the first block reports a duplicate if it lies below
/// `ack` or within the second block. Returns its left edge and length; length 0 if there is none.
fn dsack(blocks: &[u8], ack: u32) -> (u32, u32) {
    let not_after = |a: u32, b: u32| b.wrapping_sub(a) as i32 >= 0;
    let mut blocks = blocks.chunks_exact(8).map(|block| (read_u32(block, 0), read_u32(block, 4)));
    let Some((left, right)) = blocks.next() else { return (0, 0) };
    // A missing second block is empty, at 0.
    let second = blocks.next().unwrap_or_default();
    let is_inside = not_after(second.0, left) && not_after(right, second.1);
    let came_twice = not_after(right, ack) || is_inside;
    if came_twice && !not_after(right, left) { (left, right.wrapping_sub(left)) } else { (0, 0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sack(blocks: &[(u32, u32)]) -> Vec<u8> {
        let mut option = vec![KIND_SACK, 2 + 8 * blocks.len() as u8];
        for (left, right) in blocks {
            option.extend(left.to_be_bytes());
            option.extend(right.to_be_bytes());
        }
        option
    }

    #[test]
    fn options_of_a_syn_are_located() {
        let syn = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7];
        let read = read(&syn, 0);
        let all = sys::OPT_MSS | sys::OPT_SACK_PERMITTED | sys::OPT_TIMESTAMPS | sys::OPT_WSCALE;
        assert_eq!(u32::from(read.present), all);
        assert_eq!((read.mss, read.wscale), (1460, 7));
        let places = Places {
            mss_at: offset(2),
            wscale_at: offset(19),
            timestamps_at: offset(8),
            ..Places::default()
        };
        assert_eq!(read.places, places);
    }

    #[test]
    fn timestamps_alone_are_read_as_among_others() {
        let alone = [&ALIGNED_TIMESTAMPS[..], &[9; 8]].concat();
        let among = read(&[&alone[..], &[KIND_NOP]].concat(), 0);
        assert_eq!(timestamps_alone(&alone), Some(among.clone()));
        assert_eq!(among.places.timestamps_at, offset(4));
    }

    #[test]
    fn ours_are_marked_byte_by_byte() {
        let feedback = sys::vcc_feedback { ect0_bytes: 9, ce_bytes: 0xff_ffff };
        let options = [&[1, 1][..], &feedback_options::pack(&feedback), &[1, 1]].concat();
        let read_pack = read(&options, 0);
        assert_eq!(u32::from(read_pack.present), sys::OPT_PACK);
        assert_eq!((read_pack.feedback, read_pack.places.ours), (feedback, 0xff << 2));
        let read_fack = read(&feedback_options::fack(&feedback), 0);
        assert_eq!(u32::from(read_fack.present), sys::OPT_FACK);
        assert_eq!((read_fack.feedback, read_fack.places.ours), (feedback, 0xfff));
        let read_hello = read(&feedback_options::hello(2), 0);
        assert_eq!((u32::from(read_hello.present), read_hello.hello), (sys::OPT_HELLO, 2));
    }

    #[test]
    fn the_second_field_of_accecn_counts_ce_in_both_orders() {
        let counters = sys::vcc_feedback { ect0_bytes: 0x01_0203, ce_bytes: 0x04_0506 };
        let both = sys::OPT_ACCECN | sys::OPT_ACCECN_CE;
        for (kind, bytes, present, feedback) in [
            (172, 2_u8, sys::OPT_ACCECN, Default::default()),
            (174, 5, sys::OPT_ACCECN, Default::default()),
            (172, 8, sys::OPT_PACK, counters),
            (172, 11, both, counters),
            (174, 8, both, counters),
            (174, 11, both, counters),
            (174, 7, sys::OPT_ACCECN, Default::default()),
            (172, 14, both, counters),
        ] {
            let option: Vec<u8> = [kind, bytes].into_iter().chain(1..bytes - 1).collect();
            let read = read(&option, 0);
            assert_eq!((u32::from(read.present), read.feedback), (present, feedback), "{option:?}");
            assert_eq!(read.places.ours, (1 << bytes) - 1, "{option:?}");
        }
    }

    #[test]
    fn malformed_options_of_ours_are_bad_and_other_experiments_are_ignored() {
        let bad: [&[u8]; 4] = [
            &[253, 4, b'v', b'c'],
            &[253, 8, b'v', b'c', 2, 1, 0, 0],
            &[253, 8, b'v', b'c', 1, 3, 0, 0],
            &[253, 8, b'v', b'c', 1, 1, 0, 1],
        ];
        for option in bad {
            let read = read(option, 0);
            assert_eq!(u32::from(read.present), sys::OPT_OURS_BAD, "{option:?}");
            assert_eq!(read.places.ours, (1 << option.len()) - 1, "{option:?}");
        }
        for option in [&[253, 2][..], &[253, 3, b'v'], &[253, 4, b'v', b'd'], &[254, 4, 0, 0]] {
            assert_eq!(read(option, 0), Options::default(), "{option:?}");
        }
    }

    #[test]
    fn an_invalid_length_ends_the_list() {
        for rest in [&[3][..], &[1, 1, 3], &[3, 0], &[3, 1], &[3, 3], &[254, 0, 3, 3, 9]] {
            let read = read(&[&[2, 4, 5, 0xb4][..], rest].concat(), 0);
            assert_eq!((u32::from(read.present), read.mss), (sys::OPT_MSS, 1460), "{rest:?}");
            assert!(read.places.malformed, "{rest:?}");
        }
        // Options after KIND_END are not read.
        let ended = read(&[1, 0, 19, 0], 0);
        assert_eq!(ended.places, Places { end_at: offset(1), ..Places::default() });
    }

    #[test]
    fn options_that_linux_ignores_are_ignored() {
        for option in [
            &[2, 4, 0, 0][..],
            &[5, 2],
            &[5, 9, 0, 0, 0, 0, 0, 0, 0],
            &[5, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ] {
            assert_eq!(read(option, 0), Options::default(), "{option:?}");
        }
        let first = read(&[2, 4, 5, 0xb4, 2, 4, 0, 0], 0);
        assert_eq!((first.mss, first.places.mss_at), (1460, offset(2)));
    }

    #[test]
    fn signatures_are_recognised() {
        for option in [&[19, 2][..], &[29, 4, 0, 0]] {
            assert_eq!(u32::from(read(option, 0).present), sys::OPT_SIGNED, "{option:?}");
        }
    }

    #[test]
    fn dsack_blocks() {
        let twice = |blocks: &[(u32, u32)], ack| {
            let options = read(&sack(blocks), ack);
            (options.dsack_seq, options.dsack_bytes)
        };
        assert_eq!(twice(&[(100, 300)], 300), (100, 200), "acknowledged");
        assert_eq!(twice(&[(100, 300)], 299), (0, 0), "above");
        assert_eq!(twice(&[(500, 600), (400, 700)], 300), (500, 100), "within the second");
        assert_eq!(twice(&[(500, 600), (550, 700)], 300), (0, 0), "not within");
        assert_eq!(twice(&[(300, 100)], 400), (0, 0), "no block");
        assert_eq!(twice(&[(0xffff_ff00, 0x100)], 0x100), (0xffff_ff00, 0x200), "at the wrap");
    }
}

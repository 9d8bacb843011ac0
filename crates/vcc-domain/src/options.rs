//! Where a segment has which TCP options; `datapath/options.h` parses them.

use std::num::NonZeroU8;

use vcc_engine::{TcpLayout, sys};
use vcc_net::wire::*;

pub(crate) const KIND_NOP: u8 = sys::KIND_NOP as u8;
pub(crate) const KIND_SACK: u8 = sys::KIND_SACK as u8;
/// Two NOPs align their values (RFC 7323, appendix A).
pub(crate) const ALIGNED_TIMESTAMPS: [u8; 4] = sys::TIMESTAMPS_ONLY.to_be_bytes();

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

impl From<&TcpLayout> for Places {
    #[inline]
    fn from(layout: &TcpLayout) -> Self {
        let options = layout.options;
        Places {
            ours: options.ours,
            mss_at: NonZeroU8::new(options.mss_off),
            wscale_at: NonZeroU8::new(options.wscale_off),
            timestamps_at: NonZeroU8::new(layout.timestamps_off),
            sack_at: NonZeroU8::new(layout.sack_off).map(|at| (at, layout.sack_bytes)),
            end_at: NonZeroU8::new(options.end_off),
            malformed: options.malformed,
        }
    }
}

/// The blocks of a SACK option, kind and length included: left and right edges (RFC 2018, 3).
pub(crate) fn sack_blocks(option: &[u8]) -> impl Iterator<Item = (u32, u32)> {
    let blocks = option.get(2..).unwrap_or_default().chunks_exact(8);
    blocks.map(|block| (read_u32(block, 0), read_u32(block, 4)))
}

#[cfg(test)]
mod tests {
    use vcc_engine::{Segment, parse_tcp_options};

    use super::*;
    use crate::feedback_options;

    /// Of a segment that acknowledges `ack`.
    fn read(options: &[u8], ack: u32) -> (Segment, Places) {
        let mut segment = Segment { ack, ..Segment::default() };
        let mut layout = TcpLayout::default();
        parse_tcp_options(options, &mut segment, &mut layout).expect("they fit");
        (Segment { ack: 0, ..segment }, Places::from(&layout))
    }

    fn none() -> (Segment, Places) {
        (Segment::default(), Places::default())
    }

    /// From the start of the TCP header, of what is at `at` in its options.
    fn offset(at: usize) -> Option<NonZeroU8> {
        NonZeroU8::new((TCP_BYTES + at) as u8)
    }

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
        let (segment, found) = read(&syn, 0);
        let all = sys::OPT_MSS | sys::OPT_SACK_PERMITTED | sys::OPT_TIMESTAMPS | sys::OPT_WSCALE;
        assert_eq!(u32::from(segment.options), all);
        assert_eq!((segment.mss, segment.wscale), (1460, 7));
        assert_eq!((segment.tsval, segment.tsecr), (1, 0));
        let places = Places {
            mss_at: offset(2),
            wscale_at: offset(19),
            timestamps_at: offset(8),
            ..Places::default()
        };
        assert_eq!(found, places);
    }

    #[test]
    fn timestamps_alone_are_read_as_among_others() {
        let alone = [&ALIGNED_TIMESTAMPS[..], &[9; 8]].concat();
        let among = read(&[&alone[..], &[KIND_NOP]].concat(), 0);
        assert_eq!(read(&alone, 0), among);
        assert_eq!(among.0.tsval, 0x0909_0909);
        assert_eq!(among.1.timestamps_at, offset(4));
    }

    #[test]
    fn ours_are_marked_byte_by_byte() {
        let feedback = sys::vcc_feedback { ect0_bytes: 9, ce_bytes: 0xff_ffff };
        let options = [&[1, 1][..], &feedback_options::pack(&feedback), &[1, 1]].concat();
        let (pack, places) = read(&options, 0);
        assert_eq!(u32::from(pack.options), sys::OPT_PACK);
        assert_eq!((pack.feedback, places.ours), (feedback, 0xff << 2));
        let (fack, places) = read(&feedback_options::fack(&feedback), 0);
        assert_eq!(u32::from(fack.options), sys::OPT_FACK);
        assert_eq!((fack.feedback, places.ours), (feedback, 0xfff));
        let (hello, _) = read(&feedback_options::hello(2), 0);
        assert_eq!((u32::from(hello.options), hello.hello), (sys::OPT_HELLO, 2));
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
            let (read, places) = read(&option, 0);
            assert_eq!((u32::from(read.options), read.feedback), (present, feedback), "{option:?}");
            assert_eq!(places.ours, (1 << bytes) - 1, "{option:?}");
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
            let (read, places) = read(option, 0);
            assert_eq!(u32::from(read.options), sys::OPT_OURS_BAD, "{option:?}");
            assert_eq!(places.ours, (1 << option.len()) - 1, "{option:?}");
        }
        for option in [&[253, 2][..], &[253, 3, b'v'], &[253, 4, b'v', b'd'], &[254, 4, 0, 0]] {
            assert_eq!(read(option, 0), none(), "{option:?}");
        }
    }

    #[test]
    fn an_invalid_length_ends_the_list() {
        for rest in [&[3][..], &[1, 1, 3], &[3, 0], &[3, 1], &[3, 3], &[254, 0, 3, 3, 9]] {
            let (read, places) = read(&[&[2, 4, 5, 0xb4][..], rest].concat(), 0);
            assert_eq!((u32::from(read.options), read.mss), (sys::OPT_MSS, 1460), "{rest:?}");
            assert!(places.malformed, "{rest:?}");
        }
        // Options after KIND_END are not read.
        let (_, ended) = read(&[1, 0, 19, 0], 0);
        assert_eq!(ended, Places { end_at: offset(1), ..Places::default() });
    }

    #[test]
    fn options_that_linux_ignores_are_ignored() {
        for option in [
            &[2, 4, 0, 0][..],
            &[5, 2],
            &[5, 9, 0, 0, 0, 0, 0, 0, 0],
            &[5, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ] {
            assert_eq!(read(option, 0), none(), "{option:?}");
        }
        let (first, places) = read(&[2, 4, 5, 0xb4, 2, 4, 0, 0], 0);
        assert_eq!((first.mss, places.mss_at), (1460, offset(2)));
    }

    #[test]
    fn signatures_are_recognised() {
        for option in [&[19, 2][..], &[29, 4, 0, 0]] {
            assert_eq!(u32::from(read(option, 0).0.options), sys::OPT_SIGNED, "{option:?}");
        }
    }

    #[test]
    fn dsack_blocks() {
        let twice = |blocks: &[(u32, u32)], ack| {
            let (segment, _) = read(&sack(blocks), ack);
            (segment.dsack_seq, segment.dsack_bytes)
        };
        assert_eq!(twice(&[(100, 300)], 300), (100, 200), "acknowledged");
        assert_eq!(twice(&[(100, 300)], 299), (0, 0), "above");
        assert_eq!(twice(&[(500, 600), (400, 700)], 300), (500, 100), "within the second");
        assert_eq!(twice(&[(500, 600), (550, 700)], 300), (0, 0), "not within");
        assert_eq!(twice(&[(300, 100)], 400), (0, 0), "no block");
        assert_eq!(twice(&[(0xffff_ff00, 0x100)], 0x100), (0xffff_ff00, 0x200), "at the wrap");
    }

    #[test]
    fn the_last_of_repeated_options_is_located() {
        let blocks = [sack(&[(1, 2)]), sack(&[(3, 4), (5, 6)])];
        let (_, places) = read(&blocks.concat(), 0);
        assert_eq!(places.sack_at, offset(10).map(|at| (at, 18)));
        let stamps = [&ALIGNED_TIMESTAMPS[2..], &[9; 8], &ALIGNED_TIMESTAMPS[2..], &[7; 8]];
        let (segment, places) = read(&stamps.concat(), 0);
        assert_eq!((segment.tsval, places.timestamps_at), (0x0707_0707, offset(12)));
    }

    #[test]
    fn more_than_a_header_has_is_refused() {
        let mut segment = Segment::default();
        let refused = parse_tcp_options(&[1; 41], &mut segment, &mut TcpLayout::default());
        assert_eq!(refused, Err(sys::COUNT_MALFORMED));
    }
}

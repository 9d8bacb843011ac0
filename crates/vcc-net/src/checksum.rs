//! Internet checksums: updated incrementally (RFC 1624) or computed from scratch (RFC 1071).

use crate::wire::{IPV4_BYTES, PROTOCOL_TCP};

/// A one's complement sum of 16-bit words, not yet folded. The words are in native byte order, and
/// the result is swapped once (RFC 1071, 2 (B)).
#[derive(Clone, Copy, Debug)]
pub struct Sum(u64);

/// As many bytes as a compiler sums well in vector registers.
const BLOCK_BYTES: usize = 64;

impl Sum {
    /// -0. A sum that starts here never becomes +0, like the kernel's sums. The two are equal as
    /// numbers, but not as bytes.
    pub const MINUS_ZERO: Sum = Sum(0xffff);

    #[must_use]
    #[inline]
    pub fn with(self, word: u16) -> Self {
        Sum(self.0 + u64::from(word.to_be()))
    }

    /// Both halves of four bytes.
    #[must_use]
    #[inline]
    pub fn with_u32(self, words: u32) -> Self {
        Sum(self.0 + u64::from(words.to_be()))
    }

    /// An odd number of bytes is padded with a zero (RFC 1071, 1).
    #[must_use]
    #[inline]
    pub fn with_words(self, bytes: &[u8]) -> Self {
        let (blocks, rest) = bytes.split_at(bytes.len() - bytes.len() % BLOCK_BYTES);
        let sum = if blocks.is_empty() { 0 } else { sum_of_blocks(blocks) };
        let rows = rest.chunks_exact(4);
        let last = rows.remainder();
        let sum = rows.fold(self.0 + sum, |sum, row| sum + u64::from(native_u32(row)));
        match *last {
            [a, b, c] => Sum(sum + u64::from(u32::from_ne_bytes([a, b, c, 0]))),
            [a, b] => Sum(sum + u64::from(u16::from_ne_bytes([a, b]))),
            [a] => Sum(sum + u64::from(u16::from_ne_bytes([a, 0]))),
            _ => Sum(sum),
        }
    }

    /// Several of four bytes.
    #[must_use]
    #[inline]
    pub fn with_rows<const ROWS: usize>(self, rows: [u32; ROWS]) -> Self {
        rows.into_iter().fold(self, Sum::with_u32)
    }

    /// The value of a header's checksum field.
    #[must_use]
    #[inline]
    pub fn checksum(self) -> u16 {
        !self.fold()
    }

    fn without_words(self, bytes: &[u8]) -> Self {
        debug_assert!(bytes.len() % 2 == 0, "headers are whole words");
        self.with(!Sum(0).with_words(bytes).fold())
    }

    #[inline]
    fn fold(self) -> u16 {
        let halves = |sum: u64| (sum >> 32) + (sum & 0xffff_ffff);
        let quarters = |sum: u64| (sum >> 16) + (sum & 0xffff);
        // Of 64 bits, the first halves leave 33, the next ones 32, and the quarters 17, then 16.
        u16::from_be(quarters(quarters(halves(halves(self.0)))) as u16)
    }
}

/// The sum of whole blocks, of words of 32 bits.
fn sum_of_blocks(blocks: &[u8]) -> u64 {
    const LANES: usize = BLOCK_BYTES / 8;
    let (mut whole, mut high) = ([0_u64; LANES], [0_u64; LANES]);
    for block in blocks.chunks_exact(BLOCK_BYTES) {
        for (lane, bytes) in block.chunks_exact(8).enumerate() {
            let mut row = [0; 8];
            row.copy_from_slice(bytes);
            let row = u64::from_ne_bytes(row);
            whole[lane] = whole[lane].wrapping_add(row);
            high[lane] += row >> 32;
        }
    }
    let high = high.iter().sum::<u64>();
    // The low halves' sum fits, so it is what the high ones leave of the whole.
    let low = whole.iter().fold(0, |sum: u64, lane| sum.wrapping_add(*lane));
    low.wrapping_sub(high << 32) + high
}

#[inline]
fn native_u32(row: &[u8]) -> u32 {
    u32::from_ne_bytes([row[0], row[1], row[2], row[3]])
}

/// The checksum after data changed from `before` to `after` (RFC 1624, 3: ~(~HC + ~m + m')). Their
/// lengths may differ: zeros do not change a sum.
#[inline]
pub fn updated(check: u16, before: &[u8], after: &[u8]) -> u16 {
    Sum::MINUS_ZERO.with(!check).without_words(before).with_words(after).checksum()
}

/// The same for four bytes.
#[inline]
pub fn word_updated(check: u16, before: u32, after: u32) -> u16 {
    Sum::MINUS_ZERO.with(!check).with_u32(!before).with_u32(after).checksum()
}

/// The checksum of the parts, concatenated.
#[inline]
pub fn compute(parts: &[&[u8]]) -> u16 {
    parts.iter().fold(Sum::MINUS_ZERO, |sum, part| sum.with_words(part)).checksum()
}

/// The checksum of an IPv4 header. Mostly it is without options, and then without a loop.
#[inline]
pub fn of_ipv4(header: &[u8]) -> u16 {
    match <&[u8; IPV4_BYTES]>::try_from(header) {
        Ok(plain) => Sum::MINUS_ZERO.with_words(plain).checksum(),
        Err(_) => compute(&[header]),
    }
}

/// TCP's checksum over the pseudo-header (RFC 9293, 3.1; RFC 8200, 8.1) and the complete `tcp`,
/// whose checksum field is 0. IPv4 addresses may be mapped (`::ffff:a.b.c.d`, RFC 4291, 2.5.5.2):
/// the prefix adds -0.
#[inline]
pub fn of_tcp(source: &[u8; 16], destination: &[u8; 16], tcp: &[u8]) -> u16 {
    of_transport(PROTOCOL_TCP, source, destination, tcp)
}

/// The same of ICMPv6 (RFC 4443, 2.3), or of another protocol with a pseudo-header.
#[inline]
pub fn of_transport(
    protocol: u8,
    source: &[u8; 16],
    destination: &[u8; 16],
    segment: &[u8],
) -> u16 {
    pseudo_header(protocol, source, destination, segment.len()).with_words(segment).checksum()
}

/// The pseudo-header of so many bytes of TCP.
#[inline]
pub fn tcp_pseudo_header(source: &[u8; 16], destination: &[u8; 16], bytes: usize) -> Sum {
    pseudo_header(PROTOCOL_TCP, source, destination, bytes)
}

#[inline]
fn pseudo_header(protocol: u8, source: &[u8; 16], destination: &[u8; 16], bytes: usize) -> Sum {
    let ends = Sum::MINUS_ZERO.with_words(source).with_words(destination);
    ends.with(protocol.into()).with_u32(bytes as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{read_u32, write_u16};

    #[test]
    fn sums_as_the_example_of_rfc_1071() {
        assert_eq!(compute(&[&[0x00, 0x01, 0xf2, 0x03], &[0xf4, 0xf5, 0xf6, 0xf7]]), !0xddf2);
    }

    #[test]
    fn sums_do_not_depend_on_the_word_size() {
        let bytes: Vec<u8> = (0..=255).cycle().take(1461).map(|byte: u8| byte ^ 0xa5).collect();
        for length in [0, 1, 2, 3, 4, 5, 6, 7, 8, 1460, 1461] {
            let bytes = &bytes[..length];
            let pairs = bytes.chunks(2).map(|pair| (pair[0], pair.get(1).copied().unwrap_or(0)));
            let words = pairs.map(|(high, low)| u16::from_be_bytes([high, low]));
            let by_words = words.fold(Sum::MINUS_ZERO, Sum::with);
            assert_eq!(Sum::MINUS_ZERO.with_words(bytes).fold(), by_words.fold(), "{length} bytes");
        }
        let all_ones = vec![0xff; 1 << 20];
        assert_eq!(Sum::MINUS_ZERO.with_words(&all_ones).checksum(), 0);
    }

    /// RFC 1624, 4: the example where RFC 1141's formula gives the other zero.
    #[test]
    fn updates_as_the_example_of_rfc_1624() {
        assert_eq!(updated(0xdd2f, &[0x55, 0x55], &[0x32, 0x85]), 0x0000);
    }

    /// The result is never +0, even for zeros only, like the kernel's sums.
    #[test]
    fn sums_are_never_plus_zero() {
        assert_eq!(updated(0xffff, &[0xff, 0xff], &[0, 0]), 0);
        assert_eq!(updated(0xffff, &[], &[]), 0);
        assert_eq!(compute(&[&[0, 0]]), 0);
    }

    #[test]
    fn an_update_equals_a_new_sum() {
        let mut words = [0x12, 0x34, 0xff, 0xff, 0x00, 0x00, 0x80, 0x01];
        let mut check = compute(&[&words]);
        for (at, value) in [(0, 0xffff), (2, 0x0000), (4, 0xfffe), (0, 0x0000), (6, 0x7fff)] {
            let before = words;
            write_u16(&mut words, at, value);
            let changed = at / 4 * 4;
            let [was, is] = [before, words].map(|words| read_u32(&words, changed));
            assert_eq!(word_updated(check, was, is), updated(check, &before, &words));
            check = updated(check, &before, &words);
            assert_eq!(check, compute(&[&words]), "{words:02x?}");
        }
    }

    #[test]
    fn updates_may_change_the_length() {
        let (long, short) = ([1, 2, 3, 4, 5, 6], [1, 2, 3, 4]);
        assert_eq!(updated(compute(&[&long]), &long, &short), compute(&[&short]));
        assert_eq!(updated(compute(&[&short]), &short, &long), compute(&[&long]));
    }
}

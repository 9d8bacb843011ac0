//! A pseudo-random byte stream for each flow. The receiver compares every byte, so that every run
//! shows that payload arrived unchanged and in order.
//!
//! All streams repeat one block of random bytes, each from its own offset. The length of the block
//! is a prime, so lost, duplicated or reordered segments are detected unless their number is a
//! multiple of it. Nothing is computed per byte at either end.

use std::sync::OnceLock;
use vcc_net::random::{GOLDEN, mix, nth};

/// The largest prime below 2^16.
const PERIOD_BYTES: usize = 65_521;
/// The most bytes that [`Stream::bytes`] returns.
pub const PIECE_MOST_BYTES: usize = 256 * 1024;
const WORD_BYTES: usize = 8;

/// The block, followed by its beginning, so that a piece from any offset is contiguous.
fn block() -> &'static [u8] {
    static BLOCK: OnceLock<Vec<u8>> = OnceLock::new();
    BLOCK.get_or_init(|| {
        let words = PERIOD_BYTES.div_ceil(WORD_BYTES) as u64;
        let words = (0..words).map(|word| nth(0, word));
        let mut block: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        block.truncate(PERIOD_BYTES);
        let again = block.clone();
        block.extend(again.into_iter().cycle().take(PIECE_MOST_BYTES));
        block
    })
}

/// The bytes of one flow.
#[derive(Debug, Clone, Copy)]
pub struct Stream {
    begin: u64,
}

impl Stream {
    /// Flows have different streams, and, with high probability, so do seeds.
    #[must_use]
    pub fn new(seed: u64, flow: usize) -> Self {
        // Modulo a prime, steps of any size visit every offset before they repeat.
        let apart_bytes = GOLDEN % PERIOD_BYTES as u64;
        let period_bytes = PERIOD_BYTES as u64;
        let begin = mix(seed) % period_bytes + flow as u64 % period_bytes * apart_bytes;
        Self { begin: begin % period_bytes }
    }

    /// The bytes of the stream from a position on, at most [`PIECE_MOST_BYTES`].
    #[must_use]
    pub fn bytes(&self, position: u64, bytes: usize) -> &'static [u8] {
        let at = ((self.begin + position % PERIOD_BYTES as u64) % PERIOD_BYTES as u64) as usize;
        &block()[at..at + bytes]
    }

    /// Whether these are the bytes of the stream from a position on.
    #[must_use]
    pub fn matches(&self, mut position: u64, data: &[u8]) -> bool {
        data.chunks(PIECE_MOST_BYTES).all(|piece| {
            let expected = self.bytes(position, piece.len());
            position += piece.len() as u64;
            piece == expected
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_same_however_it_is_cut() {
        let stream = Stream::new(5, 0);
        let whole: Vec<u8> =
            (0..4).flat_map(|i| stream.bytes(i * 50_000, 50_000)).copied().collect();
        for (from, to) in
            [(0, 1), (3, 4), (7, 9), (13, 60_999), (65_520, 65_522), (99_999, 160_000)]
        {
            assert_eq!(stream.bytes(from as u64, to - from), &whole[from..to]);
        }
        assert!(stream.matches(0, &whole));
        assert!(stream.matches(7, &whole[7..]));
    }

    #[test]
    fn notices_a_changed_a_moved_and_a_foreign_byte() {
        let stream = Stream::new(5, 0);
        let mut data = stream.bytes(100, 64).to_vec();
        assert!(stream.matches(100, &data));
        assert!(!stream.matches(101, &data));
        assert!(!Stream::new(6, 0).matches(100, &data));
        for flow in 1..1000 {
            assert!(!Stream::new(5, flow).matches(100, &data), "flow {flow}");
        }
        data[63] ^= 1;
        assert!(!stream.matches(100, &data));
    }

    #[test]
    fn notices_segments_that_are_missing() {
        let stream = Stream::new(5, 0);
        for segment_bytes in [536, 1448, 1460, 8948, 8960] {
            for segments in 1..1000 {
                let data = stream.bytes(segments * segment_bytes, 64);
                assert!(!stream.matches(0, data), "{segments} of {segment_bytes} bytes");
            }
        }
    }
}

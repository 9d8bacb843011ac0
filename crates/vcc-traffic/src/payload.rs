//! A pseudo-random stream for each flow: what arrives is compared with what must be at that
//! position, so that every run proves that payload came through unchanged and in order.

use crate::random::mix;

const WORD_BYTES: u64 = 8;
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The bytes of one flow.
#[derive(Debug, Clone, Copy)]
pub struct Stream {
    seed: u64,
}

impl Stream {
    /// Another seed or flow is another stream.
    pub fn new(seed: u64, flow: usize) -> Self {
        Self { seed: mix(seed ^ mix(flow as u64 + 1)) }
    }

    /// Writes the bytes of the stream from this position on.
    pub fn fill(&self, mut position: u64, mut buffer: &mut [u8]) {
        while !buffer.is_empty() {
            let word = mix(self.seed.wrapping_add((position / WORD_BYTES).wrapping_mul(GOLDEN)));
            let word = &word.to_le_bytes()[(position % WORD_BYTES) as usize..];
            let bytes = word.len().min(buffer.len());
            buffer[..bytes].copy_from_slice(&word[..bytes]);
            buffer = &mut buffer[bytes..];
            position += bytes as u64;
        }
    }

    /// Whether these are the bytes from this position on; `scratch` is at least as long.
    pub fn matches(&self, position: u64, data: &[u8], scratch: &mut [u8]) -> bool {
        let expected = &mut scratch[..data.len()];
        self.fill(position, expected);
        data == expected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_same_however_it_is_cut() {
        let stream = Stream::new(5, 0);
        let mut whole = [0; 1000];
        stream.fill(0, &mut whole);
        for (from, to) in [(0, 1), (3, 4), (7, 9), (8, 16), (13, 999)] {
            let mut part = vec![0; to - from];
            stream.fill(from as u64, &mut part);
            assert_eq!(part, whole[from..to]);
        }
    }

    #[test]
    fn notices_a_changed_a_moved_and_a_foreign_byte() {
        let stream = Stream::new(5, 0);
        let (mut data, mut scratch) = ([0; 64], [0; 64]);
        stream.fill(100, &mut data);
        assert!(stream.matches(100, &data, &mut scratch));
        assert!(!stream.matches(101, &data, &mut scratch));
        assert!(!Stream::new(5, 1).matches(100, &data, &mut scratch));
        assert!(!Stream::new(6, 0).matches(100, &data, &mut scratch));
        data[63] ^= 1;
        assert!(!stream.matches(100, &data, &mut scratch));
    }
}

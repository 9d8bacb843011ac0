//! Fields of fixed size.

pub(crate) fn part<const BYTES: usize>(bytes: &[u8], at: usize) -> [u8; BYTES] {
    let mut part = [0; BYTES];
    part.copy_from_slice(&bytes[at..at + BYTES]);
    part
}

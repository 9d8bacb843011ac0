//! Changes a card's state as whoever sends it may.

/// A line of a state, with another text in it and the right checksum behind.
pub fn edited(state: &[u8], from: &str, to: &str) -> Vec<u8> {
    let at = state.windows(from.len()).position(|part| part == from.as_bytes());
    let at = at.unwrap_or_else(|| panic!("no {from}"));
    let edited = [&state[..at], to.as_bytes(), &state[at + from.len()..]].concat();
    resealed(&edited)
}

pub fn resealed(state: &[u8]) -> Vec<u8> {
    let footer_at = state[..state.len() - 1].windows(9).rposition(|part| part == b"{\"crc32\":");
    let rest = &state[..footer_at.expect("a footer")];
    let footer = format!("{{\"crc32\":{}}}\n", crc32(rest));
    [rest, footer.as_bytes()].concat()
}

/// IEEE 802.3's, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg())
        })
    })
}

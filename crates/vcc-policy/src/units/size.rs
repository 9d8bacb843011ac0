//! Sizes in bytes, as operators write them.

use super::decimal::{self, Wrong};

/// Accepts a number of bytes, or of KiB, MiB or GiB with the suffix K, M or G.
pub fn parse(text: &str) -> Result<u32, String> {
    let (digits, shift) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 10),
        Some((at, 'M' | 'm')) => (&text[..at], 20),
        Some((at, 'G' | 'g')) => (&text[..at], 30),
        _ => (text, 0),
    };
    let bytes = decimal::times(digits, 1 << shift);
    if bytes == Err(Wrong::NoNumber) {
        return Err("a size is a number of bytes, with K, M or G for KiB, MiB or GiB".to_owned());
    }
    let bytes = bytes.ok().and_then(|bytes| u32::try_from(bytes).ok());
    bytes.ok_or_else(|| "must be less than 4G".to_owned())
}

/// In the largest unit that leaves a whole number.
pub fn display(bytes: u32) -> String {
    let unit = [("G", 30), ("M", 20), ("K", 10)]
        .into_iter()
        .find(|(_, shift)| bytes != 0 && bytes % (1u32 << shift) == 0);
    match unit {
        Some((letter, shift)) => format!("{}{letter}", bytes >> shift),
        None => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_as_they_are_read() {
        for text in ["0", "1448", "64K", "2M", "3G", "1025", "1025K"] {
            assert_eq!(display(parse(text).unwrap()), text);
        }
    }

    #[test]
    fn sizes_with_and_without_units() {
        assert_eq!(parse("1448"), Ok(1448));
        assert_eq!(parse("64K"), Ok(65_536));
        assert_eq!(parse("2m"), Ok(2 << 20));
        assert_eq!(parse("3G"), Ok(3 << 30));
        assert_eq!(parse("1.5M"), Ok(3 << 19));
        assert_eq!(parse("0.1K"), Ok(102));
        for bad in ["", "K", "2 M", "-1", "4G", "2MB", "1.M", "99999999999999999999", "é"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}

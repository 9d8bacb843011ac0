//! Rates in bits a second, as people write them.

use super::decimal::{self, Wrong};

/// Accepts a number of bit/s, or of kbit/s, Mbit/s or Gbit/s with K, M or G behind it.
pub fn parse(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 1_000),
        Some((at, 'M' | 'm')) => (&text[..at], 1_000_000),
        Some((at, 'G' | 'g')) => (&text[..at], 1_000_000_000),
        _ => (text, 1),
    };
    match decimal::times(digits, unit) {
        Err(Wrong::NoNumber) => {
            Err("a rate is a number of bits a second, with K, M or G behind it".to_owned())
        }
        // More than is admitted anywhere.
        Err(Wrong::TooLarge) => Ok(u64::MAX),
        Ok(bits_per_s) => Ok(bits_per_s),
    }
}

/// In the largest unit that leaves a whole number.
pub fn display(bits_per_s: u64) -> String {
    let unit = [("G", 1_000_000_000), ("M", 1_000_000), ("K", 1_000)]
        .into_iter()
        .find(|(_, unit)| bits_per_s != 0 && bits_per_s % unit == 0);
    match unit {
        Some((letter, unit)) => format!("{}{letter}", bits_per_s / unit),
        None => bits_per_s.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_shown_as_they_are_read() {
        for text in ["0", "9600", "64K", "10M", "2500M", "3G"] {
            assert_eq!(display(parse(text).unwrap()), text);
        }
    }

    #[test]
    fn rates_with_and_without_units() {
        assert_eq!(parse("9600"), Ok(9600));
        assert_eq!(parse("64k"), Ok(64_000));
        assert_eq!(parse("10M"), Ok(10_000_000));
        assert_eq!(parse("2.5G"), Ok(2_500_000_000));
        assert_eq!(parse("2.3G"), Ok(2_300_000_000));
        assert_eq!(parse("99999999999999999999G"), Ok(u64::MAX));
        for bad in ["", "G", "1 G", "-1", "inf", "1e9", "1Gbit", "1.2.3M", "é"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}

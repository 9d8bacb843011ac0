//! Rates in bit/s, as operators write them, and in the engine's bytes per millisecond.

use super::decimal::{self, Wrong};

/// Accepts a number of bit/s, or of kbit/s, Mbit/s or Gbit/s with the suffix K, M or G.
pub fn parse(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 1_000),
        Some((at, 'M' | 'm')) => (&text[..at], 1_000_000),
        Some((at, 'G' | 'g')) => (&text[..at], 1_000_000_000),
        _ => (text, 1),
    };
    match decimal::times(digits, unit) {
        Err(Wrong::NoNumber) => {
            Err("a rate is a number of bits per second, with K, M or G for thousands, millions or \
                 billions"
                .to_owned())
        }
        // Out of bounds everywhere.
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

const BITS_PER_S: u64 = 8 * 1000;

/// Converts a rate to the engine's unit: at least one byte per millisecond, at most 32 bits.
pub fn to_bytes_per_ms(bits_per_s: u64) -> Result<u32, String> {
    let rate = u32::try_from(bits_per_s / BITS_PER_S).ok().filter(|rate| *rate > 0);
    rate.ok_or_else(|| "must be 8K to 34000G".to_owned())
}

pub fn of_bytes_per_ms(bytes_per_ms: u32) -> u64 {
    u64::from(bytes_per_ms) * BITS_PER_S
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_one_byte_per_millisecond_to_what_32_bits_hold() {
        let bytes = |text: &str| to_bytes_per_ms(parse(text)?);
        assert_eq!(bytes("8K"), Ok(1));
        assert_eq!(bytes("100M"), Ok(12_500));
        for bad in ["0", "7999", "35000G"] {
            assert_eq!(bytes(bad), Err("must be 8K to 34000G".to_owned()), "{bad}");
        }
        assert_eq!(display(of_bytes_per_ms(12_500)), "100M");
    }

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

//! Decimal numbers, converted to whole multiples of a smallest unit.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    NoNumber,
    TooLarge,
}

/// `number` times `unit`, truncated; digits with an optional fraction, no sign or exponent.
pub(super) fn times(number: &str, unit: u64) -> Result<u64, Wrong> {
    /// Further fraction digits are ignored: the largest power of ten in 64 bits has this exponent.
    const MOST_DIGITS: usize = 19;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) {
        return Err(Wrong::NoNumber);
    }
    let digits = &fraction[..fraction.len().min(MOST_DIGITS)];
    let parts: u128 = digits.parse().map_err(|_| Wrong::NoNumber)?;
    let of_fraction = parts * u128::from(unit) / 10u128.pow(digits.len() as u32);
    whole
        .parse::<u64>()
        .ok()
        .and_then(|whole| whole.checked_mul(unit))
        .and_then(|product| product.checked_add(u64::try_from(of_fraction).ok()?))
        .ok_or(Wrong::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_to_the_last_unit() {
        for (number, unit, product) in [
            ("0", 1, 0),
            ("007", 10, 70),
            ("0.2", 1_000_000, 200_000),
            ("1.5", 1 << 20, 3 << 19),
            ("2.3", 1_000_000_000, 2_300_000_000),
            ("1.9999999999999999999999", 1000, 1999),
            ("0.9", 1, 0),
            ("18446744073709551615.0", 1, u64::MAX),
        ] {
            assert_eq!(times(number, unit), Ok(product), "{number}");
        }
        for bad in ["", ".", "1.", ".5", "1.2.3", "-1", "+1", "1e9", "inf", "1_000", " 1", "é"] {
            assert_eq!(times(bad, 1), Err(Wrong::NoNumber), "{bad}");
        }
        for large in ["18446744073709551616", "99999999999999999999999", "18446744073709551615.9"] {
            assert_eq!(times(large, 2), Err(Wrong::TooLarge), "{large}");
        }
    }
}

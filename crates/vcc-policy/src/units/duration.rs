//! Durations, as operators write them.

use super::decimal::{self, Wrong};

const UNITS: [(&str, u64); 6] = [
    ("us", 1),
    ("ms", 1_000),
    ("s", 1_000_000),
    ("min", 60_000_000),
    ("h", 3_600_000_000),
    ("d", 86_400_000_000),
];

/// Accepts a number with the suffix us, ms, s, min, h or d; returns microseconds.
pub fn parse(text: &str) -> Result<u64, String> {
    let wrong = || "a time is a number with a unit: us, ms, s, min, h or d".to_owned();
    let unit_at = text.find(char::is_alphabetic).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(unit_at);
    let (_, us) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
    decimal::times(number, *us).map_err(|why| match why {
        Wrong::NoNumber => wrong(),
        Wrong::TooLarge => "is too long".to_owned(),
    })
}

/// In the largest unit that leaves a whole number.
pub fn display(duration_us: u64) -> String {
    let whole = |(_, us): &&(&str, u64)| duration_us % us == 0;
    let (unit, us) = match duration_us {
        0 => UNITS[0],
        _ => *UNITS.iter().rev().find(whole).unwrap_or(&UNITS[0]),
    };
    format!("{}{unit}", duration_us / us)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_their_units() {
        for (text, us) in [
            ("200us", 200),
            ("10ms", 10_000),
            ("130s", 130_000_000),
            ("2min", 120_000_000),
            ("5d", 432_000_000_000),
            ("0.2s", 200_000),
            ("1.5d", 129_600_000_000),
        ] {
            assert_eq!(parse(text), Ok(us));
            assert_eq!(parse(&display(us)), Ok(us), "{text}");
        }
        assert_eq!(display(432_000_000_000), "5d");
        assert_eq!(display(1_500_000), "1500ms");
        for bad in ["", "10", "ms", "1.s", ".5s", "-1s", "10 ms", "5m", "é", "99999999999999999d"]
        {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}

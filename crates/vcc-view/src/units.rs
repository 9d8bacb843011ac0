//! Quantities with three significant digits and a unit. The page's script writes numbers by the same
//! [`Notation`]s, which it is sent.

use serde::Serialize;

/// How the numbers of a unit are written.
#[derive(Debug, Serialize)]
pub struct Notation {
    /// Units of growing size; each is `step` times the one before it.
    units: &'static [&'static str],
    step: f64,
    /// Between the number and the unit.
    separator: &'static str,
    /// The digits behind the point; None: three significant digits in all.
    decimals: Option<usize>,
    /// Whether a whole number of the smallest unit is written without a point.
    has_whole: bool,
    /// What follows a number that stands alone: one of them, and several.
    nouns: Option<[&'static str; 2]>,
}

const SCALED: Notation = Notation {
    units: &[""],
    step: 1000.0,
    separator: " ",
    decimals: None,
    has_whole: true,
    nouns: None,
};

/// Sizes are binary: 1 KiB is 1024 bytes.
pub static BYTES: Notation =
    Notation { units: &["B", "KiB", "MiB", "GiB", "TiB"], step: 1024.0, ..SCALED };

/// Rates are decimal: 1 kbit/s is 1000 bit/s.
pub static BITS_PER_S: Notation =
    Notation { units: &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"], ..SCALED };

pub static NS: Notation = Notation { units: &["ns", "us", "ms", "s"], ..SCALED };

pub static US: Notation = Notation { units: &["us", "ms", "s"], ..SCALED };

pub static PER_S: Notation = Notation { units: &["/s"], separator: "", has_whole: false, ..SCALED };

pub static WHOLE: Notation = Notation { separator: "", decimals: Some(0), ..SCALED };

/// A window may be a part of a segment.
pub static SEGS: Notation =
    Notation { separator: "", nouns: Some(["segment", "segments"]), ..SCALED };

pub static FRACTION: Notation = Notation { separator: "", decimals: Some(3), ..SCALED };

/// Of counts, where a page has little room for them.
pub static SHORT: Notation = Notation { units: &["", "k", "M", "G", "T"], separator: "", ..SCALED };

impl Notation {
    pub fn write(&self, value: f64) -> String {
        // A sum of nothing is -0.0.
        let mut value = value + 0.0;
        let mut at = 0;
        // A value that would be rounded up to a whole step has the next unit.
        while value >= self.step - 0.5 && at + 1 < self.units.len() {
            value /= self.step;
            at += 1;
        }
        let is_whole = self.has_whole && at == 0 && value.fract() == 0.0;
        let number = match self.decimals {
            Some(decimals) => format!("{value:.decimals$}"),
            None if is_whole => format!("{value}"),
            None => digits(value),
        };
        format!("{number}{}{}", self.separator, self.units[at])
    }

    pub fn is_of_integers(&self) -> bool {
        self.decimals == Some(0)
    }

    /// A number that stands alone.
    pub fn write_alone(&self, value: f64) -> String {
        let number = self.write(value);
        match self.nouns {
            Some([one, several]) => {
                format!("{number} {}", if value == 1.0 { one } else { several })
            }
            None => number,
        }
    }
}

pub fn bytes(bytes: f64) -> String {
    BYTES.write(bytes)
}

pub fn bit_rate(bits_per_s: f64) -> String {
    BITS_PER_S.write(bits_per_s)
}

pub fn duration(us: f64) -> String {
    US.write(us)
}

pub fn per_s(count: f64) -> String {
    PER_S.write(count)
}

fn digits(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        value if value < 9.995 => format!("{value:.2}"),
        value if value < 99.95 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_a_unit() {
        for (value, expected) in [
            (0.0, "0 B"),
            (7.0, "7 B"),
            (1000.0, "1000 B"),
            (1024.0, "1.00 KiB"),
            (14_400.0, "14.1 KiB"),
            (1023.4 * 1024.0, "1023 KiB"),
            (1023.6 * 1024.0, "1.00 MiB"),
            (3e15, "2728 TiB"),
        ] {
            assert_eq!(bytes(value), expected);
        }
        assert_eq!(bit_rate(9_412_000.0), "9.41 Mbit/s");
        assert_eq!((bit_rate(0.0), bit_rate(-0.0)), ("0 bit/s".into(), "0 bit/s".into()));
        assert_eq!(bit_rate(0.4), "0.40 bit/s");
        assert_eq!(bit_rate(999_600.0), "1.00 Mbit/s");
        assert_eq!(duration(250.0), "250 us");
        assert_eq!(duration(1250.0), "1.25 ms");
        assert_eq!(duration(9e7), "90.0 s");
        assert_eq!(
            (per_s(0.0), per_s(0.5), per_s(1234.0)),
            ("0/s".into(), "0.50/s".into(), "1234/s".into())
        );
        assert_eq!(
            (WHOLE.write(12_345.0), SHORT.write(12_345.0)),
            ("12345".into(), "12.3k".into())
        );
        assert_eq!((SHORT.write(999.0), FRACTION.write(0.25)), ("999".into(), "0.250".into()));
        assert_eq!(
            SEGS.write_alone(1.0) + ", " + &SEGS.write_alone(10.0),
            "1 segment, 10 segments"
        );
        assert_eq!(SEGS.write_alone(0.25), "0.25 segments");
    }
}

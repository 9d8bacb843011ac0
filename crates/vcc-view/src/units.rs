//! Quantities with three significant digits and a unit. The page formats its charts by the same
//! rules: page.js of vcc-web, which its tests hold to these.

/// Sizes are binary: 1 KiB is 1024 bytes.
pub fn bytes(bytes: f64) -> String {
    scaled(bytes, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB"])
}

/// Rates are decimal: 1 kbit/s is 1000 bit/s.
pub fn bit_rate(bits_per_s: f64) -> String {
    scaled(bits_per_s, 1000.0, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"])
}

pub fn duration(us: f64) -> String {
    scaled(us, 1000.0, &["us", "ms", "s"])
}

pub fn per_s(count: f64) -> String {
    format!("{}/s", digits(count))
}

fn scaled(value: f64, step: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut at = 0;
    // A value that would be rounded up to a whole step has the next unit.
    while value >= step - 0.5 && at + 1 < units.len() {
        value /= step;
        at += 1;
    }
    let is_whole = value.fract() == 0.0 && at == 0;
    let number = if is_whole { format!("{value}") } else { digits(value) };
    format!("{number} {}", units[at])
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
        assert_eq!(bit_rate(0.0), "0 bit/s");
        assert_eq!(bit_rate(0.4), "0.40 bit/s");
        assert_eq!(bit_rate(999_600.0), "1.00 Mbit/s");
        assert_eq!(duration(250.0), "250 us");
        assert_eq!(duration(1250.0), "1.25 ms");
        assert_eq!(duration(9e7), "90.0 s");
        assert_eq!(
            (per_s(0.0), per_s(0.5), per_s(1234.0)),
            ("0/s".into(), "0.50/s".into(), "1234/s".into())
        );
    }
}

//! Quantities as people read them: three digits that count, and a unit.

/// Decimal, as rates are.
pub fn bytes(bytes: f64) -> String {
    scaled(bytes, 1000.0, &["B", "kB", "MB", "GB", "TB"])
}

pub fn bit_rate(bits_per_s: f64) -> String {
    scaled(bits_per_s, 1000.0, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"])
}

pub fn duration(us: f64) -> String {
    scaled(us, 1000.0, &["us", "ms", "s"])
}

/// How often a second.
pub fn per_s(count: f64) -> String {
    if count == 0.0 { "0/s".to_owned() } else { format!("{}/s", digits(count)) }
}

fn scaled(value: f64, step: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut units = units.iter();
    let mut unit = units.next();
    // What would be rounded to a thousand is one of the next unit.
    while value >= step - 0.5 {
        let Some(next) = units.next() else { break };
        unit = Some(next);
        value /= step;
    }
    let is_whole = value.fract() == 0.0 && unit.is_some_and(|unit| ["B", "us"].contains(unit));
    let number = if is_whole { format!("{value}") } else { digits(value) };
    format!("{number} {}", unit.unwrap_or(&""))
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
        for (value, told) in [
            (0.0, "0 B"),
            (7.0, "7 B"),
            (999.0, "999 B"),
            (1000.0, "1.00 kB"),
            (14_400.0, "14.4 kB"),
            (999_400.0, "999 kB"),
            (999_600.0, "1.00 MB"),
            (2e15, "2000 TB"),
        ] {
            assert_eq!(bytes(value), told);
        }
        assert_eq!(bit_rate(9_412_000.0), "9.41 Mbit/s");
        assert_eq!(bit_rate(0.0), "0 bit/s");
        assert_eq!(duration(250.0), "250 us");
        assert_eq!(duration(1250.0), "1.25 ms");
        assert_eq!(duration(9e7), "90.0 s");
        assert_eq!(
            (per_s(0.0), per_s(0.5), per_s(1234.0)),
            ("0/s".into(), "0.50/s".into(), "1234/s".into())
        );
    }
}

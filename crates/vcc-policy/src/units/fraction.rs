//! Fractions from 0 to 1, in 1/1024.

/// A whole.
const ONE: f64 = 1024.0;

/// Accepts a decimal number.
pub fn parse(text: &str) -> Result<u32, String> {
    from_number(text.parse().unwrap_or(f64::NAN))
}

pub fn from_number(number: f64) -> Result<u32, String> {
    if (0.0..=1.0).contains(&number) {
        Ok((number * ONE).round() as u32)
    } else {
        Err("must be a number from 0 to 1".to_owned())
    }
}

/// The shortest number that is read as this fraction.
pub fn display(fraction: u32) -> String {
    let number = f64::from(fraction) / ONE;
    let mut texts = (0..4).map(|digits| format!("{number:.digits$}"));
    texts.find(|text| parse(text) == Ok(fraction)).unwrap_or_else(|| format!("{number:.4}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_from_0_to_1() {
        for (text, expected) in [("0", 0), ("0.5", 512), ("1", 1024), ("1.0", 1024), ("0.001", 1)] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
        for bad in ["", "half", "-0.1", "1.01", "nan", "inf"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn fractions_are_shown_as_they_are_read() {
        for text in ["0", "0.001", "0.25", "0.8", "0.75", "1"] {
            assert_eq!(display(parse(text).unwrap()), text);
        }
        for fraction in 0..=1024 {
            assert_eq!(parse(&display(fraction)), Ok(fraction));
        }
    }
}

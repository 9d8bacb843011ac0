//! A time on the command line.

use std::str::FromStr;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Since(Timestamp);

impl Since {
    pub fn unix_s(self) -> f64 {
        self.0.as_millisecond() as f64 / 1e3
    }

    fn parse(text: &str, now: &Zoned) -> Option<Self> {
        if let Ok(span) = text.parse::<Span>() {
            let before = !span.is_negative() && !text.starts_with(['P', '+', '-']);
            return before
                .then(|| now.checked_sub(span).ok())
                .flatten()
                .map(|at| Self(at.timestamp()));
        }
        let at: DateTime = text.strip_suffix('Z').unwrap_or(text).parse().ok()?;
        at.to_zoned(TimeZone::UTC).ok().map(|at| Self(at.timestamp()))
    }
}

impl FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text, &Timestamp::now().to_zoned(TimeZone::UTC)).ok_or_else(|| {
            "must be a time before now, as 90s, 30m, 24h or 7d, or a time in UTC, as 2026-11-29 or \
             2026-11-29T13:00"
                .to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_before_now_or_in_utc() {
        const NOW_S: i64 = 1_800_000_000;
        let now = Timestamp::from_second(NOW_S).expect("a time").to_zoned(TimeZone::UTC);
        let parsed = |text| Since::parse(text, &now).map(|since| since.unix_s() as i64);
        for (text, unix_s) in [
            ("90s", NOW_S - 90),
            ("30m", NOW_S - 1_800),
            ("24h", NOW_S - 86_400),
            ("7d", NOW_S - 604_800),
            ("1970-01-01", 0),
            ("2000-02-29", 951_782_400),
            ("2026-11-29T13:05", 1_795_957_500),
            ("2026-11-29 13:05Z", 1_795_957_500),
        ] {
            assert_eq!(parsed(text), Some(unix_s), "{text}");
        }
        for text in ["", "h", "-1h", "yesterday", "2026-13-01", "2026-02-29", "2026-11-29T24:00"] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }
}

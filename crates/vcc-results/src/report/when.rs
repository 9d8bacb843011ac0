//! Times as people write them.

const DAY_S: u64 = 24 * 60 * 60;

/// The date and the minute, in UTC; none for a clock that was not set.
pub fn utc(unix_s: u64) -> Option<String> {
    if unix_s == 0 {
        return None;
    }
    let (year, month, day) = date(unix_s / DAY_S);
    let minutes = unix_s % DAY_S / 60;
    Some(format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", minutes / 60, minutes % 60))
}

/// Likewise, in words for a clock that was not set.
pub fn utc_or_unknown(unix_s: u64) -> String {
    utc(unix_s).unwrap_or_else(|| "an unknown day".into())
}

/// The day alone of such a time.
pub fn day(time: &str) -> &str {
    time.split(' ').next().filter(|day| day.contains('-')).unwrap_or(time)
}

/// Civil date of a day number since 1970-01-01. Years are counted from March, so that a leap day
/// comes last: https://howardhinnant.github.io/date_algorithms.html#civil_from_days
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let written = [1, 951_782_399, 951_868_800, 1_709_164_800, 4_102_444_799].map(utc);
        let expected = [
            "1970-01-01 00:00 UTC",
            "2000-02-28 23:59 UTC",
            "2000-03-01 00:00 UTC",
            "2024-02-29 00:00 UTC",
            "2099-12-31 23:59 UTC",
        ];
        assert_eq!(written, expected.map(|date| Some(date.to_owned())));
        assert_eq!(utc(0), None);
    }

    #[test]
    fn a_clock_that_was_not_set_has_no_day() {
        assert_eq!(day(&utc_or_unknown(1_709_164_800)), "2024-02-29");
        assert_eq!(day(&utc_or_unknown(0)), "an unknown day");
    }
}

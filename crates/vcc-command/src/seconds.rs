//! Times on the command line.

use std::ops::RangeInclusive;
use std::time::Duration;

pub fn from_a_tenth(text: &str) -> Result<Duration, String> {
    within(text, 0.1..=86_400.0, "0.1 or more")
}

pub fn from_a_hundredth(text: &str) -> Result<Duration, String> {
    within(text, 0.01..=86_400.0, "0.01 or more")
}

pub fn from_zero(text: &str) -> Result<Duration, String> {
    within(text, 0.0..=1e9, "0 or more")
}

pub fn up_to_a_minute(text: &str) -> Result<Duration, String> {
    within(text, 0.1..=60.0, "0.1 to 60")
}

fn within(text: &str, range: RangeInclusive<f64>, bounds: &str) -> Result<Duration, String> {
    text.parse()
        .ok()
        .filter(|seconds| range.contains(seconds))
        .map(Duration::from_secs_f64)
        .ok_or_else(|| format!("must be a number of seconds, {bounds}"))
}

//! Times in JSON.

use std::time::{SystemTime, UNIX_EPOCH};

pub fn unix_ms(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_millis().try_into().unwrap_or(u64::MAX)
}

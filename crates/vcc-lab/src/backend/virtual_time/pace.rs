//! Wall-clock time per virtual second.

use crate::base::progress::VirtualTime;
use std::time::Duration;

/// Averaging interval: long enough to be steady, short enough to follow the guests.
const LOOK_BACK: Duration = Duration::from_secs(2);

/// Wall-clock time per virtual second, over the last interval.
pub(super) struct Pace {
    end_ns: u64,
    /// (wall, virtual ns) at the end of the previous interval, and at that of the last one.
    before: (Duration, u64),
    last: (Duration, u64),
}

impl Pace {
    pub fn until(end_ns: u64) -> Self {
        Self { end_ns, before: (Duration::ZERO, 0), last: (Duration::ZERO, 0) }
    }

    /// The progress at this wall-clock and virtual time.
    pub fn at(&mut self, wall: Duration, now_ns: u64) -> VirtualTime {
        if wall - self.last.0 >= LOOK_BACK {
            self.before = std::mem::replace(&mut self.last, (wall, now_ns));
        }
        let (wall_s, virtual_s) =
            ((wall - self.before.0).as_secs_f64(), seconds(now_ns - self.before.1));
        VirtualTime {
            now_s: seconds(now_ns),
            end_s: seconds(self.end_ns),
            wall_s: wall.as_secs_f64(),
            wall_s_each: if virtual_s > 0.0 { wall_s / virtual_s } else { 0.0 },
        }
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The guests boot fast, and then take 4 s for each of theirs.
    #[test]
    fn what_was_long_ago_counts_no_more() {
        let mut pace = Pace::until(10_000_000_000);
        let mut at = |wall_ms, virtual_ms: u64| {
            pace.at(Duration::from_millis(wall_ms), virtual_ms * 1_000_000)
        };
        assert_eq!(at(0, 0).left_s(), 0.0);
        assert_eq!(at(500, 1000).wall_s_each, 0.5);
        for wall_ms in (600..9000).step_by(100) {
            at(wall_ms, 1000 + (wall_ms - 500) / 4);
        }
        let now = at(8500 + 500, 1000 + 8500 / 4);
        assert!((now.wall_s_each - 4.0).abs() < 0.01, "{now:?}");
        assert!((now.left_s() - 4.0 * (9.0 - 8.5 / 4.0)).abs() < 0.1, "{now:?}");
        assert_eq!((now.end_s, now.wall_s), (10.0, 9.0));
    }
}

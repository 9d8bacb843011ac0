//! How long measurements take.

use std::fmt;

use vcc_results::result::Backend;

/// How long a measurement takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Time {
    /// As long as the last one.
    Measured(f64),
    /// Not recorded; in real time, at least the sum of all runs.
    Scheduled(f64),
    /// Not recorded; the sum of all runs in virtual time, or 0.
    Unknown { virtual_s: f64 },
}

impl Time {
    /// `wall_s`: what the record took, if there is one; `scheduled_s`: the length of all runs by
    /// their own clock.
    pub fn expected(wall_s: Option<f64>, backend: Backend, scheduled_s: f64) -> Self {
        match (wall_s, backend) {
            (Some(seconds), _) => Self::Measured(seconds),
            (None, Backend::Live) => Self::Scheduled(scheduled_s),
            (None, Backend::Virtual) => Self::Unknown { virtual_s: scheduled_s },
        }
    }

    pub fn seconds(self) -> Option<f64> {
        match self {
            Self::Measured(seconds) | Self::Scheduled(seconds) => Some(seconds),
            Self::Unknown { .. } => None,
        }
    }

    /// Of two measurements, the one with the lesser value is made first.
    pub fn order(self) -> f64 {
        const AFTER_ALL_KNOWN: f64 = 1e12;
        match self {
            Self::Measured(seconds) | Self::Scheduled(seconds) => seconds,
            Self::Unknown { virtual_s } => AFTER_ALL_KNOWN + virtual_s,
        }
    }
}

impl fmt::Display for Time {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Measured(seconds) => out.write_str(&minutes(*seconds)),
            Self::Scheduled(seconds) => write!(out, "at least {}", minutes(*seconds)),
            Self::Unknown { virtual_s } if *virtual_s > 0.0 => {
                write!(out, "{} virtual", minutes(*virtual_s))
            }
            Self::Unknown { .. } => out.write_str("unknown"),
        }
    }
}

/// For people.
pub fn minutes(seconds: f64) -> String {
    let whole = (seconds / 60.0).round() as u64;
    match whole {
        0 | 1 => format!("{seconds:.0} s"),
        2..120 => format!("{whole} min"),
        _ => format!("{} h {} min", whole / 60, whole % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_for_people() {
        let texts = [5.0, 90.0, 89.0, 600.0, 7140.0, 7200.0].map(minutes);
        assert_eq!(texts, ["5 s", "2 min", "89 s", "10 min", "119 min", "2 h 0 min"]);
        let of =
            |wall_s, backend, scheduled_s| Time::expected(wall_s, backend, scheduled_s).to_string();
        assert_eq!(of(Some(44.0), Backend::Live, 600.0), "44 s");
        assert_eq!(of(None, Backend::Live, 600.0), "at least 10 min");
        assert_eq!(of(None, Backend::Virtual, 12.0), "12 s virtual");
        assert_eq!(Time::Unknown { virtual_s: 0.0 }.to_string(), "unknown");
    }
}

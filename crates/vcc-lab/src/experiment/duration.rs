//! `[duration]` of an experiment's file: how long to measure, and how often.

use super::problem::{Problem, field};
use serde::Deserialize;
use vcc_results::result::Schedule;

/// Of experiments without phases.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Duration {
    #[serde(default)]
    warm_up_s: f64,
    measured_s: f64,
    runs: u32,
    quick: Quick,
}

/// For a short look.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quick {
    #[serde(default)]
    warm_up_s: f64,
    measured_s: f64,
    runs: u32,
}

impl Duration {
    pub fn schedule(&self, quick: bool) -> Schedule {
        let Self { warm_up_s, measured_s, runs, .. } = *self;
        if quick { self.quick.schedule() } else { Schedule { warm_up_s, measured_s, runs } }
    }

    pub fn check(&self) -> Result<(), Problem> {
        check(&self.schedule(false), &self.schedule(true))
    }
}

impl Quick {
    pub fn schedule(&self) -> Schedule {
        let Self { warm_up_s, measured_s, runs } = *self;
        Schedule { warm_up_s, measured_s, runs }
    }
}

/// Of an experiment's full schedule and its quick one.
pub fn check(full: &Schedule, quick: &Schedule) -> Result<(), Problem> {
    let positive = [
        (field!["duration", "measured_s"], full.measured_s),
        (field!["duration", "runs"], f64::from(full.runs)),
        (field!["duration", "quick", "measured_s"], quick.measured_s),
        (field!["duration", "quick", "runs"], f64::from(quick.runs)),
    ];
    let wrong = positive.into_iter().find(|(_, value)| value.is_nan() || *value <= 0.0);
    wrong.map_or(Ok(()), |(at, _)| Err(Problem::new(at, "must be more than 0")))
}

//! `[duration]` of an experiment's file: how long to measure, and how often.

use super::bounded::Phases;
use super::problem::{Problem, field};
use serde::Deserialize;
use vcc_results::result::Schedule;

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Duration {
    #[serde(default)]
    warm_up_s: Option<f64>,
    measured_s: f64,
    runs: u32,
    /// Equal parts of the measured time, in which flows can join and leave.
    #[serde(default)]
    phases: Option<Phases>,
    quick: Quick,
}

/// For a short look.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Quick {
    #[serde(default)]
    warm_up_s: f64,
    measured_s: f64,
    runs: u32,
}

impl Duration {
    pub fn schedule(&self, quick: bool) -> Schedule {
        if quick {
            let Quick { warm_up_s, measured_s, runs } = self.quick;
            return Schedule { warm_up_s, measured_s, runs };
        }
        let Self { warm_up_s, measured_s, runs, .. } = *self;
        Schedule { warm_up_s: warm_up_s.unwrap_or(0.0), measured_s, runs }
    }

    pub fn phases(&self) -> u32 {
        self.phases.map_or(1, Phases::get)
    }

    pub fn check(&self) -> Result<(), Problem> {
        let (full, quick) = (self.schedule(false), self.schedule(true));
        let positive = [
            (field!["duration", "measured_s"], full.measured_s),
            (field!["duration", "runs"], f64::from(full.runs)),
            (field!["duration", "quick", "measured_s"], quick.measured_s),
            (field!["duration", "quick", "runs"], f64::from(quick.runs)),
        ];
        let wrong = positive.into_iter().find(|(_, value)| value.is_nan() || *value <= 0.0);
        wrong.map_or(Ok(()), |(at, _)| Err(Problem::new(at, "must be more than 0")))
    }

    /// For kinds that need a warm-up.
    pub fn require_warm_up(&self) -> Result<(), Problem> {
        match self.warm_up_s {
            Some(_) => Ok(()),
            None => Err(Problem::new(field!["duration"], "missing field `warm_up_s`")),
        }
    }

    /// For kinds whose flows neither join nor leave.
    pub fn refuse_phases(&self) -> Result<(), Problem> {
        match self.phases {
            None => Ok(()),
            Some(_) => {
                let text = "leave it out: only flows on a network have phases";
                Err(Problem::new(field!["duration", "phases"], text))
            }
        }
    }
}

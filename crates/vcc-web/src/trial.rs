//! What `vcc trial` would have shown of the last minute.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use vcc_view::FlowView;
use vcc_view::trial::{Sums, Tally};

/// A trial ends after this time, and the next one begins: connections that have ended are
/// forgotten.
const LASTS: Duration = Duration::from_secs(60);

#[derive(Default)]
pub struct Trials {
    began: Option<Instant>,
    tally: Tally,
    /// The last trial that is over; as long as there is none, the present one.
    shown: Option<Arc<TrialView>>,
    is_shown_over: bool,
}

#[derive(Serialize)]
pub struct TrialView {
    lasted_s: f64,
    reads: u64,
    total: Sums,
    pub(crate) ports: Vec<Sums>,
    conclusion: String,
}

impl Trials {
    /// None if no connection was in shadow mode.
    pub fn enter(&mut self, flows: &[FlowView], now: Instant) -> Option<Arc<TrialView>> {
        let elapsed = now.duration_since(*self.began.get_or_insert(now));
        self.tally.note(elapsed, flows);
        let is_over = elapsed >= LASTS;
        if is_over || !self.is_shown_over {
            self.shown = TrialView::new(&self.tally).map(Arc::new);
        }
        if is_over {
            self.is_shown_over = self.shown.is_some();
            (self.began, self.tally) = (Some(now), Tally::default());
            self.tally.note(Duration::ZERO, flows);
        }
        self.shown.clone()
    }
}

impl TrialView {
    fn new(tally: &Tally) -> Option<Self> {
        let total = (!tally.is_empty()).then(|| tally.total())?;
        Some(Self {
            lasted_s: tally.lasted.as_secs_f64(),
            reads: tally.reads,
            conclusion: total.conclusion(),
            total,
            ports: tally.by(|watch| Some(&watch.port)),
        })
    }
}

#[cfg(test)]
mod tests {
    use vcc_view::testing::shadow_flow;

    use super::*;

    /// The marks and the duration of the trial that is shown, after reads with so many marks.
    fn shown(reads: &[(u64, Option<u32>)]) -> Option<(u64, f64)> {
        let (mut trials, begin) = (Trials::default(), Instant::now());
        let enter = |(second, marks): &(u64, Option<u32>)| {
            let flows = marks.map(|marks| shadow_flow("tap2", 1000, 28_800, marks));
            trials.enter(flows.as_slice(), begin + Duration::from_secs(*second))
        };
        let view = reads.iter().map(enter).last()??;
        assert_eq!(view.total.marks, view.ports[0].marks);
        assert!(view.conclusion.contains("1 of 1 connections"), "{}", view.conclusion);
        Some((view.total.marks, view.lasted_s))
    }

    #[test]
    fn a_trial_lasts_a_minute_and_the_last_one_is_shown() {
        let one = |second: u64| (second, Some(second as u32));
        assert_eq!(shown(&[(0, None), (1, None)]), None);
        assert_eq!(shown(&[one(0), one(20)]), Some((20, 20.0)));
        assert_eq!(shown(&[one(0), one(60)]), Some((60, 60.0)));
        assert_eq!(shown(&[one(0), one(60), one(100)]), Some((60, 60.0)));
        // The next one begins with the last read of the one before.
        assert_eq!(shown(&[one(0), one(60), one(100), one(121)]), Some((61, 61.0)));
        assert_eq!(shown(&[one(0), one(60), (61, None), (120, None), (180, None)]), None);
        // The first one that has anything is shown before it is over.
        assert_eq!(shown(&[(0, None), (60, None), one(70), one(75)]), Some((5, 15.0)));
    }
}

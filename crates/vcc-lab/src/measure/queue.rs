//! The queue at the bottleneck.

use super::{Measure, Needs, View};
use crate::fabric::LinkReport;

/// Weighted by time.
pub(super) const MEAN_BYTES: Measure =
    Measure { name: "queue_mean_bytes", needs: Needs::Nothing, compute: mean_bytes };

pub(super) const MARKS: Measure = Measure { name: "marks", needs: Needs::Nothing, compute: marks };

pub(super) const DROPS: Measure = Measure { name: "drops", needs: Needs::Nothing, compute: drops };

fn bottleneck<'a>(view: &View<'a>) -> &'a LinkReport {
    &view.data.emulator.links[view.data.bottleneck]
}

fn mean_bytes(view: &View) -> Option<f64> {
    Some(bottleneck(view).queue_mean_bytes)
}

fn marks(view: &View) -> Option<f64> {
    Some(bottleneck(view).counters.marks as f64)
}

fn drops(view: &View) -> Option<f64> {
    Some(bottleneck(view).counters.drops() as f64)
}

//! The queue at the bottleneck.

use super::{Measure, View};
use crate::fabric::LinkReport;

/// Weighted by time.
pub(super) const MEAN_BYTES: Measure = Measure::plain("queue_mean_bytes", mean_bytes);

pub(super) const MARKS: Measure = Measure::plain("marks", marks);

pub(super) const DROPS: Measure = Measure::plain("drops", drops);

/// Of frames that could have been marked.
pub(super) const DROPS_ECT: Measure = Measure::plain("drops_ect", drops_ect);

/// Of all frames that came to the bottleneck.
pub(super) const DROP_SHARE: Measure = Measure::plain("drop_share", drop_share);

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

fn drops_ect(view: &View) -> Option<f64> {
    Some(bottleneck(view).counters.drops_ect as f64)
}

fn drop_share(view: &View) -> Option<f64> {
    let counters = &bottleneck(view).counters;
    let drops = counters.drops() as f64;
    Some(drops / (drops + counters.packets as f64))
}

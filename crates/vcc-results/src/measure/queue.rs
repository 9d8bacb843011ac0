//! The queue at the bottleneck, and the drops of all queues.

use super::{Measure, View};
use vcc_fabric::LinkReport;

/// Weighted by time.
pub(super) const MEAN_BYTES: Measure =
    Measure::plain("queue_mean_bytes", "the bottleneck's queue: time-weighted mean", mean_bytes);

pub(super) const MARKS: Measure =
    Measure::plain("marks", "frames that the bottleneck marked", marks);

pub(super) const DROPS: Measure =
    Measure::plain("drops", "frames that the bottleneck dropped", drops);

/// Drops of ECN-capable frames.
pub(super) const DROPS_ECT: Measure =
    Measure::plain("drops_ect", "ECN-capable frames that the bottleneck dropped", drops_ect);

/// Dropped frames as a share of all that reached the bottleneck.
pub(super) const DROP_SHARE: Measure = Measure::plain(
    "drop_share",
    "frames that the bottleneck dropped, as a share of all that reached it",
    drop_share,
);

/// By all queues of the network.
pub(super) const DROPS_EVERYWHERE: Measure =
    Measure::plain("drops_everywhere", "frames that all queues dropped", drops_everywhere);

/// Dropped frames as a share of all that reached a queue.
pub(super) const DROP_SHARE_EVERYWHERE: Measure = Measure::plain(
    "drop_share_everywhere",
    "frames that all queues dropped, as a share of all that reached one",
    drop_share_everywhere,
);

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
    Some(share_of(std::slice::from_ref(bottleneck(view))))
}

fn drops_everywhere(view: &View) -> Option<f64> {
    Some(drops_of(&view.data.emulator.links))
}

fn drop_share_everywhere(view: &View) -> Option<f64> {
    Some(share_of(&view.data.emulator.links))
}

fn drops_of(links: &[LinkReport]) -> f64 {
    links.iter().map(|link| link.counters.drops()).sum::<u64>() as f64
}

fn share_of(links: &[LinkReport]) -> f64 {
    let passed: u64 = links.iter().map(|link| link.counters.packets).sum();
    let drops = drops_of(links);
    drops / (drops + passed as f64)
}

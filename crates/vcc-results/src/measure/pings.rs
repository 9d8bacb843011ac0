//! Round-trip times of guests' pings.

use super::{Measure, Needs, Takes, View};
use crate::result::Pings;
use crate::result::statistics::percentile_of;

const fn ping(
    name: &'static str,
    text: &'static str,
    compute: fn(&View) -> Option<f64>,
) -> Measure {
    Measure::plain(name, text, compute).needing(Needs::Of).taking(Takes::Pings)
}

pub(super) const MIN_US: Measure = ping(
    "ping_min_us",
    "round-trip time of the guests' pings, both hosts' stacks included: minimum",
    |view| rtt_us(view, 0.0),
)
.by_phase();

pub(super) const P50_US: Measure =
    ping("ping_p50_us", "round-trip time of the guests' pings: median", |view| rtt_us(view, 0.5))
        .by_phase();

pub(super) const P99_US: Measure =
    ping("ping_p99_us", "round-trip time of the guests' pings: 99th percentile", |view| {
        rtt_us(view, 0.99)
    })
    .by_phase();

/// With fewer than 1000 pings this is their maximum.
pub(super) const P999_US: Measure =
    ping("ping_p999_us", "round-trip time of the guests' pings: 99.9th percentile", |view| {
        rtt_us(view, 0.999)
    })
    .by_phase();

pub(super) const MAX_US: Measure =
    ping("ping_max_us", "round-trip time of the guests' pings: maximum", |view| rtt_us(view, 1.0))
        .by_phase();

/// Requests without an answer, as a share of all.
pub(super) const LOST: Measure =
    ping("pings_lost", "pings without an answer, as a share of all", lost);

fn pings<'a>(view: &'a View) -> impl Iterator<Item = &'a Pings> {
    view.data.pings.iter().filter(|pings| view.is_of(pings.guest))
}

fn rtt_us(view: &View, share: f64) -> Option<f64> {
    let samples = pings(view).flat_map(|pings| &pings.samples);
    let samples = samples.filter(|sample| view.contains(sample.at_us));
    percentile_of(samples.map(|sample| sample.rtt_ns as f64 / 1e3), share)
}

fn lost(view: &View) -> Option<f64> {
    let sent: u64 = pings(view).map(|pings| pings.sent).sum();
    let answered: usize = pings(view).map(|pings| pings.samples.len()).sum();
    Some(1.0 - answered as f64 / sent as f64)
}

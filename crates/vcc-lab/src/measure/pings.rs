//! Round-trip times of guests' pings.

use super::{Measure, Needs, View, percentile};
use crate::run::Pings;

const fn ping(name: &'static str, compute: fn(&View) -> Option<f64>) -> Measure {
    Measure::plain(name, compute).needing(Needs::Of)
}

pub(super) const MIN_US: Measure = ping("ping_min_us", min_us).by_phase();

pub(super) const P50_US: Measure = ping("ping_p50_us", p50_us).by_phase();

pub(super) const P99_US: Measure = ping("ping_p99_us", p99_us).by_phase();

/// Of less than 1000 pings it is their maximum.
pub(super) const P999_US: Measure = ping("ping_p999_us", p999_us).by_phase();

pub(super) const MAX_US: Measure = ping("ping_max_us", max_us).by_phase();

/// Requests without an answer, as a share of all.
pub(super) const LOST: Measure = ping("pings_lost", lost);

fn min_us(view: &View) -> Option<f64> {
    rtts_us(view).first().copied()
}

fn p50_us(view: &View) -> Option<f64> {
    percentile(&rtts_us(view), 0.5)
}

fn p99_us(view: &View) -> Option<f64> {
    percentile(&rtts_us(view), 0.99)
}

fn p999_us(view: &View) -> Option<f64> {
    percentile(&rtts_us(view), 0.999)
}

fn max_us(view: &View) -> Option<f64> {
    rtts_us(view).last().copied()
}

fn pings<'a>(view: &'a View) -> impl Iterator<Item = &'a Pings> {
    view.data.pings.iter().filter(|pings| view.of.contains(&pings.guest))
}

/// In the order of their length.
fn rtts_us(view: &View) -> Vec<f64> {
    let samples = pings(view).flat_map(|pings| &pings.samples);
    let samples = samples.filter(|sample| view.contains(sample.at_us));
    let mut rtts_us: Vec<f64> = samples.map(|sample| sample.rtt_ns as f64 / 1e3).collect();
    rtts_us.sort_by(f64::total_cmp);
    rtts_us
}

fn lost(view: &View) -> Option<f64> {
    let sent: u64 = pings(view).map(|pings| pings.sent).sum();
    let answered: usize = pings(view).map(|pings| pings.samples.len()).sum();
    Some(1.0 - answered as f64 / sent as f64)
}

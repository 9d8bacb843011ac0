//! Transfers over connections of their own: how long each took, from asking for the connection to
//! the last byte at the receiver. Papers call it the flow completion time.

use super::{Measure, View, percentile};
use crate::traffic::Transfer;

pub(super) const COUNT: Measure = Measure::plain("transfers", count);

pub(super) const FCT_P10_US: Measure = Measure::plain("fct_p10_us", p10_us);

pub(super) const FCT_P50_US: Measure = Measure::plain("fct_p50_us", p50_us);

pub(super) const FCT_P90_US: Measure = Measure::plain("fct_p90_us", p90_us);

pub(super) const FCT_P99_US: Measure = Measure::plain("fct_p99_us", p99_us);

/// Of less than 1000 transfers it is their maximum.
pub(super) const FCT_P999_US: Measure = Measure::plain("fct_p999_us", p999_us);

/// Median of each transfer's own throughput.
pub(super) const P50_MBPS: Measure = Measure::plain("transfer_p50_mbps", p50_mbps);

fn transfers<'a>(view: &'a View) -> impl Iterator<Item = &'a Transfer> {
    let all = view.flows(&view.of).flat_map(|flow| &flow.transfers);
    all.filter(|transfer| transfer.bytes <= view.most_bytes)
}

fn count(view: &View) -> Option<f64> {
    Some(transfers(view).count() as f64)
}

fn p10_us(view: &View) -> Option<f64> {
    fct_us(view, 0.1)
}

fn p50_us(view: &View) -> Option<f64> {
    fct_us(view, 0.5)
}

fn p90_us(view: &View) -> Option<f64> {
    fct_us(view, 0.9)
}

fn p99_us(view: &View) -> Option<f64> {
    fct_us(view, 0.99)
}

fn p999_us(view: &View) -> Option<f64> {
    fct_us(view, 0.999)
}

fn fct_us(view: &View, share: f64) -> Option<f64> {
    let mut took_us: Vec<f64> = transfers(view).map(|it| it.took_ns as f64 / 1e3).collect();
    took_us.sort_by(f64::total_cmp);
    percentile(&took_us, share)
}

fn p50_mbps(view: &View) -> Option<f64> {
    let mut mbps: Vec<f64> = transfers(view).map(Transfer::mbps).collect();
    mbps.sort_by(f64::total_cmp);
    percentile(&mbps, 0.5)
}

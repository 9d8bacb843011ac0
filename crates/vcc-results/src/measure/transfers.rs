//! Transfers over connections of their own: how long each took, from asking for the connection to
//! the last byte at the receiver. Papers call it the flow completion time.

use super::{Measure, Takes, View};
use crate::result::statistics::percentile_of;
use vcc_traffic::Transfer;

const fn transfer(
    name: &'static str,
    text: &'static str,
    compute: fn(&View) -> Option<f64>,
) -> Measure {
    Measure::plain(name, text, compute).taking(Takes::Transfers)
}

pub(super) const COUNT: Measure =
    transfer("transfers", "completed transfers and messages", |view| {
        Some(transfers(view).count() as f64)
    });

pub(super) const FCT_P10_US: Measure = transfer(
    "fct_p10_us",
    "flow completion time, from connecting or sending to the last byte at the receiver: 10th percentile",
    |view| fct_us(view, 0.1),
);

pub(super) const FCT_P50_US: Measure =
    transfer("fct_p50_us", "flow completion time: median", |view| fct_us(view, 0.5));

pub(super) const FCT_P90_US: Measure =
    transfer("fct_p90_us", "flow completion time: 90th percentile", |view| fct_us(view, 0.9));

pub(super) const FCT_P99_US: Measure =
    transfer("fct_p99_us", "flow completion time: 99th percentile", |view| fct_us(view, 0.99));

/// With fewer than 1000 transfers this is their maximum.
pub(super) const FCT_P999_US: Measure =
    transfer("fct_p999_us", "flow completion time: 99.9th percentile", |view| fct_us(view, 0.999));

/// Median of each transfer's own throughput.
pub(super) const P50_MBPS: Measure =
    transfer("transfer_p50_mbps", "median of the transfers' throughputs", |view| {
        percentile_of(transfers(view).map(Transfer::mbps), 0.5)
    });

fn transfers<'a>(view: &'a View) -> impl Iterator<Item = &'a Transfer> {
    let all = view.flows(&view.of).flat_map(|flow| &flow.transfers);
    all.filter(|transfer| transfer.bytes <= view.most_bytes)
}

fn fct_us(view: &View, share: f64) -> Option<f64> {
    percentile_of(transfers(view).map(|transfer| transfer.took_ns as f64 / 1e3), share)
}

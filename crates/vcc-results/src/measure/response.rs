//! Responses to ping-pongs and requests over TCP.

use super::{Measure, Takes, View};
use crate::result::statistics::percentile_of;

const fn response(
    name: &'static str,
    text: &'static str,
    compute: fn(&View) -> Option<f64>,
) -> Measure {
    Measure::plain(name, text, compute).taking(Takes::Responses).by_phase()
}

pub(super) const PER_S: Measure =
    Measure::plain("responses_per_s", "requests answered in a second", |view| {
        let answered: u64 = view.flows(&view.of).map(|flow| flow.answered).sum();
        Some(answered as f64 / view.seconds())
    })
    .taking(Takes::Responses);

pub(super) const MIN_US: Measure =
    response("response_min_us", "response time of ping-pongs and requests: minimum", |view| {
        us(view, 0.0)
    });

pub(super) const P50_US: Measure =
    response("response_p50_us", "response time of ping-pongs and requests: median", |view| {
        us(view, 0.5)
    });

pub(super) const P90_US: Measure = response(
    "response_p90_us",
    "response time of ping-pongs and requests: 90th percentile",
    |view| us(view, 0.9),
);

pub(super) const P99_US: Measure = response(
    "response_p99_us",
    "response time of ping-pongs and requests: 99th percentile",
    |view| us(view, 0.99),
);

pub(super) const P999_US: Measure = response(
    "response_p999_us",
    "response time of ping-pongs and requests: 99.9th percentile",
    |view| us(view, 0.999),
);

pub(super) const MAX_US: Measure =
    response("response_max_us", "response time of ping-pongs and requests: maximum", |view| {
        us(view, 1.0)
    });

fn us(view: &View, share: f64) -> Option<f64> {
    let responses = view.flows(&view.of).flat_map(|flow| &flow.responses);
    let responses = responses.filter(|response| view.contains(response.at_us));
    percentile_of(responses.map(|response| response.took_ns as f64 / 1e3), share)
}

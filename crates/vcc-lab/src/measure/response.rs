//! Response times of ping-pongs over TCP.

use super::{Measure, View, percentile};

pub(super) const MIN_US: Measure = Measure::plain("response_min_us", min_us).by_phase();

pub(super) const P50_US: Measure = Measure::plain("response_p50_us", p50_us).by_phase();

pub(super) const P99_US: Measure = Measure::plain("response_p99_us", p99_us).by_phase();

pub(super) const P999_US: Measure = Measure::plain("response_p999_us", p999_us).by_phase();

pub(super) const MAX_US: Measure = Measure::plain("response_max_us", max_us).by_phase();

fn min_us(view: &View) -> Option<f64> {
    response_us(view, 0.0)
}

fn max_us(view: &View) -> Option<f64> {
    response_us(view, 1.0)
}

fn p50_us(view: &View) -> Option<f64> {
    response_us(view, 0.5)
}

fn p99_us(view: &View) -> Option<f64> {
    response_us(view, 0.99)
}

fn p999_us(view: &View) -> Option<f64> {
    response_us(view, 0.999)
}

fn response_us(view: &View, share: f64) -> Option<f64> {
    let responses = view.flows(&view.of).flat_map(|flow| &flow.responses);
    let responses = responses.filter(|response| view.contains(response.at_us));
    let mut took_us: Vec<f64> = responses.map(|response| response.took_ns as f64 / 1e3).collect();
    took_us.sort_by(f64::total_cmp);
    percentile(&took_us, share)
}

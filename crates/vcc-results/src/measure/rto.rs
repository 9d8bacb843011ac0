//! What a sender's TCP makes of its round-trip times, at each sample of its window (PVTCP, figure 9).

use super::{Measure, Takes, View};
use vcc_traffic::Sample;

const fn sampled(
    name: &'static str,
    text: &'static str,
    compute: fn(&View) -> Option<f64>,
) -> Measure {
    Measure::plain(name, text, compute).taking(Takes::Windows)
}

pub(super) const SRTT_MAX_US: Measure =
    sampled("srtt_max_us", "the smoothed RTT of the window samples: maximum", |view| {
        samples(view).map(|sample| f64::from(sample.srtt_us)).reduce(f64::max)
    });

pub(super) const RTO_MIN_US: Measure =
    sampled("rto_min_us", "the RTO of the window samples: minimum", |view| {
        samples(view).map(|sample| f64::from(sample.rto_us)).reduce(f64::min)
    });

/// A timeout doubles it (RFC 6298, 5.5).
pub(super) const RTO_MAX_US: Measure =
    sampled("rto_max_us", "the RTO of the window samples: maximum", |view| {
        samples(view).map(|sample| f64::from(sample.rto_us)).reduce(f64::max)
    });

fn samples<'a>(view: &'a View) -> impl Iterator<Item = &'a Sample> {
    view.flows(&view.of).flat_map(|flow| &flow.samples)
}

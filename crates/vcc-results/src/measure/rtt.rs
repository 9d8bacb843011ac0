//! Round-trip times of probes through the bottleneck: see `probes.rs` of vcc-fabric.

use super::{Measure, Takes, View};
use crate::result::statistics::percentile_of;

pub(super) const P50_US: Measure =
    Measure::plain("rtt_p50_us", "round-trip time of the probes: median", |view| rtt_us(view, 0.5))
        .taking(Takes::Probes)
        .by_phase();

pub(super) const P99_US: Measure =
    Measure::plain("rtt_p99_us", "round-trip time of the probes: 99th percentile", |view| {
        rtt_us(view, 0.99)
    })
    .taking(Takes::Probes)
    .by_phase();

/// With fewer than 1000 probes this is their maximum.
pub(super) const P999_US: Measure =
    Measure::plain("rtt_p999_us", "round-trip time of the probes: 99.9th percentile", |view| {
        rtt_us(view, 0.999)
    })
    .taking(Takes::Probes)
    .by_phase();

/// Probes that the queue dropped, as a share of all.
pub(super) const LOST: Measure =
    Measure::plain("probes_lost", "dropped probes, as a share of all", lost).taking(Takes::Probes);

fn rtt_us(view: &View, share: f64) -> Option<f64> {
    let samples = view.data.emulator.probes.samples.iter();
    let samples = samples.filter(|sample| view.contains(sample.at_us));
    percentile_of(samples.map(|sample| sample.rtt_ns as f64 / 1e3), share)
}

fn lost(view: &View) -> Option<f64> {
    let probes = &view.data.emulator.probes;
    let (lost, returned) = (probes.lost as f64, probes.samples.len() as f64);
    Some(lost / (lost + returned))
}

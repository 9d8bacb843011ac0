//! A sender's window over time.

use super::{Measure, Takes, View};
use crate::result::statistics::mean;
use vcc_traffic::Sample;

pub(super) const MEAN_SEGS: Measure = Measure::plain(
    "window_mean_segs",
    "mean send window: the lesser of cwnd and the peer's",
    mean_segs,
)
.taking(Takes::Windows);

/// The period of the send window's sawtooth.
pub(super) const PERIOD_S: Measure =
    Measure::plain("window_period_s", "period of the send window's sawtooth", period_s)
        .taking(Takes::Windows);

/// Share of the samples in which the receive window, not cwnd, limits the guest. vcc rewrites that
/// window, so this is the share in which vcc limits the guest (AC/DC, figure 10).
pub(super) const PEER_LIMITS: Measure = Measure::plain(
    "peer_window_limits",
    "share of the window samples in which cwnd is no smaller than the window that the guest is shown",
    peer_limits,
)
.taking(Takes::Windows);

/// How far from the mean, as a share of the range, a window must go before it counts as having
/// crossed it: less than this is the wiggle of single acknowledgements.
const HYSTERESIS: f64 = 0.1;

fn mean_segs(view: &View) -> Option<f64> {
    mean(view.flows(&view.of).flat_map(|flow| flow.samples.iter().map(Sample::send_window_segs)))
}

fn peer_limits(view: &View) -> Option<f64> {
    let samples = view.flows(&view.of).flat_map(|flow| &flow.samples);
    mean(samples.map(|sample| f64::from(sample.cwnd_bytes() >= sample.snd_wnd_bytes.into())))
}

fn period_s(view: &View) -> Option<f64> {
    let periods = view.flows(&view.of).filter_map(|flow| {
        let series: Vec<(f64, f64)> = flow
            .samples
            .iter()
            .map(|sample| (sample.at_us as f64 / 1e6, sample.send_window_segs()))
            .collect();
        period(&series)
    });
    mean(periods)
}

/// The mean time between upward crossings of the mean; needs two of them.
fn period(series: &[(f64, f64)]) -> Option<f64> {
    let level = mean(series.iter().map(|point| point.1))?;
    let low = series.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
    let high = series.iter().map(|point| point.1).fold(0.0, f64::max);
    let margin = HYSTERESIS * (high - low);
    let mut is_above = true;
    let mut crossings = Vec::new();
    for &(at_s, value) in series {
        if is_above && value < level - margin {
            is_above = false;
        } else if !is_above && value > level + margin {
            is_above = true;
            crossings.push(at_s);
        }
    }
    let (first, last) = (crossings.first()?, crossings.last()?);
    (crossings.len() > 1).then(|| (last - first) / (crossings.len() - 1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn period_of_a_sawtooth_with_a_wiggle() {
        let series: Vec<(f64, f64)> = (0..6000)
            .map(|ms| {
                let wiggle = if ms % 2 == 0 { 0.5 } else { -0.5 };
                (f64::from(ms) / 1000.0, 40.0 + 40.0 * f64::from(ms % 750) / 750.0 + wiggle)
            })
            .collect();
        assert!((period(&series).unwrap() - 0.75).abs() < 0.003);
    }

    #[test]
    fn a_flat_window_has_no_period() {
        assert_eq!(period(&[(0.0, 5.0), (1.0, 5.0), (2.0, 5.0)]), None);
        assert_eq!(period(&[]), None);
    }
}

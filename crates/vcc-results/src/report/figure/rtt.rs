//! Round-trip times as a cumulative distribution (AC/DC, figure 8).

use super::{CaseReport, Figure, Line, LinePanel, Scale, Series};
use crate::result::statistics::percentile;
use std::collections::BTreeMap;

/// Points of a line.
const STEPS: u32 = 200;

pub(super) fn distribution(cases: &[CaseReport], series: &BTreeMap<String, Series>) -> Figure {
    let lines = cases.iter().filter_map(|case| {
        let points = points(&series.get(&case.name)?.rtts_us);
        Some(Line { name: case.name.clone(), points })
    });
    let panel = LinePanel { title: String::new(), lines: lines.collect() };
    Figure::Lines {
        x: "RTT (us)".into(),
        x_scale: Scale::Logarithmic,
        y: "share of probes".into(),
        panels: vec![panel],
    }
}

/// Points of a cumulative distribution: a value, and the share of all values that are not larger.
pub(super) fn points(values: &[f64]) -> Vec<(f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let shares = (0..=STEPS).map(|step| f64::from(step) / f64::from(STEPS));
    shares.filter_map(|share| Some((percentile(&sorted, share)?, share))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_rises_from_the_least_to_the_greatest() {
        let points = points(&[30.0, 10.0, 20.0]);
        assert_eq!((points[0], points[STEPS as usize]), ((10.0, 0.0), (30.0, 1.0)));
        assert!(points.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 < pair[1].1));
        assert!(super::points(&[]).is_empty());
    }
}

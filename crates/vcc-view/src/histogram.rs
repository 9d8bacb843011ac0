//! Histograms of a port's delays, in JSON and in words.

use serde::Serialize;
use vcc_engine::{Delays, Histogram};

use crate::units::duration;

/// In JSON.
#[derive(Serialize)]
pub struct DelaysView {
    /// The upper bound of each bucket, which belongs to it; the last has none.
    upper_us: Vec<Option<u32>>,
    fabric: HistogramView,
    guest: HistogramView,
}

#[derive(Serialize)]
struct HistogramView {
    /// Delays in each bucket.
    counts: [u64; Histogram::BUCKETS],
    sum_us: u64,
}

impl From<&Delays> for DelaysView {
    fn from(delays: &Delays) -> Self {
        let view =
            |part: Histogram| HistogramView { counts: *part.counts(), sum_us: part.sum_us() };
        Self {
            upper_us: Histogram::bounds_us().collect(),
            fabric: view(delays.fabric()),
            guest: view(delays.guest()),
        }
    }
}

/// Medians and 99th percentiles of the parts that were measured; None without any.
pub fn text(delays: &Delays) -> Option<String> {
    let part = |name: &str, part: Histogram| {
        let [median, p99] = [0.5, 0.99].map(|share| part.quantile_us(share));
        Some(format!(
            "{name} delay: {} at the median, {} at p99",
            duration(median?),
            duration(p99?)
        ))
    };
    let parts = [part("fabric", delays.fabric()), part("guest", delays.guest())];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::delays;

    #[test]
    fn the_parts_that_were_measured_are_shown() {
        assert_eq!(text(&Delays::default()), None);
        let shown = text(&delays(&[], &[20_000])).unwrap();
        assert_eq!(shown, "guest delay: 24.6 ms at the median, 32.6 ms at p99");
        let shown = text(&delays(&[200], &[20_000])).unwrap();
        assert!(
            shown.starts_with("fabric delay: 192 us at the median, 255 us at p99; guest"),
            "{shown}"
        );
    }

    #[test]
    fn json_has_a_count_for_each_bound() {
        let view = DelaysView::from(&delays(&[200, 3_000_000], &[]));
        let json = serde_json::to_value(&view).expect("JSON");
        let bounds = json["upper_us"].as_array().expect("bounds");
        let counts = json["fabric"]["counts"].as_array().expect("counts");
        let counted: Vec<_> = bounds.iter().zip(counts).filter(|(_, count)| **count == 1).collect();
        assert_eq!(bounds.len(), counts.len());
        assert_eq!(
            counted.iter().map(|(bound, _)| bound.as_u64()).collect::<Vec<_>>(),
            [Some(256), None]
        );
        assert_eq!(
            (&json["fabric"]["sum_us"], &json["guest"]["sum_us"]),
            (&3_000_200.into(), &0.into())
        );
    }
}

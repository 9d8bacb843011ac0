//! Prometheus' text format, version 0.0.4:
//! https://prometheus.io/docs/instrumenting/exposition_formats/
//!
//! Who asks for OpenMetrics reads this, too. The reverse does not hold: OpenMetrics declares a counter
//! without the suffix of its samples, so that readers of 0.0.4 would find the type of none of them.

use std::collections::HashMap;

use prometheus::TextEncoder;
use prometheus::proto::{self, Bucket, Counter, Gauge, LabelPair, MetricFamily, MetricType};
use vcc_engine::Histogram;

use super::{Kind, Metric};

pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

pub struct Text {
    text: String,
    zeros: Zeros,
}

/// Whether counters with labels, and histograms, are given that nothing has counted yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zeros {
    Given,
    LeftOut,
}

impl Zeros {
    /// By the query of a request: `zeros=0` or `zeros=1`, the default. None: it is neither.
    pub fn parse(query: &str) -> Option<Self> {
        let given = query.split('&').find_map(|pair| pair.strip_prefix("zeros="));
        match given {
            None | Some("1") => Some(Self::Given),
            Some("0") => Some(Self::LeftOut),
            Some(_) => None,
        }
    }
}

/// The samples of a family. Those with the same labels are summed, because Prometheus refuses a
/// scrape with two of them: devices in two network namespaces can have one name.
pub struct Samples {
    metric: &'static Metric,
    zeros: Zeros,
    samples: Vec<proto::Metric>,
    /// Of samples, by the values of their labels.
    places: HashMap<Vec<String>, usize>,
}

impl Text {
    pub fn new(zeros: Zeros) -> Self {
        Self { text: String::new(), zeros }
    }

    pub fn family(&mut self, metric: &'static Metric, fill: impl FnOnce(&mut Samples)) {
        let mut samples =
            Samples { metric, zeros: self.zeros, samples: Vec::new(), places: HashMap::new() };
        fill(&mut samples);
        let mut samples = samples.samples;
        if self.zeros == Zeros::LeftOut && metric.kind == Kind::Counter && !metric.labels.is_empty()
        {
            samples.retain(|sample| sample.get_counter().get_value() != 0.0);
        }
        if samples.is_empty() {
            return;
        }
        let mut family = MetricFamily::default();
        family.set_name(metric.name.into());
        family.set_help(metric.help.into());
        family.set_field_type(match metric.kind {
            Kind::Counter => MetricType::COUNTER,
            Kind::Gauge => MetricType::GAUGE,
            Kind::Histogram => MetricType::HISTOGRAM,
        });
        family.set_metric(samples);
        let encoded = TextEncoder::new().encode_utf8(&[family], &mut self.text);
        encoded.expect("a family with a name and samples");
    }

    pub fn one(&mut self, metric: &'static Metric, value: f64) {
        self.family(metric, |samples| samples.add([], value));
    }

    pub fn finish(self) -> String {
        self.text
    }
}

impl Samples {
    /// `labels` are the values of the metric's labels, in their order.
    pub fn add<const N: usize>(&mut self, labels: [&str; N], value: f64) {
        let is_counter = self.metric.kind == Kind::Counter;
        let sample = self.sample(labels);
        if is_counter {
            let mut counter = Counter::default();
            counter.set_value(sample.get_counter().get_value() + value);
            sample.set_counter(counter);
        } else {
            let mut gauge = Gauge::default();
            gauge.set_value(sample.get_gauge().get_value() + value);
            sample.set_gauge(gauge);
        }
    }

    /// Of a histogram; each bucket includes those before it.
    pub fn add_histogram<const N: usize>(&mut self, labels: [&str; N], histogram: &Histogram) {
        if self.zeros == Zeros::LeftOut && histogram.counts().iter().all(|count| *count == 0) {
            return;
        }
        let sample = self.sample(labels);
        let before = sample.get_histogram();
        let mut up_to = 0;
        let mut buckets = Vec::with_capacity(Histogram::BUCKETS);
        for (at, (bound_us, count)) in Histogram::bounds_us().zip(histogram.counts()).enumerate() {
            up_to += count;
            // The encoder adds the bucket without a bound.
            let Some(bound_us) = bound_us else { continue };
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(seconds(bound_us.into()));
            let others = before.get_bucket().get(at).map_or(0, Bucket::cumulative_count);
            bucket.set_cumulative_count(others + up_to);
            buckets.push(bucket);
        }
        let mut sum = proto::Histogram::default();
        sum.set_sample_count(before.get_sample_count() + up_to);
        sum.set_sample_sum(before.get_sample_sum() + seconds(histogram.sum_us()));
        sum.set_bucket(buckets);
        sample.set_histogram(sum);
    }

    /// The one with these labels.
    fn sample<const N: usize>(&mut self, labels: [&str; N]) -> &mut proto::Metric {
        let names = self.metric.labels;
        assert_eq!(names.len(), N, "labels of {}", self.metric.name);
        let values = labels.map(str::to_owned).to_vec();
        let place = *self.places.entry(values).or_insert_with(|| {
            let pair = |(name, value): (&&str, &str)| {
                let mut pair = LabelPair::default();
                pair.set_name((*name).to_owned());
                pair.set_value(value.to_owned());
                pair
            };
            let mut sample = proto::Metric::default();
            sample.set_label(names.iter().zip(labels).map(pair).collect());
            self.samples.push(sample);
            self.samples.len() - 1
        });
        &mut self.samples[place]
    }
}

fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

//! Prometheus' text format, version 0.0.4:
//! https://prometheus.io/docs/instrumenting/exposition_formats/

use std::collections::HashMap;
use std::fmt::Write;

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
    /// A line without the metric's name, and its value.
    lines: Vec<(String, f64)>,
    places: HashMap<String, usize>,
}

impl Text {
    pub fn new(zeros: Zeros) -> Self {
        Self { text: String::new(), zeros }
    }

    pub fn family(&mut self, metric: &'static Metric, fill: impl FnOnce(&mut Samples)) {
        let mut samples =
            Samples { metric, zeros: self.zeros, lines: Vec::new(), places: HashMap::new() };
        fill(&mut samples);
        if self.zeros == Zeros::LeftOut && metric.kind == Kind::Counter && !metric.labels.is_empty()
        {
            samples.lines.retain(|(_, value)| *value != 0.0);
        }
        if samples.lines.is_empty() {
            return;
        }
        let Metric { name, kind, help, .. } = metric;
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {}", kind.name());
        for (line, value) in samples.lines {
            let _ = writeln!(self.text, "{name}{line} {value}");
        }
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
        let pairs = self.pairs(labels);
        self.add_line("", &pairs, value);
    }

    /// Of a histogram; each bucket includes those before it.
    pub fn add_histogram<const N: usize>(&mut self, labels: [&str; N], histogram: &Histogram) {
        if self.zeros == Zeros::LeftOut && histogram.counts().iter().all(|count| *count == 0) {
            return;
        }
        let pairs = self.pairs(labels);
        let mut up_to = 0;
        for (bound_us, count) in Histogram::bounds_us().zip(histogram.counts()) {
            up_to += count;
            let bound = bound_us.map_or("+Inf".into(), |us| seconds(us.into()).to_string());
            let within = [&*pairs, &[format!("le=\"{bound}\"")]].concat();
            self.add_line("_bucket", &within, up_to as f64);
        }
        self.add_line("_sum", &pairs, seconds(histogram.sum_us()));
        self.add_line("_count", &pairs, up_to as f64);
    }

    fn pairs<const N: usize>(&self, labels: [&str; N]) -> Vec<String> {
        assert_eq!(self.metric.labels.len(), N, "labels of {}", self.metric.name);
        let pairs = self.metric.labels.iter().zip(labels);
        pairs.map(|(key, value)| format!("{key}=\"{}\"", escaped(value))).collect()
    }

    fn add_line(&mut self, suffix: &str, pairs: &[String], value: f64) {
        let labels =
            if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) };
        let line = format!("{suffix}{labels}");
        match self.places.get(&line) {
            Some(place) => self.lines[*place].1 += value,
            None => {
                self.places.insert(line.clone(), self.lines.len());
                self.lines.push((line, value));
            }
        }
    }
}

fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

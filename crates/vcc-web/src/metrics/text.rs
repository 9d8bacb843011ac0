//! Prometheus' text format, version 0.0.4:
//! https://prometheus.io/docs/instrumenting/exposition_formats/

use std::collections::HashMap;
use std::fmt::Write;

use vcc_engine::Histogram;

use super::Metric;

pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Default)]
pub struct Text(String);

/// The samples of a family. Those with the same labels are summed, because Prometheus refuses a
/// scrape with two of them: devices in two network namespaces can have one name.
pub struct Samples {
    metric: &'static Metric,
    /// A line without the metric's name, and its value.
    lines: Vec<(String, f64)>,
    places: HashMap<String, usize>,
}

impl Text {
    pub fn family(&mut self, metric: &'static Metric, fill: impl FnOnce(&mut Samples)) {
        let mut samples = Samples { metric, lines: Vec::new(), places: HashMap::new() };
        fill(&mut samples);
        if samples.lines.is_empty() {
            return;
        }
        let Metric { name, kind, help, .. } = metric;
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {}", kind.name());
        for (line, value) in samples.lines {
            let _ = writeln!(self.0, "{name}{line} {value}");
        }
    }

    pub fn one(&mut self, metric: &'static Metric, value: f64) {
        self.family(metric, |samples| samples.add([], value));
    }

    pub fn finish(self) -> String {
        self.0
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

//! Prometheus' text format, version 0.0.4:
//! https://prometheus.io/docs/instrumenting/exposition_formats/

use std::collections::HashMap;
use std::fmt::Write;

use super::Metric;

pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Default)]
pub struct Text(String);

/// The samples of a family. Those with the same labels are summed, because Prometheus refuses a
/// scrape with two of them: devices in two network namespaces can have one name.
pub struct Samples {
    metric: &'static Metric,
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
        // A String takes whatever is written to it.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {}", kind.name());
        for (labels, value) in samples.lines {
            let _ = writeln!(self.0, "{name}{labels} {value}");
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
        assert_eq!(self.metric.labels.len(), N, "labels of {}", self.metric.name);
        let pairs = self.metric.labels.iter().zip(labels);
        let pairs: Vec<_> =
            pairs.map(|(key, value)| format!("{key}=\"{}\"", escaped(value))).collect();
        let labels =
            if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) };
        match self.places.get(&labels) {
            Some(place) => self.lines[*place].1 += value,
            None => {
                self.places.insert(labels.clone(), self.lines.len());
                self.lines.push((labels, value));
            }
        }
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

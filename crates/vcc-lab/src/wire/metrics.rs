//! The metrics of a pair of halves.

use super::half::Half;
use crate::experiment::{Metric, Metrics};
use std::collections::BTreeMap;

/// Equal traffic without the treatment and with it.
pub struct Pair {
    pub without: Half,
    pub with: Half,
    /// More turns with the treatment, in which the run time of vcc's programs was counted: that
    /// takes CPU itself. Empty without vcc.
    pub counted: Half,
}

type Definition = (&'static str, &'static str, fn(&Pair) -> f64);

const METRICS: &[Definition] = &[
    (
        "cpu_without_percent",
        "CPU of the whole machine, less that of other processes, without the treatment",
        |pair| pair.without.usage.share() * 100.0,
    ),
    (
        "cpu_with_percent",
        "CPU of the whole machine, less that of other processes, with the treatment",
        |pair| pair.with.usage.share() * 100.0,
    ),
    ("cpu_added_points", "CPU that the treatment adds, in percentage points", |pair| {
        (pair.with.usage.share() - pair.without.usage.share()) * 100.0
    }),
    (
        "own_added_points",
        "CPU that it adds in the traffic's own threads, kernel work included, in percentage points",
        |pair| (pair.with.usage.own_share() - pair.without.usage.own_share()) * 100.0,
    ),
    (
        "programs_percent",
        "CPU of the machine in vcc's programs, by the kernel's accounting and including it, in turns of its own",
        |pair| pair.counted.programs.ns as f64 / 1e7 / pair.counted.usage.capacity_s,
    ),
    ("programs_us_per_mb", "CPU time in vcc's programs, in us per megabyte", |pair| {
        pair.counted.programs.ns as f64 * 1e3 / pair.counted.received_bytes as f64
    }),
    (
        "program_runs_per_s",
        "runs of vcc's programs per second, one for each segment at a port",
        |pair| pair.counted.programs.runs as f64 / pair.counted.seconds,
    ),
    ("strangers_percent", "CPU of other processes, in the busier half", |pair| {
        pair.halves().map(|half| half.usage.strangers_share() * 100.0).fold(0.0, f64::max)
    }),
    ("goodput_without_mbps", "goodput of all flows without the treatment", |pair| {
        pair.without.goodput_mbps()
    }),
    ("goodput_with_mbps", "goodput of all flows with the treatment", |pair| {
        pair.with.goodput_mbps()
    }),
    ("goodput_ratio", "goodput with the treatment over that without", |pair| {
        pair.with.goodput_mbps() / pair.without.goodput_mbps()
    }),
    ("cpu_without_s_per_gb", "CPU seconds per gigabyte without the treatment", |pair| {
        pair.without.cpu_s_per_gb()
    }),
    ("cpu_with_s_per_gb", "CPU seconds per gigabyte with the treatment", |pair| {
        pair.with.cpu_s_per_gb()
    }),
    ("cpu_per_gb_ratio", "CPU per gigabyte with the treatment over that without", |pair| {
        pair.with.cpu_s_per_gb() / pair.without.cpu_s_per_gb()
    }),
];

impl Pair {
    pub fn halves(&self) -> impl Iterator<Item = &Half> {
        [&self.without, &self.with].into_iter()
    }

    /// The metrics that this pair has.
    pub fn metrics(&self) -> BTreeMap<String, f64> {
        let values = METRICS.iter().map(|(name, _, of)| ((*name).to_owned(), of(self)));
        values.filter(|(_, value)| value.is_finite()).collect()
    }
}

/// About vcc's programs, which not every treatment has.
pub fn is_of_programs(metric: &str) -> bool {
    metric.starts_with("program")
}

pub fn all() -> Metrics {
    let names: Vec<&str> = METRICS.iter().map(|(name, ..)| *name).collect();
    let all = METRICS.iter().map(|(name, text, _)| Metric::new(*name, *text));
    Metrics::new(all.collect()).with_hint(format!(": there are {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::meter::Usage;
    use vcc_port::RunTime;

    fn half(busy_s: f64, bytes: u64) -> Half {
        let usage = Usage { capacity_s: 20.0, busy_s, own_s: busy_s, strangers_s: 1.0 };
        let programs = RunTime { runs: 1000, ns: 200_000_000 };
        Half { usage, seconds: 10.0, received_bytes: bytes, programs, doubts: Vec::new() }
    }

    #[test]
    fn a_pair_is_compared_by_what_is_not_the_strangers() {
        let pair = Pair {
            without: half(3.0, 2_000_000_000),
            with: half(4.0, 1_000_000_000),
            counted: half(4.0, 1_000_000_000),
        };
        let metrics = pair.metrics();
        let near = |name: &str, value: f64| {
            assert!((metrics[name] - value).abs() < 1e-9, "{name} {}", metrics[name]);
        };
        near("cpu_without_percent", 10.0);
        near("cpu_added_points", 5.0);
        near("programs_percent", 1.0);
        near("programs_us_per_mb", 200.0);
        near("program_runs_per_s", 100.0);
        near("strangers_percent", 5.0);
        near("goodput_without_mbps", 1600.0);
        near("goodput_ratio", 0.5);
        near("cpu_without_s_per_gb", 1.0);
        near("cpu_per_gb_ratio", 3.0);
        assert_eq!(metrics.len(), METRICS.len());
    }

    #[test]
    fn what_cannot_be_had_is_left_out() {
        let pair = Pair { without: half(3.0, 0), with: half(3.0, 0), counted: Half::default() };
        let metrics = pair.metrics();
        assert!(!metrics.contains_key("goodput_ratio"));
        assert!(!metrics.keys().any(|metric| is_of_programs(metric)), "no vcc");
        assert!(metrics.contains_key("cpu_added_points"));
    }
}

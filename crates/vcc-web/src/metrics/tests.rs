use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::cache::tests::taken;
use crate::tally::Tally;
use crate::testing::{HOSTILE, snapshot};

/// A scraper's parse of the text; it rejects what Prometheus would reject.
#[derive(Debug, Default)]
struct Parsed {
    kinds: BTreeMap<String, String>,
    samples: BTreeMap<(String, Vec<(String, String)>), f64>,
}

fn parse(text: &str) -> Parsed {
    let mut parsed = Parsed::default();
    let mut family = String::new();
    assert!(text.ends_with('\n'), "the last line has no end");
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a help");
            assert!(!help.is_empty());
            family = name.into();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a type");
            assert_eq!(name, family, "HELP and TYPE belong together");
            let before = parsed.kinds.insert(name.into(), kind.into());
            assert_eq!(before, None, "{name} comes twice");
        } else {
            let (name, labels, value) = sample(line);
            let is_of_family = match parsed.kinds[&family].as_str() {
                "histogram" => {
                    ["_bucket", "_sum", "_count"].iter().any(|it| name == family.clone() + it)
                }
                _ => name == family,
            };
            assert!(is_of_family, "a sample outside its family: {line}");
            let before = parsed.samples.insert((name, labels), value);
            assert_eq!(before, None, "twice: {line}");
        }
    }
    parsed
}

fn sample(line: &str) -> (String, Vec<(String, String)>, f64) {
    let end = line.find(['{', ' ']).expect("a value");
    let (name, mut rest) = line.split_at(end);
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    assert!(name.chars().all(is_word), "{line}");
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (key, after) = rest.split_once("=\"").expect("a label");
            assert!(key.chars().all(is_word), "{line}");
            let (value, after) = quoted(after);
            labels.push((key.into(), value));
            match after.strip_prefix(',') {
                Some(next) => rest = next,
                None => {
                    rest = after.strip_prefix('}').expect("an end of the labels");
                    break;
                }
            }
        }
    }
    let value = rest.strip_prefix(' ').expect("a blank").parse().expect("a number");
    (name.into(), labels, value)
}

/// Up to the closing quote, and what is behind it.
fn quoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, &text[at + 1..]),
            '\\' => match chars.next().expect("something escaped").1 {
                'n' => value.push('\n'),
                c @ ('\\' | '"') => value.push(c),
                c => panic!("\\{c} is no escape"),
            },
            '\n' => panic!("a line's end in a label"),
            c => value.push(c),
        }
    }
    panic!("no closing quote: {text}");
}

fn given(snapshots: impl IntoIterator<Item = crate::Snapshot>, zeros: Zeros) -> String {
    render(&Ok(Arc::new(taken(snapshots))), 0, &Tally::default(), zeros)
}

fn parsed(snapshots: impl IntoIterator<Item = crate::Snapshot>) -> Parsed {
    parse(&given(snapshots, Zeros::Given))
}

fn value(parsed: &Parsed, name: &str, labels: &[(&str, &str)]) -> f64 {
    let labels = labels.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    parsed.samples[&(name.to_owned(), labels)]
}

#[test]
fn every_metric_is_given_and_is_what_it_was_declared_to_be() {
    let parsed = parsed([snapshot(3600), snapshot(3601)]);
    let given: BTreeSet<&str> = parsed.kinds.keys().map(String::as_str).collect();
    assert_eq!(given, METRICS.iter().map(|metric| metric.name).collect());
    for metric in METRICS {
        assert_eq!(parsed.kinds[metric.name], metric.kind.name(), "{}", metric.name);
        let suffixes: &[&str] =
            if metric.kind == Kind::Histogram { &["_bucket", "_sum", "_count"] } else { &[""] };
        for suffix in suffixes {
            let name = format!("{}{suffix}", metric.name);
            let mut samples = parsed.samples.keys().filter(|(it, _)| *it == name).peekable();
            assert!(samples.peek().is_some(), "{name} has no sample");
            let bound: &[&str] = if *suffix == "_bucket" { &["le"] } else { &[] };
            for (_, labels) in samples {
                let expected = metric.labels.iter().chain(bound);
                assert!(labels.iter().map(|(key, _)| key).eq(expected), "{labels:?}");
            }
        }
    }
}

/// Of ports that watch alone.
#[test]
fn a_trial_has_the_figures_of_its_ports() {
    let parsed = parsed([snapshot(3600), snapshot(3601)]);
    let of = |name: &str| -> Vec<f64> {
        let samples = parsed.samples.iter().filter(|((it, _), _)| it == name);
        samples.map(|(_, value)| *value).collect()
    };
    let [all, limited] = ["vcc_trial_connections", "vcc_trial_limited_connections"].map(of);
    assert!(!all.is_empty() && all.len() == limited.len());
    assert!(all.iter().zip(&limited).all(|(all, limited)| *all >= 1.0 && limited <= all));
    assert!(of("vcc_trial_window_ratio").iter().all(|part| *part > 0.0 && *part < 1.0));
    assert!(of("vcc_trial_limited_time_ratio").iter().all(|part| *part <= 1.0));
    assert!(of("vcc_trial_queue_seconds").iter().all(|queue_s| *queue_s < 1e-3));
}

#[test]
fn names_follow_the_conventions() {
    for Metric { name, kind, help, .. } in METRICS {
        assert!(name.starts_with("vcc_"), "{name}");
        assert_eq!(name.ends_with("_total"), *kind == Kind::Counter, "{name}");
        for unit in ["_ms", "_us", "_milliseconds", "_kilobytes", "_bits", "_percent"] {
            assert!(!name.trim_end_matches("_total").ends_with(unit), "{name} is in no base unit");
        }
        assert!(help.ends_with('.'), "{name}");
    }
}

#[test]
fn values_are_the_snapshots() {
    let snapshot = snapshot(3600);
    let parsed = parsed([snapshot.clone()]);
    let established = [("device", "tap7"), ("tenant", ""), ("stage", "established")];
    let expected = snapshot.flows.iter().filter(|flow| flow.port_index == 2);
    let expected = expected.filter(|flow| flow.state.stage() == vcc_engine::Stage::Established);
    assert_eq!(value(&parsed, "vcc_port_flows", &established), expected.count() as f64);
    assert_eq!(value(&parsed, "vcc_pool_window_bytes", &[("pool", "gold")]), f64::from(2 << 20));
    assert_eq!(value(&parsed, "vcc_pool_held_bytes", &[("pool", "gold at tap7")]), 700_000.0);
    assert_eq!(value(&parsed, "vcc_policy_reloads_total", &[("result", "failed")]), 1.0);
    assert_eq!(value(&parsed, "vcc_ports", &[("state", "failed")]), 1.0);
    assert_eq!(value(&parsed, "vcc_snapshot_success", &[]), 1.0);
    let median = value(&parsed, "vcc_rule_srtt_seconds", &[("rule", "backup"), ("share", "0.5")]);
    assert!((90e-6..700e-6).contains(&median), "{median} is in another unit");
}

#[test]
fn buckets_of_a_histogram_include_those_before() {
    let mut snapshot = snapshot(10);
    snapshot.ports[2].delays = Some(vcc_view::testing::delays(&[], &[200, 31_000, 3_000_000]));
    let parsed = parsed([snapshot]);
    let port = [("device", "tap7"), ("tenant", "")];
    let up_to = |bound| {
        value(
            &parsed,
            "vcc_port_guest_delay_seconds_bucket",
            &[&port[..], &[("le", bound)]].concat(),
        )
    };
    let bounds = ["0.000016", "0.000128", "0.000256", "0.016384", "0.032768", "1.048576", "+Inf"];
    assert_eq!(bounds.map(up_to), [0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0]);
    assert_eq!(value(&parsed, "vcc_port_guest_delay_seconds_count", &port), 3.0);
    assert_eq!(value(&parsed, "vcc_port_guest_delay_seconds_sum", &port), 3.0312);
    assert_eq!(value(&parsed, "vcc_port_fabric_delay_seconds_count", &port), 0.0);
}

#[test]
fn a_cost_is_given_where_the_kernel_has_counted_it() {
    let parsed = parsed([snapshot(10)]);
    let of = |device, direction| {
        let labels = [("device", device), ("tenant", "acme"), ("direction", direction)];
        ["vcc_port_cost_frames_total", "vcc_port_cost_seconds_total"]
            .map(|name| value(&parsed, name, &labels))
    };
    assert_eq!(of("vnet-acme-0", "from_guest"), [10_000.0, 0.0024]);
    assert_eq!(of("vnet-acme-0", "to_guest"), [10_000.0, 0.0018]);
    let is_of_tap7 = |(name, labels): &(String, Vec<(String, String)>)| {
        name.starts_with("vcc_port_cost_") && labels.iter().any(|(_, value)| value == "tap7")
    };
    assert!(!parsed.samples.keys().any(is_of_tap7), "a port of `vcc domain` has no programs");
    assert_eq!(value(&parsed, "vcc_tables_bytes", &[]), f64::from(63 << 20));
}

#[test]
fn zeros_are_left_out_on_request_and_nothing_else() {
    let mut snapshot = snapshot(3600);
    snapshot.ports[0].delays = Some(vcc_view::testing::delays(&[200], &[]));
    // The time passes meanwhile.
    let without_age = |text: String| {
        let lines = text.lines().filter(|line| !line.starts_with("vcc_snapshot_age_seconds "));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    let [all, some] =
        [Zeros::Given, Zeros::LeftOut].map(|it| without_age(given([snapshot.clone()], it)));
    let lines: BTreeSet<&str> = some.lines().collect();
    let absent = || all.lines().filter(|line| !lines.contains(line) && !line.starts_with('#'));
    assert!(some.lines().all(|line| all.lines().any(|it| it == line)));
    let of = |part: &str| absent().filter(|line| line.contains(part)).count();
    assert!(of("vcc_port_untranslated_segments_total{") > 0);
    assert!(of("vcc_port_guest_delay_seconds_count{device=\"vnet-acme-0\"") > 0);
    assert_eq!(of("vcc_port_fabric_delay_seconds_bucket{device=\"vnet-acme-0\""), 0);
    for line in absent() {
        let (name, _, value) = sample(line);
        let is_labelled_total = name.ends_with("_total") && line.contains('{');
        assert!(value == 0.0 && (is_labelled_total || name.contains("_delay_seconds")), "{line}");
    }
    assert_eq!(Zeros::parse("zeros=0"), Some(Zeros::LeftOut));
    assert_eq!(Zeros::parse("a=b"), Some(Zeros::Given));
    assert_eq!(Zeros::parse("zeros=no"), None);
}

#[test]
fn the_daemons_start_stays_where_it_was() {
    for elapsed in [Duration::ZERO, Duration::from_millis(600)] {
        let mut snapshot = snapshot(3600);
        // A reading takes time, and somebody may set the clock.
        snapshot.at += elapsed;
        let started_s = value(&parsed([snapshot]), "vcc_start_time_seconds", &[]);
        assert_eq!(started_s, 1_700_000_000.0);
    }
}

#[test]
fn names_come_back_as_they_were() {
    let mut snapshot = snapshot(10);
    let name = "a \"b\" \\ c\nd {e=\"f\"} #";
    snapshot.ports[0].port = name.into();
    let parsed = parsed([snapshot]);
    let room = value(&parsed, "vcc_port_flows_max", &[("device", name), ("tenant", "acme")]);
    assert_eq!(room, 65_536.0);
    let tap = [("device", "tap7"), ("tenant", "")];
    assert_eq!(value(&parsed, "vcc_port_held_bytes", &tap), 300_000.0);
    assert_eq!(value(&parsed, "vcc_port_promised_bytes", &tap), 200_000.0);
    assert_eq!(value(&parsed, "vcc_port_channel_up", &tap), 1.0);
    assert_eq!(value(&parsed, "vcc_port_channel_malformed_messages_total", &tap), 3.0);
    assert_eq!(value(&parsed, "vcc_pool_held_bytes", &[("pool", HOSTILE)]), 560_000.0);
}

#[test]
fn a_pool_whose_name_is_anothers_label_keeps_it() {
    let mut snapshot = snapshot(10);
    snapshot.pools[1].name = "gold at tap7".into();
    let parsed = parsed([snapshot]);
    for (label, held_bytes) in [("gold at tap7", 560_000.0), ("gold at tap7 2", 700_000.0)] {
        assert_eq!(value(&parsed, "vcc_pool_held_bytes", &[("pool", label)]), held_bytes);
    }
}

#[test]
fn ports_of_one_name_are_one_sample() {
    let snapshots = [snapshot(10), snapshot(12)];
    let alike = snapshots.clone().map(|mut snapshot| {
        snapshot.ports[1].port = snapshot.ports[0].port.clone();
        snapshot
    });
    let (apart, alike) = (parsed(snapshots), parsed(alike));
    for metric in ["vcc_port_flows_max", "vcc_port_window_bytes", "vcc_port_acked_bytes_total"] {
        let of = |device| [("device", device), ("tenant", "acme")];
        let ports = ["vnet-acme-0", "vnet-acme-1"].map(|name| value(&apart, metric, &of(name)));
        assert!(ports.iter().all(|value| *value > 0.0), "{metric}: {ports:?}");
        let sum = value(&alike, metric, &of("vnet-acme-0"));
        assert_eq!(sum, ports.iter().sum::<f64>(), "{metric}");
    }
}

#[test]
fn an_unreadable_port_is_reported_and_nothing_else() {
    let parsed = parse(&render(&Err("gone".into()), 3, &Tally::default(), Zeros::Given));
    assert_eq!(value(&parsed, "vcc_snapshot_success", &[]), 0.0);
    assert_eq!(value(&parsed, "vcc_snapshot_failures_total", &[]), 3.0);
    assert_eq!(value(&parsed, "vcc_problems", &[]), 1.0);
    assert!(!parsed.kinds.keys().any(|name| name.starts_with("vcc_rule")));
}

//! Benchmarks, run short. Some run `vcc`, which is built with them in the workspace.

use std::fs;

use serde_json::Value;
use vcc_testing::can_attach;

use crate::lab;

/// The same that a port loads, each within what the verifier takes.
#[test]
fn what_the_verifier_processes() {
    if !can_attach() {
        return;
    }
    let printed = lab("bench verifier").well();
    let rows: Vec<Vec<&str>> =
        printed.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
    for program in ["fast_from_guest", "all_from_guest", "all_to_guest", "sweep", "to_guest"] {
        let row = rows.iter().find(|row| row[0] == program).expect(program);
        let instructions: u32 = row[1].parse().expect("a number");
        assert!((1..1_000_000).contains(&instructions), "{printed}");
    }
}

#[test]
fn the_datapath_is_measured_in_one_run() {
    if !can_attach() {
        return;
    }
    let (table, cases) = measure("datapath --repeat 1");
    for name in
        ["parse_only", "from_guest_data", "to_guest_ack", "rewriter", "flow_miss", "clone_only"]
    {
        assert!(table.contains(name), "{table}");
        let case = cases.as_array().expect("an array").iter().find(|case| case["name"] == name);
        let case = case.unwrap_or_else(|| panic!("{name} in {cases}"));
        assert!(case["gross_ns"]["median"].as_f64() > Some(0.0), "{cases}");
    }
}

/// The benchmark itself fails unless every segment of every connection was taken as what it is.
#[test]
fn many_connections_are_measured_beside_a_yardstick() {
    if !can_attach() {
        return;
    }
    let (table, cases) = measure("connections --connections 1000,10000 --repeat 1");
    let cases = cases.as_array().expect("an array");
    assert_eq!((table.lines().count(), cases.len()), (1 + 6, 6), "{table}");
    for (at, case) in cases.iter().enumerate() {
        let median = |case: &Value| case["ns"]["median"].as_f64().expect("a number");
        assert_eq!(case["connections"], [1000, 10_000][at / 3], "{case}");
        assert!(median(case) > 0.0, "{case}");
        let over = median(case) / median(&cases[at % 3]);
        assert!((case["over_fewest"].as_f64().expect("a number") - over).abs() < 1e-9, "{case}");
    }
}

/// The benchmark itself fails unless all come under a policy and are forgotten after their end.
#[test]
fn a_host_with_many_connections_is_read_ruled_and_rid_of_them() {
    if !can_attach() {
        return;
    }
    const BYTES_A_CONNECTION: f64 = 1000.0;
    let (table, figures) = measure("host --connections 10000");
    let value = |name: &str| {
        let figures = figures.as_array().expect("an array");
        let figure = figures.iter().find(|figure| figure["name"] == name);
        assert!(table.contains(name), "{table}");
        figure.unwrap_or_else(|| panic!("{name}: {table}"))["value"].as_f64().expect("a number")
    };
    for name in ["flows", "flows_filtered", "apply", "segments", "forgotten"] {
        assert!(value(name) > 0.0, "{table}");
    }
    assert!(value("flows_bytes") * 1e6 > 10_000.0 * BYTES_A_CONNECTION, "{table}");
}

#[test]
fn a_port_that_holds_segments_is_measured_in_memory() {
    let (table, cases) = measure("domain --repeat 1");
    let cases = cases.as_array().expect("an array");
    assert_eq!(table.lines().count(), 1 + cases.len(), "{table}");
    for name in ["pass", "hold", "release", "ack", "bulk", "bulk_tso"] {
        let case = cases.iter().find(|case| case["name"] == name);
        let case = case.unwrap_or_else(|| panic!("{name} in {cases:?}"));
        assert!(table.contains(name), "{table}");
        assert!(case["ns"]["median"].as_f64() > Some(0.0), "{case}");
        assert_eq!(case["gbit_s"].is_object(), name.starts_with("bulk"), "{case}");
    }
}

#[test]
fn a_transfer_is_measured_with_and_without() {
    if !can_attach() {
        return;
    }
    let (table, report) = measure("throughput --runs 1");
    assert_eq!(table.lines().count(), 7, "{table}");
    let median = |name: &str| report[name]["median"].as_f64().expect("a number");
    let (attached, detached) = (median("attached_gbit_s"), median("detached_gbit_s"));
    assert!(attached > 0.0 && detached > 0.0, "{report}");
    // Through decimal digits and back, the last bit may differ.
    assert!((median("ratio") - attached / detached).abs() < 1e-9, "{report}");
    for way in ["parsed", "detour"] {
        let (gbit_s, ratio) = (median(&format!("{way}_gbit_s")), median(&format!("{way}_ratio")));
        assert!(gbit_s > 0.0 && (ratio - gbit_s / detached).abs() < 1e-9, "{report}");
    }
}

#[test]
fn devices_that_come_and_go_become_ports_and_leave_nothing() {
    if !can_attach() {
        return;
    }
    let (table, figures) = measure("ports --ports 3 --singles 3 --churn 10 --churn-time 1");
    let figures = figures.as_array().expect("figures");
    assert_eq!(table.lines().count(), 1 + figures.len(), "{table}");
    let value = |name: &str| {
        let found = figures.iter().find(|figure| figure["name"] == name);
        found
            .and_then(|figure| figure["value"].as_f64())
            .unwrap_or_else(|| panic!("{name}: {table}"))
    };
    assert_eq!((value("churn"), value("missed"), value("left")), (10.0, 0.0, 0.0), "{table}");
    // A busy machine delays ACKs beyond the timer of a tail loss probe, so retransmissions are no defect.
    assert_eq!(value("upgrade_forgotten"), 0.0, "{table}");
    assert!(value("upgrade_trips") > 0.0, "{table}");
}

/// What a flooded port does to connections, its own and others', is exact; how fast they are is not.
#[test]
fn a_flood_at_one_port_leaves_the_connections_of_all_alone() {
    if !can_attach() {
        return;
    }
    let (table, figures) = measure("flood --runs 1");
    let figures = figures.as_array().expect("figures");
    assert_eq!(table.lines().count(), 1 + figures.len(), "{table}");
    let median = |name: &str| {
        let found = figures.iter().find(|figure| figure["name"] == name);
        found
            .and_then(|figure| figure["value"]["median"].as_f64())
            .unwrap_or_else(|| panic!("{name}: {table}"))
    };
    assert!(median("syns") > 0.0 && median("paced") > 0.0 && median("greedy") > 0.0, "{table}");
    assert!(median("others") > 4.0 && median("own") > 2.0, "{table}");
    assert_eq!((median("others_unknown"), median("own_unknown")), (0.0, 0.0), "{table}");
    assert!((1.0..=16_384.0).contains(&median("half_open")), "{table}");
}

#[test]
fn virtual_time_is_measured_part_by_part() {
    if !can_attach() {
        return;
    }
    let (table, loads) = measure("virtual --runs 1 --load flow-9000");
    assert_eq!(table.lines().count(), 2, "{table}");
    let load = &loads[0];
    assert_eq!(load["name"], "flow-9000");
    let median = |name: &str| load[name]["median"].as_f64().expect("a number");
    let parts: f64 = ["boot_s", "begin_s", "measured_s", "end_s"].map(median).iter().sum();
    assert!((median("wall_s") - parts).abs() < 1e-6, "{load}");
    let goodput_gbit_s = load["goodput_gbit_s"].as_f64().expect("a number");
    assert!((9.0..10.0).contains(&goodput_gbit_s), "it fills the link: {load}");
}

/// The output of `vcc-lab bench` and the file that it writes.
fn measure(arguments: &str) -> (String, Value) {
    let name = arguments.split(' ').next().unwrap_or_default();
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("figures.json");
    let table = lab(&format!("bench {arguments} --json {}", file.display())).well();
    let json = fs::read_to_string(&file).expect("the figures");
    let mut json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["bench"], name);
    for origin in ["vcc_version", "command", "machine", "finished_unix_s"] {
        assert!(!json[origin].is_null(), "{origin}: {json}");
    }
    (table, json["measurements"].take())
}

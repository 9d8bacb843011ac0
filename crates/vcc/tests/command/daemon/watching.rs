//! The daemon over HTTP: what it serves is what it does.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use serde_json::Value;
use vcc_port::Port;
use vcc_testing::{guest, ip, on_a_host};

use super::{Daemon, POLICY, Place};
use crate::wire::{connect, exchange};

/// The answer's first line and its body.
pub fn get(address: &str, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")
        .expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("UTF-8");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a header");
    (head.lines().next().unwrap_or_default().to_owned(), body.to_owned())
}

/// Where a daemon serves, of which no later line of the log was waited for.
pub(super) fn address(daemon: &Daemon) -> String {
    let log_line = daemon.wait_for_log("web page at http://");
    let (_, address) = log_line.split_once("http://").expect("an address");
    address.trim_end_matches('/').to_owned()
}

/// Answers may be a second old.
pub(super) fn eventually(
    address: &str,
    path: &str,
    is_it: impl Fn(&(String, String)) -> bool,
) -> (String, String) {
    for _ in 0..300 {
        let answer = get(address, path);
        if is_it(&answer) {
            return answer;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("{path}: {:?}", get(address, path))
}

fn metric(text: &str, line: &str) -> f64 {
    let value = text.lines().find_map(|it| it.strip_prefix(line));
    value.unwrap_or_else(|| panic!("no {line} in {text}")).trim().parse().expect("a number")
}

/// The daemon alone knows them: ports are pinned without.
#[test]
fn tenants_are_shown_with_flows_and_ports() {
    on_a_host(|| {
        let guest = guest();
        let place = Place::new("tenants", POLICY);
        let daemon = place.run();
        daemon.wait_for_log("port: attached, port 0, of tenant acme");
        let none = place.vcc("flows").well();
        assert!(none.starts_with("no connections"), "{none}");
        let (mut one, mut other) = connect(&guest);
        exchange(&mut one, &mut other);
        for command in ["flows", "ports"] {
            let text = place.vcc(&format!("{command} --json")).well();
            let rows: Value = serde_json::from_str(&text).expect("JSON");
            assert_eq!(rows[0]["tenant"], "acme", "{command}: {text}");
        }
        let flows = place.vcc("flows").well();
        assert!(flows.contains("TENANT") && flows.contains("acme"), "{flows}");
        let filtered = place.vcc("flows --stage closed").well();
        assert_eq!(filtered, "no connection matches the filter\n");
    });
}

#[test]
fn metrics_health_and_page_are_of_the_ports_that_there_are() {
    on_a_host(|| {
        ip("link set lo up");
        let _guest = guest();
        let place = Place::new("watching", POLICY);
        let daemon = place.run_at("127.0.0.1:0");
        let address = &*address(&daemon);

        let (status, metrics) = eventually(address, "/metrics", |(_, metrics)| {
            metric(metrics, "vcc_policy_epoch ") == 1.0 && metrics.contains("device=\"port\"")
        });
        assert!(status.contains(" 200 "), "{status}");
        assert!(metrics.contains("tenant=\"acme\""), "{metrics}");
        let (status, health) = get(address, "/healthz");
        assert!(status.contains(" 200 "), "{status}: {health}");
        let (status, page) = get(address, "/");
        assert!(
            status.contains(" 200 ") && page.to_lowercase().starts_with("<!doctype html"),
            "{status}"
        );

        // The error of a policy is shown, and the previous policy stays in force.
        place.write("[[rules]]\nname = \"x\"\nunderlay = \"dctpc\"\n");
        daemon.signal(libc::SIGHUP);
        daemon.wait_for_log("dctpc");
        let (_, health) = eventually(address, "/healthz", |(status, _)| status.contains(" 503 "));
        let health: Value = serde_json::from_str(&health).expect("JSON");
        let [problem] = &health["problems"].as_array().expect("problems")[..] else {
            panic!("one thing is wrong: {health}")
        };
        assert_eq!(problem["about"], "policy");
        assert!(problem["what"].as_str().expect("text").contains("failed"), "{health}");
        let (_, metrics) = get(address, "/metrics");
        assert_eq!(metric(&metrics, "vcc_problems "), 1.0);
        assert_eq!(metric(&metrics, "vcc_policy_epoch "), 1.0);
    });
}

#[test]
fn an_address_in_use_is_reported_before_any_change() {
    on_a_host(|| {
        ip("link set lo up");
        let _guest = guest();
        let place = Place::new("taken", POLICY);
        let taken = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let address = taken.local_addr().expect("an address");
        let run = format!("run --config FILE --listen {address}");
        let complaint = place.vcc(&run).complaint(1);
        assert!(complaint.contains(&format!("cannot listen on {address}")), "{complaint}");
        assert!(complaint.contains("--listen"), "{complaint}");
        assert!(Port::list().expect("a list").is_empty());
        let complaint = place.vcc("run --config FILE --listen here").complaint(2);
        assert!(complaint.contains("127.0.0.1:9644"), "{complaint}");
    });
}

/// A nearly full table is reported everywhere, because new connections escape the policy when it is
/// full.
#[test]
fn a_nearly_full_table_is_reported() {
    on_a_host(|| {
        ip("link set lo up");
        let guest = guest();
        let small = POLICY.replace("tenant", "max_flows = 4\ntenant");
        let place = Place::new("full", &small);
        let daemon = place.run_at("127.0.0.1:0");
        let log_line = daemon.wait_for_log("web page at http://");
        let (_, address) = log_line.split_once("http://").expect("an address");
        let address = address.trim_end_matches('/');
        let health = |part: &str| {
            eventually(address, "/healthz", |(status, _)| status.contains(part));
        };
        health(" 200 ");
        let talks: Vec<_> = (0..4).map(|_| connect(&guest)).collect();
        daemon.wait_for_log("port: the flow table is nearly full");
        let problems = place.status()["problems"].to_string();
        assert!(problems.contains("raise max_flows"), "{problems}");
        health(" 503 ");
        eventually(address, "/metrics", |(_, text)| metric(text, "vcc_problems ") == 1.0);
        drop(talks);
        daemon.wait_for_log("port: the flow table has free entries again");
        health(" 200 ");
    });
}

use super::*;
use crate::snapshot::{Daemon, Port, Rule};

const SECOND: Duration = Duration::from_secs(1);

/// One port, one rule, and time that passes a second at a time.
struct Host {
    ledger: Ledger,
    now: Instant,
    snapshot: Snapshot,
}

impl Host {
    fn new() -> Self {
        let port = Port {
            device: "tap0".into(),
            tenant: None,
            index: Some(0),
            max_flows: 10,
            counters: Vec::new(),
            failure: None,
        };
        let rule = Rule {
            name: "web".into(),
            mode: "enforce".into(),
            underlay: "dctcp".into(),
            ended: Totals::default(),
        };
        let snapshot = Snapshot {
            at: std::time::SystemTime::UNIX_EPOCH,
            daemon: Daemon::default(),
            epoch: 1,
            ports: vec![port],
            rules: vec![rule],
            pools: Vec::new(),
            flows: Vec::new(),
        };
        Self { ledger: Ledger::default(), now: Instant::now(), snapshot }
    }

    fn open(&mut self, guest_port: u16) -> &mut Flow {
        let mut flow = crate::testing::snapshot(1).flows[0].clone();
        flow.guest.set_port(guest_port);
        (flow.port, flow.rule, flow.is_current) = (0, Some("web".into()), true);
        (flow.snd_una, flow.counts) = (1, Counts::default());
        (flow.window_shown_bytes, flow.srtt_us) = (Some(1 << 20), Some(100));
        self.snapshot.flows.push(flow);
        self.snapshot.rules[0].ended.connections += 1;
        self.snapshot.flows.last_mut().expect("just pushed")
    }

    /// The kernel adds it to its rule.
    fn end(&mut self, at: usize) {
        let flow = self.snapshot.flows.remove(at);
        self.snapshot.rules[0].ended.counts += flow.counts;
    }

    fn reload(&mut self) {
        self.snapshot.epoch += 1;
        let connections = self.snapshot.flows.len() as u64;
        self.snapshot.rules[0].ended = Totals { connections, counts: Counts::default() };
    }

    fn enter(&mut self) -> Activity {
        self.now += SECOND;
        self.ledger.enter(&self.snapshot, self.now)
    }

    fn totals(&mut self) -> (u64, u64) {
        let totals = self.enter().rules[0];
        (totals.connections, totals.counts.marks)
    }
}

#[test]
fn totals_begin_at_zero_and_survive_the_end_of_connections() {
    let mut host = Host::new();
    host.open(1).counts.marks = 100;
    assert_eq!(host.totals(), (0, 0));
    host.snapshot.flows[0].counts.marks = 130;
    host.open(2).counts.marks = 5;
    assert_eq!(host.totals(), (1, 35));
    host.end(0);
    assert_eq!(host.totals(), (1, 35));
    host.end(0);
    host.open(3).counts.marks = 1;
    assert_eq!(host.totals(), (2, 36));
}

#[test]
fn a_connection_that_is_in_no_sum_for_a_moment_takes_nothing_back() {
    let mut host = Host::new();
    assert_eq!(host.totals(), (0, 0));
    host.open(1).counts.marks = 50;
    assert_eq!(host.totals(), (1, 50));
    let flow = host.snapshot.flows.remove(0);
    assert_eq!(host.totals(), (1, 50));
    host.snapshot.rules[0].ended.counts += flow.counts;
    assert_eq!(host.totals(), (1, 50));
}

#[test]
fn a_reload_counts_nothing_twice_and_loses_nothing() {
    let mut host = Host::new();
    assert_eq!(host.totals(), (0, 0));
    host.open(1).counts.marks = 50;
    host.open(2).counts.marks = 7;
    host.end(1);
    assert_eq!(host.totals(), (2, 57));
    for reload in 1..=3 {
        host.reload();
        host.snapshot.flows[0].counts.marks += 10;
        assert_eq!(host.totals(), (2, 57 + reload * 10));
    }
    host.end(0);
    assert_eq!(host.totals(), (2, 87));
    host.open(3).counts.marks = 1;
    assert_eq!(host.totals(), (3, 88));
}

#[test]
fn a_connection_that_comes_late_under_an_edition_is_counted_once() {
    let mut host = Host::new();
    assert_eq!(host.totals(), (0, 0));
    host.open(1).counts.marks = 50;
    assert_eq!(host.totals(), (1, 50));
    host.snapshot.epoch += 1;
    host.snapshot.rules[0].ended = Totals::default();
    host.snapshot.flows[0].is_current = false;
    assert_eq!(host.totals(), (1, 50));
    host.snapshot.flows[0].is_current = true;
    host.snapshot.rules[0].ended.connections = 1;
    host.snapshot.flows[0].counts.marks = 51;
    assert_eq!(host.totals(), (1, 51));
}

#[test]
fn a_rule_that_a_reload_brings_has_what_came_since() {
    let mut host = Host::new();
    host.open(1).counts.marks = 50;
    assert_eq!(host.totals(), (0, 0));
    host.reload();
    host.snapshot.rules[0].name = "other".into();
    host.snapshot.flows[0].rule = Some("other".into());
    host.snapshot.flows[0].counts.marks = 53;
    assert_eq!(host.totals(), (0, 3));
}

#[test]
fn acknowledged_bytes_are_counted_over_the_wrap() {
    let mut host = Host::new();
    host.open(1).snd_una = u32::MAX - 999;
    let before = host.enter();
    assert_eq!(before.flows[0].acked_bytes_per_s, None);
    host.snapshot.flows[0].snd_una = 4000;
    let after = host.enter();
    assert_eq!(after.flows[0].acked_bytes_per_s, Some(5000.0));
    assert_eq!(after.flows[0].id, before.flows[0].id);
    assert_eq!(after.ports[0].acked_bytes, 5000);
    host.end(0);
    assert_eq!(host.enter().ports[0].acked_bytes, 5000);
}

#[test]
fn another_connection_with_the_same_ends_is_not_taken_for_it() {
    let mut host = Host::new();
    host.open(1).counts.marks = 9;
    host.enter();
    host.snapshot.flows[0].counts.marks = 1;
    host.snapshot.flows[0].snd_una = 1_000_000_000;
    let activity = host.enter();
    assert_eq!(activity.flows[0].acked_bytes_per_s, None);
    assert_eq!(activity.ports[0].acked_bytes, 0);
    host.snapshot.flows[0].snd_una = 2_000_000_000;
    host.snapshot.flows[0].window_shown_bytes = Some(1440);
    host.snapshot.flows[0].srtt_us = Some(100_000);
    host.enter();
    host.snapshot.flows[0].snd_una = 3_000_000_000;
    assert_eq!(host.enter().ports[0].acked_bytes, 0, "no window of a segment admits that");
}

/// Acknowledged bytes of each port.
fn acked_bytes(host: &mut Host) -> Vec<u64> {
    host.enter().ports.iter().map(|port| port.acked_bytes).collect()
}

#[test]
fn ports_of_one_name_are_not_taken_for_each_other() {
    let mut host = Host::new();
    host.snapshot.ports.push(host.snapshot.ports[0].clone());
    host.open(1);
    // In another network namespace the ends may be the same.
    host.open(1).port = 1;
    let ids: Vec<u64> = host.enter().flows.iter().map(|flow| flow.id).collect();
    assert_ne!(ids[0], ids[1]);
    host.snapshot.flows[0].snd_una += 1000;
    host.snapshot.flows[1].snd_una += 20;
    assert_eq!(acked_bytes(&mut host), [1000, 20]);
    assert_eq!(acked_bytes(&mut host), [1000, 20]);
    // One goes, and the sum is what it was.
    host.snapshot.ports.remove(0);
    host.end(0);
    host.snapshot.flows[0].port = 0;
    assert_eq!(acked_bytes(&mut host), [1020]);
}

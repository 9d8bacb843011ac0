use vcc_engine::{FlowState, sys};
use vcc_view::{FlowView, PortView, Totals, testing};

use super::*;
use crate::snapshot::Daemon;

const SECOND: Duration = Duration::from_secs(1);

/// One port, one rule, and time that passes a second at a time.
struct Host {
    ledger: Ledger,
    now: Instant,
    snapshot: Snapshot,
}

impl Host {
    fn new() -> Self {
        let port = PortView { index: Some(0), ..testing::port("tap0") };
        let rule = testing::rule("web");
        let snapshot = Snapshot {
            tables_bytes: None,
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

    fn open(&mut self, guest_port: u16) -> &mut FlowView {
        let state = FlowState(sys::vcc_flow {
            snd_una: 1,
            window_shown: 1 << 10,
            wscale_shown: 10,
            srtt_us8: 100 * 8,
            ..testing::state().0
        });
        let guest = format!("192.0.2.1:{guest_port}");
        let mut flow = testing::flow_of(&guest, "192.0.2.2:80", state);
        flow.key.0 = "tap0".into();
        (flow.rule, flow.is_current) = (Some("web".into()), true);
        self.snapshot.flows.push(flow);
        self.snapshot.rules[0].ended.connections += 1;
        self.snapshot.flows.last_mut().expect("just pushed")
    }

    fn state(&mut self, at: usize) -> &mut sys::vcc_flow {
        &mut self.snapshot.flows[at].state.0
    }

    /// The kernel adds it to its rule.
    fn end(&mut self, at: usize) {
        let flow = self.snapshot.flows.remove(at);
        self.snapshot.rules[0].ended.counts += Counts::from_state(&flow.state);
    }

    fn reload(&mut self) {
        self.snapshot.epoch += 1;
        let connections = self.snapshot.flows.len() as u64;
        self.snapshot.rules[0].ended = Totals { connections, counts: Counts::default() };
    }

    fn enter(&mut self) -> Activity {
        self.now += SECOND;
        self.ledger.enter(&mut self.snapshot, self.now)
    }

    fn totals(&mut self) -> (u64, u64) {
        self.enter();
        let rule = &self.snapshot.rules[0];
        (rule.connections, rule.sums.growth.expect("counted").counts.marks)
    }

    /// What each port's connections had acknowledged since the first snapshot.
    fn acked_bytes(&mut self) -> Vec<u64> {
        self.enter();
        let growth = self.snapshot.ports.iter().map(|port| port.sums.growth.expect("counted"));
        growth.map(|growth| growth.acked_bytes).collect()
    }
}

#[test]
fn totals_begin_at_zero_and_survive_the_end_of_connections() {
    let mut host = Host::new();
    host.open(1).state.0.marks = 100;
    assert_eq!(host.totals(), (0, 0));
    host.state(0).marks = 130;
    host.open(2).state.0.marks = 5;
    assert_eq!(host.totals(), (1, 35));
    host.end(0);
    assert_eq!(host.totals(), (1, 35));
    host.end(0);
    host.open(3).state.0.marks = 1;
    assert_eq!(host.totals(), (2, 36));
}

#[test]
fn a_connection_that_is_in_no_sum_for_a_moment_takes_nothing_back() {
    let mut host = Host::new();
    assert_eq!(host.totals(), (0, 0));
    host.open(1).state.0.marks = 50;
    assert_eq!(host.totals(), (1, 50));
    let flow = host.snapshot.flows.remove(0);
    assert_eq!(host.totals(), (1, 50));
    host.snapshot.rules[0].ended.counts += Counts::from_state(&flow.state);
    assert_eq!(host.totals(), (1, 50));
}

#[test]
fn a_reload_counts_nothing_twice_and_loses_nothing() {
    let mut host = Host::new();
    assert_eq!(host.totals(), (0, 0));
    host.open(1).state.0.marks = 50;
    host.open(2).state.0.marks = 7;
    host.end(1);
    assert_eq!(host.totals(), (2, 57));
    for reload in 1..=3 {
        host.reload();
        host.state(0).marks += 10;
        assert_eq!(host.totals(), (2, 57 + reload * 10));
    }
    host.end(0);
    assert_eq!(host.totals(), (2, 87));
    host.open(3).state.0.marks = 1;
    assert_eq!(host.totals(), (3, 88));
}

#[test]
fn a_connection_that_comes_late_under_an_edition_is_counted_once() {
    let mut host = Host::new();
    assert_eq!(host.totals(), (0, 0));
    host.open(1).state.0.marks = 50;
    assert_eq!(host.totals(), (1, 50));
    host.snapshot.epoch += 1;
    host.snapshot.rules[0].ended = Totals::default();
    host.snapshot.flows[0].is_current = false;
    assert_eq!(host.totals(), (1, 50));
    host.snapshot.flows[0].is_current = true;
    host.snapshot.rules[0].ended.connections = 1;
    host.state(0).marks = 51;
    assert_eq!(host.totals(), (1, 51));
}

#[test]
fn a_rule_that_a_reload_brings_has_what_came_since() {
    let mut host = Host::new();
    host.open(1).state.0.marks = 50;
    assert_eq!(host.totals(), (0, 0));
    host.reload();
    host.snapshot.rules[0].name = "other".into();
    host.snapshot.flows[0].rule = Some("other".into());
    host.state(0).marks = 53;
    assert_eq!(host.totals(), (0, 3));
}

/// The sums of `vcc domain` continue over the daemon's editions, and end with their process.
#[test]
fn a_domain_s_sums_are_counted_once_over_reloads_and_restarts() {
    let mut host = Host::new();
    let totals =
        |connections, marks| Totals { connections, counts: Counts { marks, ..Counts::default() } };
    let of = |connections, marks| vec![("tap1".to_owned(), totals(connections, marks))];
    host.snapshot.rules[0].in_domains = of(3, 1000);
    assert_eq!(host.totals(), (0, 0), "what was before");
    host.snapshot.rules[0].in_domains = of(4, 1050);
    assert_eq!(host.totals(), (1, 50));
    for _ in 0..3 {
        host.reload();
        assert_eq!(host.totals(), (1, 50));
    }
    host.snapshot.rules[0].in_domains = of(1, 7);
    assert_eq!(host.totals(), (2, 57), "it began anew");
    // It does not answer for a moment.
    host.snapshot.rules[0].in_domains.clear();
    assert_eq!(host.totals(), (2, 57));
    host.snapshot.rules[0].in_domains = of(1, 8);
    assert_eq!(host.totals(), (2, 58));
    // With it, a rule may be missing that no other one has.
    let rules = std::mem::take(&mut host.snapshot.rules);
    host.enter();
    host.snapshot.rules = rules;
    host.snapshot.rules[0].in_domains = of(1, 9);
    assert_eq!(host.totals(), (2, 59));
}

#[test]
fn acknowledged_bytes_are_counted_over_the_wrap() {
    let mut host = Host::new();
    host.open(1).state.0.snd_una = u32::MAX - 999;
    let before = host.enter();
    assert_eq!(host.snapshot.flows[0].rates, None);
    host.state(0).snd_una = 4000;
    let after = host.enter();
    let rates = host.snapshot.flows[0].rates.expect("rates");
    assert_eq!(rates.goodput_bits_per_s, 40_000.0);
    assert_eq!(after.flow_ids, before.flow_ids);
    let [port, rule] = [&host.snapshot.ports[0].sums, &host.snapshot.rules[0].sums];
    for sums in [port, rule, &after.all] {
        assert_eq!(sums.growth.map(|growth| growth.acked_bytes), Some(5000));
        assert_eq!(sums.rates.map(|rates| rates.goodput_bits_per_s), Some(40_000.0));
    }
    host.end(0);
    assert_eq!(host.acked_bytes(), [5000]);
    assert_eq!(host.snapshot.ports[0].sums.rates.map(|it| it.goodput_bits_per_s), Some(20_000.0));
}

#[test]
fn another_connection_with_the_same_ends_is_not_taken_for_it() {
    let mut host = Host::new();
    host.open(1).state.0.marks = 9;
    host.enter();
    host.state(0).marks = 1;
    host.state(0).snd_una = 1_000_000_000;
    assert_eq!(host.acked_bytes(), [0]);
    assert_eq!(host.snapshot.flows[0].rates, None);
    host.state(0).snd_una = 2_000_000_000;
    (host.state(0).window_shown, host.state(0).wscale_shown) = (1440, 0);
    host.state(0).srtt_us8 = 100_000 * 8;
    host.enter();
    host.state(0).snd_una = 3_000_000_000;
    assert_eq!(host.acked_bytes(), [0], "no window of a segment admits that");
}

#[test]
fn ports_of_one_name_are_not_taken_for_each_other() {
    let mut host = Host::new();
    host.snapshot.ports.push(host.snapshot.ports[0].clone());
    host.open(1);
    // In another network namespace the ends may be the same.
    let other = host.open(1);
    (other.port_index, other.key.0) = (1, "tap0 2".into());
    let ids = host.enter().flow_ids;
    assert_ne!(ids[0], ids[1]);
    host.state(0).snd_una += 1000;
    host.state(1).snd_una += 20;
    assert_eq!(host.acked_bytes(), [1000, 20]);
    assert_eq!(host.acked_bytes(), [1000, 20]);
    // One goes, and the sum is what it was.
    host.snapshot.ports.remove(0);
    host.end(0);
    let left = &mut host.snapshot.flows[0];
    (left.port_index, left.key.0) = (0, "tap0".into());
    assert_eq!(host.acked_bytes(), [1020]);
}

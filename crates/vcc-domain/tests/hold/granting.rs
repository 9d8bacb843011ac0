//! What the port reports to a guest's congestion control.

use std::sync::Arc;

use vcc_domain::{BufferSpec, Grant, Port, Rule, Rules};
use vcc_engine::{BufferPolicy, FlowKey, Mode, Params, Underlay, sys};

use crate::ends::{Ends, Guest, INITIAL_WINDOW_BYTES, MSS_BYTES, holding};
use crate::retransmit::repairing;

const BUFFER_BYTES: u32 = 300_000;

fn buffer() -> BufferSpec {
    BufferSpec { size_bytes: BUFFER_BYTES, policy: BufferPolicy::Fair }
}

/// All grants, by the places of the table in turn.
fn grants(port: &Port) -> Vec<Grant> {
    let (mut grants, mut next) = (Vec::new(), Some(0));
    while let Some(from) = next {
        next = port.grants(from, 3, &mut grants);
    }
    grants.sort_by_key(|grant| grant.key);
    grants
}

fn window_bytes(guest: &Guest, ends: &Ends) -> Option<u32> {
    let mut all = grants(&guest.port).into_iter().filter(|grant| grant.key == ends.key());
    all.next().expect("an established connection").window_bytes
}

#[test]
fn each_established_connection_has_a_grant_and_others_none() {
    let mut guest = Guest::new();
    for number in 0..20 {
        let ends = Ends::new(number);
        let _ = guest.send(&ends.syn());
        assert_eq!(grants(&guest.port).len(), usize::from(number));
        ends.open(&mut guest, 60_000);
    }
    let keys: Vec<FlowKey> = grants(&guest.port).iter().map(|grant| grant.key).collect();
    assert_eq!(keys, (0..20).map(|number| Ends::new(number).key()).collect::<Vec<_>>());
}

#[test]
fn a_grant_shrinks_with_the_share_and_the_shown_window_does_not() {
    let mut guest = Guest::with_buffer(buffer());
    let [first, second] = [0, 1].map(Ends::new);
    first.open(&mut guest, 60_000);
    let alone_bytes = window_bytes(&guest, &first).expect("held");
    assert_eq!(alone_bytes, BUFFER_BYTES / 2 + INITIAL_WINDOW_BYTES);
    let shown = first.flow(&guest).right_edge;
    second.open(&mut guest, 60_000);
    for offset in 0..60 {
        let _ = guest.send(&second.data(offset * MSS_BYTES as u32, MSS_BYTES));
    }
    let beside_bytes = window_bytes(&guest, &first).expect("held");
    assert!(beside_bytes < alone_bytes, "{beside_bytes}");
    assert_eq!(first.flow(&guest).right_edge, shown, "law 2");

    // With so much held, the second is offline.
    guest.port.set_buffer(BufferSpec { size_bytes: BUFFER_BYTES / 4, ..buffer() });
    let _ = guest.receive(&second.peer_ack(0, 60_000));
    assert_eq!(window_bytes(&guest, &second), None, "its share is full");
}

#[test]
fn what_the_port_retains_is_a_part_of_the_grant() {
    let mut guest = Guest::with(repairing(), buffer());
    let ends = Ends::new(0);
    ends.open(&mut guest, 60_000);
    let _ = guest.send(&ends.data(0, MSS_BYTES));
    let grant = grants(&guest.port)[0];
    assert_eq!((grant.window_bytes, grant.repaired), (Some(BUFFER_BYTES / 2), 0));
    // Its tail loss probe and its timeout.
    guest.wait_ms(3000);
    let grant = grants(&guest.port)[0];
    assert!(grant.repaired > 0, "{grant:?}");
}

#[test]
fn a_connection_under_another_rule_has_no_grant() {
    let mut guest = Guest::new();
    let ends = Ends::new(0);
    ends.open(&mut guest, 60_000);
    assert!(window_bytes(&guest, &ends).is_some());
    guest.port.set_params(Params::default());
    let _ = guest.receive(&ends.peer_ack(0, 60_000));
    assert_eq!(window_bytes(&guest, &ends), None);
    let shadow = |params: &mut sys::vcc_params| params.mode = Mode::Shadow.number();
    let mut guest = Guest::with(Params::with(shadow), buffer());
    ends.open(&mut guest, 60_000);
    assert_eq!(window_bytes(&guest, &ends), None);
}

#[test]
fn new_connections_are_held_if_none_may_pass_as_it_likes() {
    let with = |change: fn(&mut sys::vcc_params)| {
        let mut params = holding();
        change(&mut params.0);
        Guest::with(params, buffer()).port.holds_new()
    };
    assert!(with(|_| {}));
    assert!(with(|params| params.act = sys::ACT_SPLIT as u8));
    assert!(!with(|params| params.act = sys::ACT_WINDOW as u8));
    for mode in [Mode::Shadow, Mode::Ignore, Mode::Drain] {
        let mut params = holding();
        params.0.mode = mode.number();
        assert!(!Guest::with(params, buffer()).port.holds_new(), "{mode:?}");
    }

    let mut guest = Guest::with_buffer(buffer());
    let rules = |all: &[Params]| Rules {
        rules: all.iter().map(|params| Rule { name: String::new(), params: *params }).collect(),
        judge: Arc::new(|_: &FlowKey, _| 0),
        polices: false,
        pools: Vec::new(),
    };
    let ignored = Params::with(|params| params.mode = Mode::Ignore.number());
    let transparent: Underlay = "transparent".parse().expect("an underlay");
    let transparent = Params::with(|params| params.underlay = transparent.number());
    for (all, expected) in [
        // One that is not held is shown a window.
        (vec![holding(), Params::default()], true),
        (vec![Params::default()], false),
        (vec![holding(), ignored], false),
        (vec![holding(), transparent], false),
    ] {
        guest.port.set_rules(rules(&all));
        assert_eq!(guest.port.holds_new(), expected, "{all:?}");
    }

    let mut port = Port::with_buffer(holding(), 0, buffer());
    assert!(!port.holds_new(), "the table is full");
    port.set_params(Params::default());
    assert!(!port.holds_new());
}

//! What a port hands over, and what it takes.

use std::iter;

use vcc_domain::{BufferSpec, CannotTakeOver, Frame, Out, Port};
use vcc_engine::{Mode, Params, sys};

use crate::common::rules::by_guest_port;
use crate::common::sealed::{edited, resealed};
use crate::ends::{Ends, Guest, MSS_BYTES};
use crate::split::{begun, splitting};

const MSS: u32 = MSS_BYTES as u32;
const WINDOW_BYTES: u32 = 60_000;
const SENT: u32 = 25;

/// A connection of which the port has promised more than has left.
fn promised() -> (Ends, Guest) {
    let ends = Ends::new(0);
    let mut guest = begun(&ends);
    for number in 0..SENT {
        let _ = guest.send(&ends.data(number * MSS, MSS_BYTES));
    }
    assert!(guest.port.held_bytes() > SENT * MSS);
    (ends, guest)
}

fn state_of(guest: &Guest) -> Vec<u8> {
    let (connections, state) = guest.port.hand_over("vcc 1.2.3", iter::empty());
    assert_eq!(connections, 1);
    state
}

fn fresh(params: Params) -> Port {
    Port::with_buffer(params, 64, BufferSpec::default())
}

fn taken(state: &[u8]) -> Result<usize, CannotTakeOver> {
    let mut port = fresh(splitting());
    let taken = port.take_over(0, state);
    if taken.is_err() {
        assert_eq!((port.flows().count(), port.held_bytes()), (0, 0), "nothing of it is there");
    }
    taken.map(|arrived| arrived.connections)
}

#[test]
fn what_is_promised_arrives_from_the_other_port() {
    let (mut ends, mut guest) = promised();
    let held_bytes = guest.port.held_bytes();
    let state = state_of(&guest);
    guest.port = fresh(splitting());
    guest.left.clear();
    guest.port.take_over(guest.now_ns, &state).expect("a state");
    assert_eq!(guest.port.held_bytes(), held_bytes);
    let mut out = Out::default();
    guest.port.go_on(guest.now_ns, &mut out);
    assert!(out.to_guest.is_empty(), "the guest has heard");
    // What was in flight is lost here: it is sent again, as it is not answered.
    for _ in 0..40 {
        guest.wait_ms(50);
        ends.drain(&mut guest, WINDOW_BYTES);
    }
    assert_eq!((ends.in_sequence, guest.port.held_bytes()), (SENT * MSS, 0));
    for number in SENT..SENT + 3 {
        let _ = guest.send(&ends.data(number * MSS, MSS_BYTES));
    }
    ends.drain(&mut guest, WINDOW_BYTES);
    assert_eq!(ends.in_sequence, (SENT + 3) * MSS);
}

#[test]
fn the_port_before_goes_on_if_the_guest_stays() {
    let (mut ends, mut guest) = promised();
    let _ = state_of(&guest);
    guest.port.suspend_ledger();
    guest.port.go_on(guest.now_ns, &mut Out::default());
    ends.drain(&mut guest, WINDOW_BYTES);
    assert_eq!((ends.in_sequence, guest.port.held_bytes()), (SENT * MSS, 0));
}

#[test]
fn a_port_whose_guest_has_gone_has_nothing_and_ends_nothing() {
    let (_, mut guest) = promised();
    guest.port.has_gone();
    assert_eq!((guest.port.flows().count(), guest.port.held_bytes()), (0, 0));
    let mut out = Out::default();
    guest.port.end(guest.now_ns, &mut out);
    assert_eq!(out, Out::default());
}

#[test]
fn frames_that_wait_for_the_guest_go_along() {
    let (_, guest) = promised();
    let waiting = [Frame::full(vec![7; 90]), Frame { gso_size: 9, ..Frame::full(vec![8; 100]) }];
    let (_, state) = guest.port.hand_over("vcc", waiting.iter().zip([true, false]));
    let arrived = fresh(splitting()).take_over(0, &state).expect("a state");
    let [first, second] = waiting;
    let waiting = arrived.waiting.into_iter();
    let waiting: Vec<_> = waiting.map(|(frame, receipt)| (frame, receipt.is_some())).collect();
    assert_eq!(waiting, [(first, true), (second, false)]);
}

#[test]
fn each_end_of_it_that_is_missing_is_missed() {
    let state = state_of(&promised().1);
    for bytes in (0..300).chain((300..state.len() - 1).step_by(97)).chain([state.len() - 2]) {
        assert!(taken(&state[..bytes]).is_err(), "{bytes} of {} bytes", state.len());
    }
    assert_eq!(taken(&[]), Err(CannotTakeOver::NotOurs));
    let first_line = state.iter().position(|byte| *byte == b'\n').expect("a line") + 1;
    assert_eq!(taken(&state[..first_line]), Err(CannotTakeOver::CutShort));
    assert_eq!(taken(&state), Ok(1));
}

#[test]
fn each_byte_that_is_changed_is_noticed() {
    let state = state_of(&promised().1);
    for at in (0..1500).chain((1500..state.len()).step_by(61)).chain(state.len() - 20..state.len())
    {
        let mut changed = state.clone();
        changed[at] ^= 1;
        assert!(taken(&changed).is_err(), "byte {at}");
    }
}

#[test]
fn other_versions_are_recognised() {
    let state = state_of(&promised().1);
    let of = |from, to| taken(&edited(&state, from, to));
    assert_eq!(of("\"vcc_domain\":1", "\"vcc_domain\":9"), Err(CannotTakeOver::OtherFormat(9)));
    assert_eq!(of("\"ack_segs64\"", "\"of_tomorrow\""), Err(CannotTakeOver::Lacks("ack_segs64")));
    assert_eq!(of("\"kept_from\"", "\"not_at_all\""), Err(CannotTakeOver::Row(1)));
    // What a later version adds is no reason to refuse it.
    assert_eq!(of("\"kept_from\"", "\"of_tomorrow\":5,\"kept_from\""), Ok(1));
    assert_eq!(taken(b"{\"vcc_export\":1}\n"), Err(CannotTakeOver::NotOurs));
}

/// The first two segments, of which the second is to begin within the first.
#[test]
fn segments_that_overlap_are_none_that_were_retained() {
    const MOVED: u32 = 500;
    let ends = Ends::new(0);
    let mut guest = begun(&ends);
    for number in 0..2 {
        let _ = guest.send(&ends.data(number * MSS, MSS_BYTES));
    }
    let state = state_of(&guest);
    assert_eq!(taken(&state), Ok(1));
    let [before, after] = [ends.seq(2 * MSS), ends.seq(2 * MSS - MOVED)];
    let of = |number| format!("\"promised\":{number}");
    let mut changed = edited(&state, &of(before), &of(after));
    let second = ends.seq(MSS).to_be_bytes();
    let at = changed.windows(4).rposition(|part| part == second).expect("a segment");
    changed[at..at + 4].copy_from_slice(&ends.seq(MSS - MOVED).to_be_bytes());
    assert_eq!(taken(&resealed(&changed)), Err(CannotTakeOver::Row(1)));
}

/// Even if the rules here leave it alone.
#[test]
fn a_promise_without_its_bytes_is_none_under_any_rule() {
    let params = Params(sys::vcc_params { migratable: 1, ..splitting().0 });
    let mut ends = Ends::new(0);
    let mut guest = Guest::with(params, BufferSpec::default());
    ends.open(&mut guest, 60_000);
    let _ = guest.send(&ends.data(0, MSS_BYTES));
    ends.drain(&mut guest, WINDOW_BYTES);
    let state = state_of(&guest);
    let ignoring = Params(sys::vcc_params { mode: Mode::Ignore.number(), ..splitting().0 });
    let port = || {
        let mut port = fresh(splitting());
        port.set_rules(by_guest_port(&[ignoring]));
        port
    };
    let mut left_alone = port();
    assert_eq!(left_alone.take_over(0, &state).map(|arrived| arrived.connections), Ok(1));
    assert_eq!(left_alone.flows().count(), 0);
    let of = |bytes| format!("\"promised\":{}", ends.seq(bytes));
    let changed = edited(&state, &of(MSS), &of(2 * MSS));
    assert_eq!(port().take_over(0, &changed).map(drop), Err(CannotTakeOver::Row(1)));
}

/// Law 16: the port would lack in silence what it owes.
#[test]
fn a_state_that_lacks_a_part_of_what_is_promised_is_none() {
    let (ends, guest) = promised();
    let state = state_of(&guest);
    let promised = ends.seq(0).wrapping_add(SENT * MSS);
    let more = format!("\"promised\":{}", promised.wrapping_add(1));
    let changed = edited(&state, &format!("\"promised\":{promised}"), &more);
    assert_eq!(taken(&changed), Err(CannotTakeOver::Row(1)));
    // Another end's frames.
    let changed = edited(&state, "\"10.0.0.2:", "\"10.0.0.3:");
    assert_eq!(taken(&changed), Err(CannotTakeOver::Row(1)));
}

#[test]
fn what_is_here_already_is_not_replaced_while_it_owes_something() {
    let (mut ends, mut guest) = promised();
    let state = state_of(&guest);
    let key = *guest.port.flows().next().expect("a flow").0;
    let held_bytes = guest.port.held_bytes();
    let refused = guest.port.take_over(guest.now_ns, &state).map(drop);
    assert_eq!(refused, Err(CannotTakeOver::Here(key)));
    assert_eq!(guest.port.held_bytes(), held_bytes);
    ends.drain(&mut guest, WINDOW_BYTES);
    assert!(guest.port.take_over(guest.now_ns, &state_of(&guest)).is_ok());
    assert_eq!(guest.port.flows().count(), 1);
}

#[test]
fn a_port_without_room_or_that_drains_takes_nothing() {
    let state = state_of(&promised().1);
    let no_room = CannotTakeOver::NoRoom { connections: 1, max: 0 };
    let mut port = Port::with_buffer(splitting(), 0, BufferSpec::default());
    assert_eq!(port.take_over(0, &state).map(drop), Err(no_room));
    let mode = Mode::Drain.number();
    let mut port = fresh(Params(sys::vcc_params { mode, ..splitting().0 }));
    assert_eq!(port.take_over(0, &state).map(drop), Err(CannotTakeOver::Draining));
}

/// A front end may send what it likes: it is judged before it takes several times its length.
#[test]
fn a_state_of_more_than_there_can_be_is_not_read() {
    let state = state_of(&promised().1);
    let of = |from: &str, to: &str| taken(&edited(&state, from, to));
    let names = "\"\",".repeat(30_000);
    assert_eq!(of("\"fields\":[", &format!("\"fields\":[{names}")), Err(CannotTakeOver::NotOurs));
    // Invalid lines are not looked at.
    let lines = "\n".repeat(70);
    let more = edited(&state, "{\"flow\"", &format!("{lines}{{\"flow\""));
    let more = edited(&more, "\"connections\":1", "\"connections\":71");
    assert_eq!(taken(&more), Err(CannotTakeOver::NoRoom { connections: 71, max: 64 }));
    let ended = format!("\"ended\":{}", u64::MAX);
    assert_eq!(of("\"ended\":0", &ended), Err(CannotTakeOver::CutShort));
}

#[test]
fn the_longest_state_has_a_limit() {
    let limit_mib = |max_flows| {
        let port = Port::with_buffer(splitting(), max_flows, BufferSpec::default());
        port.state_limit_bytes() >> 20
    };
    assert_eq!([64, 1 << 16, 1 << 24].map(limit_mib), [40, 146, 552]);
}

/// The buffer is smaller, and full until enough has left.
#[test]
fn a_smaller_buffer_takes_what_comes() {
    let (mut ends, mut guest) = promised();
    let state = state_of(&guest);
    let small = BufferSpec { size_bytes: 8 << 10, ..BufferSpec::default() };
    guest.port = Port::with_buffer(splitting(), 64, small);
    guest.port.take_over(guest.now_ns, &state).expect("a state");
    guest.port.go_on(guest.now_ns, &mut Out::default());
    assert!(guest.port.held_bytes() > small.size_bytes);
    ends.drain(&mut guest, WINDOW_BYTES);
    assert_eq!((ends.in_sequence, guest.port.held_bytes()), (SENT * MSS, 0));
}

/// What a connection without anything held takes.
#[test]
fn a_connection_takes_a_few_hundred_bytes() {
    let (mut ends, mut guest) = promised();
    ends.drain(&mut guest, WINDOW_BYTES);
    let bytes = state_of(&guest).len();
    assert!((400..1400).contains(&bytes), "{bytes}, of which some 550 are not the connection's");
}

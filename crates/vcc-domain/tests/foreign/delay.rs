//! What a connection waits for, as the port reports it under each act: for its guest, which takes
//! turns of its core, or for a path of 20 ms.

use vcc_engine::{DelayedBy, sys};

use crate::US_PER_S;
use crate::path::{Side, Turns};
use crate::transfer::{MB, Transfer};

const TURNS: Turns = Turns { every_us: 300_000, runs_us: 1_000 };
/// It runs for a second, and then no more.
const STOPPED: Turns = Turns { every_us: 3_600 * US_PER_S, runs_us: US_PER_S };

type Treatment = fn(&mut sys::vcc_params);

fn window(params: &mut sys::vcc_params) {
    params.act = sys::ACT_WINDOW as u8;
}

fn hold(params: &mut sys::vcc_params) {
    params.act = sys::ACT_HOLD as u8;
}

fn retransmit(params: &mut sys::vcc_params) {
    (params.act, params.retransmit) = (sys::ACT_HOLD as u8, 1);
}

fn split(params: &mut sys::vcc_params) {
    params.act = sys::ACT_SPLIT as u8;
}

fn snoop(params: &mut sys::vcc_params) {
    (params.act, params.receive) = (sys::ACT_WINDOW as u8, sys::RECEIVE_RING as u8);
}

/// After two seconds of a stream. Without Nagle's algorithm (every third seed) smoltcp fills the window's rest with
/// a small segment, behind which nobody can know that there is more.
fn delayed_by(sender: Side, treatment: Treatment, turns: Option<Turns>) -> [Option<DelayedBy>; 4] {
    let verdict = |seed| {
        let mut stream_bytes = [0; 2];
        stream_bytes[sender as usize] = 16 * MB;
        let mut network = Transfer { treatment, stream_bytes, ..Transfer::new(seed) }.begin();
        network.turns = turns;
        network.run_until(2 * US_PER_S);
        let now_us = network.now_us();
        let port = network.port();
        let (_, flow) = port.flows().next().expect("the connection");
        flow.with_open_wait(port.params(), now_us).delayed_by()
    };
    [1, 2, 4, 5].map(verdict)
}

#[test]
fn a_guest_that_runs_is_not_what_a_long_path_takes() {
    for treatment in [window, hold, retransmit, split, snoop] {
        assert_eq!(delayed_by(Side::Guest, treatment, None), [Some(DelayedBy::Fabric); 4]);
    }
}

#[test]
fn a_guest_that_takes_turns_is_waited_for() {
    for treatment in [window, snoop] {
        assert_eq!(delayed_by(Side::Guest, treatment, Some(TURNS)), [Some(DelayedBy::Guest); 4]);
    }
    for treatment in [window, hold, retransmit, split] {
        assert_eq!(delayed_by(Side::Peer, treatment, Some(TURNS)), [Some(DelayedBy::Guest); 4]);
    }
}

/// The port sends on meanwhile. With the third seed the path is so fast that a connection's share of the buffer
/// has left long before the guest's next turn.
#[test]
fn a_guest_whose_data_is_held_is_not_waited_for() {
    let [fabric, guest] = [DelayedBy::Fabric, DelayedBy::Guest].map(Some);
    assert_eq!(delayed_by(Side::Guest, split, Some(TURNS)), [fabric, fabric, guest, fabric]);
}

/// The port acknowledges what has room, and the guest makes the room. With the last seed the peer's segments are so
/// small that they overflow the ring, and it waits for its own timers, which is a delay of neither.
#[test]
fn a_guest_that_makes_no_room_for_its_peer_is_waited_for() {
    let guest = Some(DelayedBy::Guest);
    assert_eq!(delayed_by(Side::Peer, snoop, Some(TURNS)), [guest, guest, guest, None]);
}

/// While it is stopped, and not only when it runs again and answers: the peer has used up its window.
#[test]
fn a_guest_that_is_stopped_is_waited_for_by_its_peer() {
    assert_eq!(delayed_by(Side::Peer, snoop, Some(STOPPED)), [Some(DelayedBy::Guest); 4]);
}

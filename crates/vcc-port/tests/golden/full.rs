//! Kernel and driver domain when a port's flow table is full.

use vcc_domain::Verdict;
use vcc_engine::{OnFull, Params};
use vcc_frames::wire::*;
use vcc_frames::{Packet, payload};
use vcc_port::{AttachOptions, Counter, Usage, counters};

use crate::conversation::{Connection, Shape};
use crate::direction::Direction::{self, FromGuest, ToGuest};
use crate::setup::usually;
use crate::shells::Shells;

fn shells(max_flows: u32, on_full: OnFull) -> Shells {
    let params = Params::with(|p| p.on_full = on_full.number());
    Shells::new(&AttachOptions { max_flows, ..usually(params) })
}

fn connection(opener: Direction, guest_port: u16) -> Connection {
    Connection::new(Shape { opener, ..Shape::plain(FromGuest) }, guest_port)
}

/// The verdict and the frame, which are the same in both.
fn send(shells: &mut Shells, from: Direction, packet: &Packet) -> (Verdict, Vec<u8>) {
    let output = shells.send("full", from, &packet.frame(), 0).expect("it runs");
    (output.verdict, output.frame)
}

/// Sends data of the guest, which leaves as ECT(0) if the connection is translated.
fn is_translated(shells: &mut Shells, connection: &Connection) -> bool {
    let data = Packet { payload: payload(100), ..connection.packet(FromGuest) };
    let (_, frame) = send(shells, FromGuest, &data);
    frame[ETHERNET_BYTES + 1] & ECN_MASK == ECT_0
}

fn usage(shells: &Shells) -> Usage {
    shells.datapath.usage().expect("usage")
}

fn count(shells: &Shells, counter: Counter) -> u64 {
    shells.datapath.counters().expect("counters").get(counter)
}

/// A guest must not evade policing by filling the table.
#[test]
fn a_rule_may_refuse_what_finds_no_room() {
    if !vcc_testing::can_attach() {
        return;
    }
    const MAX_FLOWS: u16 = 4;
    for (on_full, verdict, counter) in [
        (OnFull::Drop, Verdict::Drop, counters::REFUSED),
        (OnFull::Pass, Verdict::Pass, counters::TABLE_FULL),
    ] {
        let mut shells = shells(MAX_FLOWS.into(), on_full);
        for port in 0..MAX_FLOWS {
            shells.open(&mut connection(FromGuest, port + 1));
        }
        for opener in Direction::BOTH {
            let syn = connection(opener, 100).syn();
            assert_eq!(send(&mut shells, opener, &syn), (verdict, syn.frame()));
        }
        assert_eq!(count(&shells, counter), 2);
        shells.assert_counted();
    }
}

/// A SYN flood, from either side, is confined to its share of the table: newer handshakes find room
/// there, and established connections keep their entries.
#[test]
fn a_flood_hinders_nobody() {
    if !vcc_testing::can_attach() {
        return;
    }
    const MAX_FLOWS: u32 = 64;
    const HALF_OPEN_MAX: u32 = MAX_FLOWS / 4;
    const FLOOD: u16 = 500;
    let mut shells = shells(MAX_FLOWS, OnFull::Pass);
    let mut old = connection(FromGuest, 1);
    shells.open(&mut old);
    for number in 0..FLOOD {
        let opener = Direction::BOTH[usize::from(number % 2)];
        shells.pass(opener, &connection(opener, 1000 + number).syn());
        assert!(usage(&shells).half_open <= HALF_OPEN_MAX);
    }
    assert_eq!(usage(&shells).flows, HALF_OPEN_MAX + 1);
    assert_eq!(count(&shells, counters::GAVE_WAY), u64::from(u32::from(FLOOD) - HALF_OPEN_MAX));
    for (opener, port) in [(FromGuest, 2000), (ToGuest, 2001)] {
        let mut new = connection(opener, port);
        shells.open(&mut new);
        assert!(is_translated(&mut shells, &new));
    }
    assert!(is_translated(&mut shells, &old));
    assert_eq!(count(&shells, counters::TABLE_FULL), 0);
    shells.assert_counted();
}

/// A scan, whose SYNs are refused, is confined to the same share: what was refused is kept for its
/// retransmissions, and gives way as what has not been answered.
#[test]
fn a_scan_takes_no_more_than_a_flood() {
    if !vcc_testing::can_attach() {
        return;
    }
    const MAX_FLOWS: u32 = 64;
    const HALF_OPEN_MAX: u32 = MAX_FLOWS / 4;
    for opener in Direction::BOTH {
        let mut shells = shells(MAX_FLOWS, OnFull::Drop);
        for port in 1000..1000 + 3 * MAX_FLOWS as u16 {
            let mut refused = connection(opener, port);
            let syn = refused.syn();
            shells.pass(opener, &syn);
            refused.sent(opener, &syn);
            let rst = refused.packet(opener.other());
            let rst = Packet { seq: 0, flags: RST | ACK, window: 0, options: Vec::new(), ..rst };
            shells.pass(opener.other(), &rst);
        }
        let Usage { flows, half_open, .. } = usage(&shells);
        assert_eq!((flows, half_open), (HALF_OPEN_MAX, HALF_OPEN_MAX), "{opener:?}");
        // There is room for connections.
        for port in 1..=(MAX_FLOWS - HALF_OPEN_MAX) as u16 {
            let mut new = connection(opener, port);
            shells.open(&mut new);
            assert!(is_translated(&mut shells, &new));
        }
        assert_eq!(count(&shells, counters::REFUSED), 0);
        shells.assert_counted();
    }
}

/// Established connections may fill the whole table, and take the entries of handshakes.
#[test]
fn handshakes_give_their_places_to_connections() {
    if !vcc_testing::can_attach() {
        return;
    }
    const MAX_FLOWS: u16 = 16;
    let mut shells = shells(MAX_FLOWS.into(), OnFull::Pass);
    for port in 1000..1004 {
        shells.pass(FromGuest, &connection(FromGuest, port).syn());
    }
    for port in 0..MAX_FLOWS {
        let mut new = connection(FromGuest, port + 1);
        shells.open(&mut new);
        assert!(is_translated(&mut shells, &new));
    }
    let Usage { flows, half_open, .. } = usage(&shells);
    assert_eq!((flows, half_open), (MAX_FLOWS.into(), 0));
    assert_eq!(shells.datapath.flows().expect("flows").len(), usize::from(MAX_FLOWS));
    shells.assert_counted();
}

/// A SYN that is never answered, and is repeated before it expires, keeps its place in the order of
/// handshakes only until as many as have room there have begun: a flood must not have to search what
/// they have left.
#[test]
fn a_handshake_that_nobody_ends_is_in_nobodys_way() {
    if !vcc_testing::can_attach() {
        return;
    }
    const MAX_FLOWS: u32 = 256;
    const HALF_OPEN_MAX: u16 = MAX_FLOWS as u16 / 4;
    let mut shells = shells(MAX_FLOWS, OnFull::Drop);
    shells.pass(FromGuest, &connection(FromGuest, 1).syn());
    for number in 1..=HALF_OPEN_MAX {
        assert_eq!(count(&shells, counters::GAVE_WAY), 0, "{number}");
        shells.open(&mut connection(FromGuest, 1000 + number));
    }
    assert_eq!(count(&shells, counters::GAVE_WAY), 1);
    shells.pass(FromGuest, &connection(FromGuest, 1).syn());
    for number in 1..=2 * HALF_OPEN_MAX {
        shells.open(&mut connection(FromGuest, 2000 + number % (HALF_OPEN_MAX + 16)));
    }
    for number in 1..=2 * HALF_OPEN_MAX {
        shells.pass(ToGuest, &connection(ToGuest, 3000 + number).syn());
    }
    assert_eq!(count(&shells, counters::REFUSED), 0);
    shells.assert_counted();
}

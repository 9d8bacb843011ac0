//! The flow table: unknown connections, a full table, and several ports.

use vcc_engine::{Mode, Params};
use vcc_frames::payload;
use vcc_frames::wire::*;
use vcc_port::{AttachOptions, Datapath, Program, counters};

use crate::conversation::{Connection, Conversation, MSS_BYTES, Shape};
use crate::direction::Direction::{self, FromGuest, ToGuest};
use crate::direction::NEXT;
use crate::dual::DualRun;
use crate::setup::{usual, usually};

fn count(run: &DualRun, counter: vcc_port::Counter) -> u64 {
    run.datapath.counters().expect("counters").get(counter)
}

/// Its window scale is unknown, so its window cannot be translated.
#[test]
fn a_connection_older_than_the_attachment_passes() {
    if !vcc_testing::can_attach() {
        return;
    }
    let mut run = DualRun::new(&usual());
    let mut sent = 0;
    for shape in Shape::all() {
        let connection = Connection::new(shape, 40_000);
        for from in Direction::BOTH {
            for flags in [ACK, ACK | PSH, ACK | FIN, RST, RST | ACK, SYN | ACK, ACK | ECE | CWR] {
                let mut packet = connection.packet(from);
                (packet.flags, packet.traffic_class) = (flags, CE);
                packet.payload = payload(200);
                assert!(run.send(from, &packet.frame(), 0).is_none());
                sent += 1;
            }
        }
    }
    assert_eq!(count(&run, counters::UNKNOWN), sent);
    run.assert_all();
}

/// A connection that finds no room, opened by either side, passes untranslated; the others are not
/// affected.
#[test]
fn a_full_table_takes_nothing_from_those_inside() {
    if !vcc_testing::can_attach() {
        return;
    }
    const MAX_FLOWS: u32 = 4;
    let options = AttachOptions { max_flows: MAX_FLOWS, ..usual() };
    let mut run = DualRun::new(&options);
    let shape = |port: u16| Shape { ipv6: port % 2 == 0, vlan: None, opener: FromGuest };
    let mut inside = Vec::new();
    for port in 0..MAX_FLOWS as u16 {
        let mut c = Conversation::new(&mut run, shape(port), port + 1);
        c.open();
        inside.push(c.connection);
    }
    for (opener, port) in Direction::BOTH.into_iter().zip(100..) {
        let mut outside = Connection::new(Shape { opener, ..shape(port) }, port);
        for _ in 0..3 {
            let syn = outside.syn();
            assert!(run.send(opener, &syn.frame(), 0).is_none());
        }
        // Its other segments belong to an unknown connection.
        let syn_ack = outside.syn_ack();
        assert!(run.send(opener.other(), &syn_ack.frame(), 0).is_none());
        outside.sent(opener, &syn_ack);
        assert!(run.send(opener, &outside.packet(opener).frame(), 0).is_none());
    }
    assert_eq!(count(&run, counters::TABLE_FULL), 6);
    assert_eq!(count(&run, counters::UNKNOWN), 4);
    for connection in inside {
        let mut c = Conversation { run: &mut run, connection };
        assert_eq!(c.data(FromGuest, MSS_BYTES).ecn(), ECT_0);
        assert_ne!(c.ack(ToGuest).window(), 502);
    }
    run.assert_all();
}

/// A draining port takes no new connections and keeps those that it has.
#[test]
fn a_draining_port_takes_none() {
    if !vcc_testing::can_attach() {
        return;
    }
    let options = usually(Params::with(|p| p.mode = Mode::Drain.number()));
    let mut run = DualRun::new(&options);
    for shape in Shape::all() {
        let connection = Connection::new(shape, 40_000);
        assert!(run.send(shape.opener, &connection.syn().frame(), 0).is_none());
        assert!(run.send(shape.opener.other(), &connection.syn_ack().frame(), 0).is_none());
    }
    run.assert_all();
}

/// A connection between two guests of one host passes two ports, which share no state.
#[test]
fn ports_share_nothing() {
    if !vcc_testing::can_attach() {
        return;
    }
    let options = AttachOptions { max_flows: 1, ..usual() };
    let mut one = DualRun::new(&options);
    let mut other = DualRun::new(&options);
    let shape = Shape::plain(FromGuest);
    Conversation::new(&mut one, shape, 50_000).open();
    assert_eq!(other.datapath.flows().expect("flows").len(), 0);
    // It is unknown at the second port, which has room although the first one is full.
    let connection = Connection::new(shape, 50_000);
    assert!(other.send(FromGuest, &connection.packet(FromGuest).frame(), 0).is_none());
    assert_eq!(count(&other, counters::UNKNOWN), 1);
    assert_eq!(count(&one, counters::UNKNOWN), 0);
    let mut c = Conversation::new(&mut other, shape, 50_000);
    c.connection.guest_next = 77;
    c.open();
    c.data(FromGuest, 600);
    c.send(ToGuest, |p| p.flags |= ECE);
    c.connection.guest_next = 1_000;
    c.syn(0);
    // Each state depends on its own port's segments only.
    one.assert_all();
    other.assert_all();
    assert_eq!(one.datapath.flows().expect("flows").len(), 1);
}

/// The yardstick of the benchmark parses and counts, and changes nothing else.
#[test]
fn parsing_alone_changes_nothing() {
    if !vcc_testing::can_attach() {
        return;
    }
    let datapath = Datapath::load_with_yardsticks(None, &usual()).expect("the datapath loads");
    let connection = Connection::new(Shape::plain(FromGuest), 50_000);
    let mut fragment = connection.syn().frame();
    fragment[ETHERNET_BYTES + 6] = 0x20;
    for frame in [connection.syn().frame(), connection.packet(FromGuest).frame(), fragment] {
        let output = datapath.run(Program::ParseFromGuest, &frame, 0).expect("it runs");
        assert_eq!((output.return_value, output.frame), (NEXT, frame));
    }
    assert!(datapath.flows().expect("flows").is_empty());
    let counters = datapath.counters().expect("counters");
    assert_eq!(counters.get(counters::FRAGMENT), 1);
    assert_eq!(counters.get(counters::UNKNOWN), 0);
}

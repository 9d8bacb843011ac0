//! Connections that a port does not know: where a rule polices, their data is dropped.

use std::time::Instant;

use vcc_domain::Verdict;
use vcc_engine::{Mode, OnUnknown, Params, sys};
use vcc_frames::wire::*;
use vcc_frames::{Packet, options, payload};
use vcc_policy::Policy;
use vcc_port::{AttachOptions, Counter, Datapath, SharedPolicy, counters};

use crate::conversation::{Connection, Shape};
use crate::direction::Direction::{self, FromGuest, ToGuest};
use crate::direction::{DROP, NEXT};
use crate::setup::{usual, usually};
use crate::shells::Shells;

/// A port that polices, and whose grace is over.
fn policing(change: impl FnOnce(&mut sys::vcc_params)) -> Params {
    Params::with(|p| {
        p.police = 1;
        p.unknown_grace_s = 0;
        change(p);
    })
}

fn connection(ipv6: bool, guest_port: u16) -> Connection {
    Connection::new(Shape { ipv6, ..Shape::plain(FromGuest) }, guest_port)
}

fn data(connection: &Connection, from: Direction) -> Packet {
    Packet { payload: payload(64), ..connection.packet(from) }
}

/// The verdict, which is the same in both, and what it was counted as.
fn send(shells: &mut Shells, from: Direction, packet: &Packet) -> (Verdict, Option<&'static str>) {
    let before = shells.datapath.counters().expect("counters");
    let frame = packet.frame();
    let output = shells.send("unknown", from, &frame, 0).expect("it runs");
    let after = shells.datapath.counters().expect("counters");
    let grown = |(counter, count): &(Counter, u64)| before.get(*counter) < *count;
    let mut counted = after.iter().filter(grown).map(|(counter, _)| counter.name);
    let first = counted.next();
    assert_eq!((output.frame == frame, counted.next()), (true, None));
    (output.verdict, first)
}

const DROPPED: (Verdict, Option<&str>) = (Verdict::Drop, Some("unknown_dropped"));
const PASSES: (Verdict, Option<&str>) = (Verdict::Pass, Some("unknown"));
const PASSES_SIGNED: (Verdict, Option<&str>) = (Verdict::Pass, Some("signed"));

#[test]
fn data_of_the_guest_is_dropped_and_nothing_else() {
    if !vcc_testing::can_attach() {
        return;
    }
    let mut shells = Shells::new(&usually(policing(|_| {})));
    for ipv6 in [false, true] {
        let c = connection(ipv6, 20_000);
        assert_eq!(send(&mut shells, FromGuest, &data(&c, FromGuest)), DROPPED);
        for flags in [RST | ACK, RST, FIN | ACK, SYN | ACK, URG | ACK] {
            let packet = Packet { flags, ..data(&c, FromGuest) };
            assert_eq!(send(&mut shells, FromGuest, &packet), DROPPED, "{flags:x}");
            let bare = Packet { flags, ..c.packet(FromGuest) };
            assert_eq!(send(&mut shells, FromGuest, &bare), PASSES, "{flags:x}, without data");
        }
        assert_eq!(send(&mut shells, FromGuest, &c.packet(FromGuest)), PASSES);
        assert_eq!(send(&mut shells, ToGuest, &data(&c, ToGuest)), PASSES);
        // A receiver without a key may take it.
        let signature = [vec![19, 18], vec![7; 16], options::nops(2)].concat();
        let signed = Packet { options: signature, ..data(&c, FromGuest) };
        assert_eq!(send(&mut shells, FromGuest, &signed), DROPPED);
        let signed = Packet { payload: vec![], ..signed };
        assert_eq!(send(&mut shells, FromGuest, &signed), PASSES_SIGNED);
    }
    shells.assert_counted();
}

#[test]
fn a_syn_makes_a_connection_known() {
    if !vcc_testing::can_attach() {
        return;
    }
    let mut shells = Shells::new(&usually(policing(|_| {})));
    for (at, shape) in Shape::all().enumerate() {
        let mut c = Connection::new(shape, 30_000 + at as u16);
        assert_eq!(send(&mut shells, FromGuest, &data(&c, FromGuest)), DROPPED);
        shells.open(&mut c);
        let packet = data(&c, FromGuest);
        shells.pass(FromGuest, &packet);
        c.sent(FromGuest, &packet);
        // It is known by its VLAN, too.
        let elsewhere = Packet { tags: vec![(ETHERTYPE_VLAN, 99)], ..data(&c, FromGuest) };
        assert_eq!(send(&mut shells, FromGuest, &elsewhere), DROPPED);
    }
}

#[test]
fn others_pass() {
    if !vcc_testing::can_attach() {
        return;
    }
    let cases = [
        ("during the grace", policing(|p| p.unknown_grace_s = 3600)),
        ("by the operator's will", policing(|p| p.on_unknown = OnUnknown::Pass.number())),
        ("without policing", policing(|p| p.police = 0)),
        ("in shadow mode", policing(|p| p.mode = Mode::Shadow.number())),
        ("at a port that drains", policing(|p| p.mode = Mode::Drain.number())),
    ];
    for (why, params) in cases {
        let mut shells = Shells::new(&usually(params));
        let packet = data(&connection(false, 20_000), FromGuest);
        assert_eq!(send(&mut shells, FromGuest, &packet), PASSES, "{why}");
    }
}

/// The cap of all the guest's connections binds those that the port does not know, too.
#[test]
fn what_passes_keeps_to_the_guests_rate() {
    if !vcc_testing::can_attach() {
        return;
    }
    let rate = |p: &mut sys::vcc_params| {
        (p.on_unknown, p.guest_rate_cap_bytes_per_ms) = (OnUnknown::Pass.number(), 1);
    };
    let mut shells = Shells::new(&usually(policing(rate)));
    let c = connection(false, 20_000);
    let packet = Packet { payload: payload(1000), ..c.packet(FromGuest) };
    let begin = Instant::now();
    let sent = (0..100).map(|_| send(&mut shells, FromGuest, &packet));
    let [passed, dropped] = sent.fold([0, 0], |[passed, dropped], it| match it {
        PASSES => [passed + 1, dropped],
        DROPPED => [passed, dropped + 1],
        other => panic!("{other:?}"),
    });
    // As long as anything is left of a burst of 65,536 bytes, and of what a busy machine's time adds.
    let most = (65_536 + begin.elapsed().as_millis()).div_ceil(1000);
    assert!((66..=most).contains(&passed) && passed + dropped == 100, "{passed} and {dropped}");
    assert_eq!(send(&mut shells, FromGuest, &c.packet(FromGuest)), PASSES, "without data");
    shells.assert_counted();
}

/// A full table would leave the connection unknown.
#[test]
fn a_connection_that_finds_no_room_is_refused() {
    if !vcc_testing::can_attach() {
        return;
    }
    let mut shells = Shells::new(&AttachOptions { max_flows: 4, ..usually(policing(|_| {})) });
    for guest_port in 1..=4 {
        shells.open(&mut connection(false, guest_port));
    }
    let (verdict, counted) = send(&mut shells, FromGuest, &connection(false, 5).syn());
    assert_eq!((verdict, counted), (Verdict::Drop, Some("refused")));
}

/// There are minisocks for 1024 connections at least, and the guest begins as many as take their place.
const MAX_FLOWS: u32 = 4096;
const OTHERS: u16 = 3000;

/// A datapath whose flows end soon, without a port of the domain beside it.
struct Forgetful(Datapath);

impl Forgetful {
    fn options() -> AttachOptions {
        let params = policing(|p| p.idle_closed_ms = 1);
        AttachOptions { max_flows: MAX_FLOWS, ..usually(params) }
    }

    fn load() -> Self {
        Self(Datapath::load(&Self::options()).expect("the datapath loads"))
    }

    /// Runs from here on are of this port of the same host.
    fn use_port(&mut self, index: u32) {
        self.0.use_port(index, &Self::options()).expect("a port");
    }

    fn run(&self, from: Direction, packet: &Packet) -> i32 {
        self.0.run(from.program(), &packet.frame(), 0).expect("it runs").return_value
    }

    fn count(&self, counter: Counter) -> u64 {
        self.0.counters().expect("counters").get(counter)
    }

    fn open(&self, guest_port: u16) -> Connection {
        let mut c = connection(false, guest_port);
        let syn = c.syn();
        assert_eq!(self.run(FromGuest, &syn), NEXT);
        c.sent(FromGuest, &syn);
        let syn_ack = c.syn_ack();
        assert_eq!(self.run(ToGuest, &syn_ack), NEXT);
        c.sent(ToGuest, &syn_ack);
        assert_eq!(self.run(FromGuest, &c.packet(FromGuest)), NEXT);
        c
    }

    /// A connection that the guest opens, and ends by a RST.
    fn open_and_reset(&self, guest_port: u16) -> Connection {
        let c = self.open(guest_port);
        assert_eq!(self.run(FromGuest, &Packet { flags: RST | ACK, ..c.packet(FromGuest) }), NEXT);
        c
    }

    fn wait_until_forgotten(&self) {
        let flows = || self.0.usage().expect("usage").flows;
        for _ in 0..3000 {
            if flows() == 0 {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("{} flows are never forgotten", flows());
    }
}

/// However many connections the guest ends by its own word, none of them passes unpoliced. What is
/// beyond the window is dropped: the flow is there, is revived, or is unknown.
#[test]
fn a_guest_that_resets_its_connections_gains_nothing() {
    if !vcc_testing::can_attach() {
        return;
    }
    let port = Forgetful::load();
    let count = |counter| port.count(counter);
    let beyond = |c: &Connection| {
        let seq = c.guest_next.wrapping_add(4 << 20);
        Packet { seq, payload: payload(1000), ..c.packet(FromGuest) }
    };
    let old = port.open_and_reset(1);
    port.wait_until_forgotten();
    assert_eq!(port.run(FromGuest, &beyond(&old)), DROP);
    assert_eq!([counters::REVIVED, counters::POLICED].map(count), [1, 1]);
    port.run(FromGuest, &Packet { flags: RST | ACK, ..old.packet(FromGuest) });
    port.wait_until_forgotten();
    // Others take the place of what is kept of it.
    for guest_port in 2..=OTHERS {
        port.open_and_reset(guest_port);
    }
    port.wait_until_forgotten();
    for c in [&old, &connection(false, 2), &connection(false, OTHERS)] {
        assert_eq!(port.run(FromGuest, &beyond(c)), DROP);
    }
    let dropped = [counters::POLICED, counters::UNKNOWN_DROPPED].map(count);
    assert_eq!(dropped.iter().sum::<u64>(), 4, "{dropped:?}");
    assert!(dropped[1] > 0, "the first one gave way");
}

/// A flood of SYNs that nobody answers costs no connection that was open its record.
#[test]
fn a_flood_of_handshakes_spares_the_records_of_open_connections() {
    if !vcc_testing::can_attach() {
        return;
    }
    let port = Forgetful::load();
    let c = port.open_and_reset(1);
    port.wait_until_forgotten();
    for guest_port in 2..=4 * OTHERS {
        port.run(FromGuest, &connection(false, guest_port).syn());
    }
    let gave_way = port.count(counters::GAVE_WAY);
    assert!(gave_way > 8000, "{gave_way}");
    let data = Packet { payload: payload(100), ..c.packet(FromGuest) };
    assert_eq!(port.run(FromGuest, &data), NEXT);
    assert_eq!(port.count(counters::REVIVED), 1);
}

/// A connection that both ends have closed leaves no record, and that of an earlier one between the same
/// ends goes with it.
#[test]
fn a_closed_connection_takes_the_record_of_an_earlier_one_with_it() {
    if !vcc_testing::can_attach() {
        return;
    }
    let port = Forgetful::load();
    port.open_and_reset(1);
    port.wait_until_forgotten();
    let mut later = port.open(1);
    for from in Direction::BOTH {
        let fin = Packet { flags: FIN | ACK, ..later.packet(from) };
        assert_eq!(port.run(from, &fin), NEXT);
        later.sent(from, &fin);
    }
    port.run(FromGuest, &later.packet(FromGuest));
    port.wait_until_forgotten();
    assert_eq!(port.run(FromGuest, &data(&later, FromGuest)), DROP);
    assert_eq!([counters::REVIVED, counters::UNKNOWN_DROPPED].map(|it| port.count(it)), [0, 1]);
}

/// A SYN of the guest ends an earlier connection between the same ends. Its own may get no flow, and
/// must not be treated as that one.
#[test]
fn a_connection_without_a_flow_does_not_revive_an_earlier_one() {
    if !vcc_testing::can_attach() {
        return;
    }
    let port = Forgetful::load();
    port.open_and_reset(1);
    port.wait_until_forgotten();
    port.0.set_mode(Mode::Drain).expect("it drains");
    let mut later = connection(false, 1);
    (later.guest_next, later.peer_next) = (3 << 20, 5 << 20);
    let passes = |from: Direction, packet: &Packet| {
        let output = port.0.run(from.program(), &packet.frame(), 0).expect("it runs");
        assert_eq!((output.return_value, output.frame == packet.frame()), (NEXT, true));
    };
    let syn = later.syn();
    passes(FromGuest, &syn);
    later.sent(FromGuest, &syn);
    let syn_ack = later.syn_ack();
    passes(ToGuest, &syn_ack);
    later.sent(ToGuest, &syn_ack);
    passes(FromGuest, &later.packet(FromGuest));
    passes(ToGuest, &data(&later, ToGuest));
    assert_eq!([counters::REVIVED, counters::UNKNOWN].map(|it| port.count(it)), [0, 3]);
}

/// A port that opens and ends any number of connections takes few records of another's: those of
/// sets in which the other has more than half.
#[test]
fn a_port_that_ends_many_connections_spares_the_records_of_others() {
    if !vcc_testing::can_attach() {
        return;
    }
    let mut port = Forgetful::load();
    port.use_port(1);
    let kept: Vec<Connection> = (1..=200).map(|number| port.open_and_reset(number)).collect();
    port.wait_until_forgotten();
    port.use_port(2);
    for first in [1, 1 + OTHERS] {
        for guest_port in first..first + OTHERS {
            port.open_and_reset(guest_port);
        }
        port.wait_until_forgotten();
    }
    port.use_port(1);
    for c in &kept {
        port.run(FromGuest, &Packet { payload: payload(100), ..c.packet(FromGuest) });
    }
    let revived = port.count(counters::REVIVED);
    assert!(revived >= 180, "{revived} of {}", kept.len());
}

/// Either end may have opened the connection, and a rule may leave one of the two alone.
#[test]
fn the_rule_of_the_connection_decides() {
    if !vcc_testing::can_attach() {
        return;
    }
    let shared = SharedPolicy::unpinned().expect("maps");
    let load = || Datapath::load_under(&shared, 3, &usual()).expect("the datapath loads");
    let apply = |rules: &str| {
        let text = format!("[[ports]]\ndevice = \"*\"\n{rules}");
        let policy = Policy::parse(&text, "policy.toml").unwrap_or_else(|wrong| panic!("{wrong}"));
        shared.apply(&policy.policy, &[(3, None.into())]).expect("applied");
    };
    const POLICE: &str = "police = true\nguest_ecn = \"override\"\nunknown_grace = \"0s\"\n";
    apply(&format!(
        "[[rules]]\nname = \"backup\"\npeer_port = 873\nmode = \"ignore\"\n\
         [[rules]]\nname = \"web\"\nrole = \"server\"\nguest_port = 80\nmode = \"ignore\"\n\
         [[rules]]\nname = \"signed\"\npeer_port = 179\n{POLICE}on_unknown = \"pass\"\n\
         [default]\n{POLICE}"
    ));
    let datapath = load();
    let verdict = |guest_port: u16, peer_port: u16| {
        let mut packet = data(&connection(false, guest_port), FromGuest);
        packet.to.set_port(peer_port);
        datapath.run(FromGuest.program(), &packet.frame(), 0).expect("it runs").return_value
    };
    assert_eq!(verdict(1, 443), DROP);
    assert_eq!(verdict(1, 873), NEXT, "its rule ignores it");
    assert_eq!(verdict(1, 179), NEXT, "its rule lets it pass");
    assert_eq!(verdict(80, 443), NEXT, "the peer may have opened it");
    assert_eq!(verdict(81, 443), DROP);
    // A rule of another name gets connections that were left alone; the others' grace is over.
    let later = POLICE.replace("0s", "1h");
    apply(&format!("[[rules]]\nname = \"backups\"\npeer_port = 873\n{later}[default]\n{POLICE}"));
    assert_eq!((verdict(1, 443), verdict(1, 873)), (DROP, NEXT));
    apply(&format!("[[rules]]\nname = \"backups\"\npeer_port = 873\n{POLICE}[default]\n{POLICE}"));
    assert_eq!(verdict(1, 873), DROP);
}

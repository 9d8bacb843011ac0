//! Segments that are left alone: tunnels that nobody asked for, tunnels inside tunnels, another
//! tunnel's connection with the same addresses, and what is broken.

use vcc_engine::Params;
use vcc_frames::wire::*;
use vcc_frames::{Packet, Tunnel, TunnelHeader, payload};
use vcc_policy::{TunnelKind, Tunnels};
use vcc_port::{AttachOptions, Counter, counters};

use super::{assert_untouched, looking_inside, run, seen_from, tunnel, tunnels, vxlan};
use crate::conversation::{Connection, Shape};
use crate::direction::Direction::{self, FromGuest, ToGuest};
use crate::direction::{DROP, NEXT};
use crate::loaded::Loaded;
use crate::random::Random;
use crate::setup::usually;

const DESTINATION_OPTIONS: u8 = 60;
const UDP_BYTES: usize = 8;
const VXLAN_BYTES: usize = 8;

fn count(port: &Loaded, counter: Counter) -> u64 {
    port.counters().expect("counters").get(counter)
}

fn flows(port: &Loaded) -> usize {
    port.flows().expect("flows").len()
}

fn connection() -> Connection {
    Connection::new(Shape::plain(FromGuest), 20_000)
}

/// The handshake's segments, each in the tunnel of its direction.
fn open(port: &Loaded, connection: &mut Connection, tunnels: [&Tunnel; 2]) {
    let steps = [FromGuest, ToGuest, FromGuest];
    for (number, from) in steps.into_iter().enumerate() {
        let packet = match number {
            0 => connection.syn(),
            1 => connection.syn_ack(),
            _ => connection.packet(FromGuest),
        };
        connection.sent(from, &packet);
        let tunnel = seen_from(tunnels[usize::from(from == ToGuest)], from);
        let output = run(port, from, &tunnel.wrap(&packet.frame(), 0), 0);
        assert_eq!(output.return_value, NEXT);
    }
}

fn data(connection: &Connection, from: Direction) -> Vec<u8> {
    Packet { payload: payload(100), ..connection.packet(from) }.frame()
}

/// Of another connection with the same addresses and ports.
fn another_s_data(connection: &Connection, from: Direction) -> Vec<u8> {
    let packet = connection.packet(from);
    let (seq, ack) = (packet.seq.wrapping_add(1 << 30), packet.ack.wrapping_add(1 << 29));
    Packet { seq, ack, payload: payload(100), ..packet }.frame()
}

fn fragment(connection: &Connection) -> Vec<u8> {
    let mut fragment = data(connection, FromGuest);
    fragment[ETHERNET_BYTES + 6] = 0x20;
    vcc_frames::checksum::fill_ipv4(&mut fragment[ETHERNET_BYTES..][..IPV4_BYTES]);
    fragment
}

/// Headers of which the second states its length: more than are read. How many, and their bytes.
const DEEP: [(usize, usize); 4] = [(3, 8), (4, 8), (5, 8), (1, 256)];

fn deep(frame: &[u8], extensions: usize, length: usize) -> Vec<u8> {
    let outer = tunnel(TunnelHeader::Vxlan { port: 4789, vni: 1 }, true, true).wrap(frame, 0);
    let (headers, rest) = outer.split_at(ETHERNET_BYTES + IPV6_BYTES);
    let mut deep = headers.to_vec();
    deep[ETHERNET_BYTES + 6] = DESTINATION_OPTIONS;
    for left in (0..extensions).rev() {
        let next = if left == 0 { PROTOCOL_UDP } else { DESTINATION_OPTIONS };
        deep.extend([next, (length / 8 - 1) as u8]);
        // PadN (RFC 8200, 4.2).
        deep.extend([1, 4, 0, 0, 0, 0]);
        deep.resize(deep.len() + length - 8, 0);
    }
    deep.extend(rest);
    deep
}

#[test]
fn tunnels_that_nobody_asked_for_pass() {
    if !vcc_testing::can_attach() {
        return;
    }
    for asked in [None, Some("vxlan"), Some("geneve"), Some("gre")] {
        let inside: Tunnels = asked.and_then(TunnelKind::named).into_iter().collect();
        let options = AttachOptions { inside, ..usually(Params::default()) };
        let port = Loaded::without_timer(&options);
        let mut looked_into = 0;
        for (tunnel, guest_port) in tunnels().into_iter().zip(20_000..) {
            let syn = Connection::new(Shape::plain(FromGuest), guest_port).syn().frame();
            let kind = match tunnel.header {
                TunnelHeader::Vxlan { .. } => "vxlan",
                TunnelHeader::Geneve { .. } => "geneve",
                TunnelHeader::Gre { .. } => "gre",
            };
            let wrapped = tunnel.wrap(&syn, 0);
            if asked != Some(kind) {
                let before = count(&port, counters::NOT_TCP);
                assert_untouched(&port, FromGuest, &wrapped);
                assert_eq!(count(&port, counters::NOT_TCP), before + 1);
            } else {
                assert_ne!(run(&port, FromGuest, &wrapped, 0).frame, wrapped);
                looked_into += 1;
            }
        }
        assert_eq!((flows(&port), looked_into > 0), (looked_into, asked.is_some()));
    }
}

#[test]
fn one_level() {
    if !vcc_testing::can_attach() {
        return;
    }
    let port = Loaded::without_timer(&looking_inside(Params::default()));
    let syn = connection().syn().frame();
    for tunnel in tunnels() {
        assert_untouched(&port, FromGuest, &vxlan(1).wrap(&tunnel.wrap(&syn, 0), 0));
    }
    // GRE over IPv6 has an option in front of it.
    let passed = [counters::NOT_TCP, counters::DEEP].map(|counter| count(&port, counter));
    assert_eq!((flows(&port), passed.iter().sum::<u64>()), (0, tunnels().len() as u64));
    assert!(passed[0] > passed[1]);
}

/// An overlay may number the direction.
#[test]
fn equal_addresses_in_another_tunnel_are_left_alone() {
    if !vcc_testing::can_attach() {
        return;
    }
    let port = Loaded::without_timer(&looking_inside(Params::default()));
    let mut connection = connection();
    open(&port, &mut connection, [&vxlan(1), &vxlan(2)]);
    let before = port.flows().expect("flows")[0].state.0;
    for (from, other) in [(FromGuest, 2), (ToGuest, 1), (ToGuest, 3)] {
        let stray = another_s_data(&connection, from);
        assert_untouched(&port, from, &seen_from(&vxlan(other), from).wrap(&stray, 0));
    }
    // A SYN as well: it belongs to another connection.
    let syn = connection.syn();
    let syn = Packet { seq: syn.seq.wrapping_add(1 << 30), ..syn };
    assert_untouched(&port, FromGuest, &vxlan(3).wrap(&syn.frame(), 0));
    let geneve = TunnelHeader::Geneve { vni: 1, options: Vec::new(), ethernet: true };
    let geneve = tunnel(geneve, false, true);
    assert_untouched(&port, FromGuest, &geneve.wrap(&another_s_data(&connection, FromGuest), 0));
    let after = port.flows().expect("flows")[0].state.0;
    assert_eq!((after.snd_nxt, after.rcv_nxt), (before.snd_nxt, before.rcv_nxt));
    assert_eq!(count(&port, counters::OTHER_TUNNEL), 5);
    // Nor is one outside of tunnels the same.
    assert_untouched(&port, FromGuest, &data(&connection, FromGuest));
    assert_eq!(count(&port, counters::UNKNOWN), 1);
    // Its own continues.
    let sent = data(&connection, FromGuest);
    run(&port, FromGuest, &vxlan(1).wrap(&sent, 0), 0);
    let after = port.flows().expect("flows")[0].state.0;
    assert_eq!(after.snd_nxt, before.snd_nxt.wrapping_add(100));
}

/// GRE without a key is known by its ends.
#[test]
fn gre_is_known_by_its_ends_and_its_key() {
    if !vcc_testing::can_attach() {
        return;
    }
    let port = Loaded::without_timer(&looking_inside(Params::default()));
    let gre =
        |key| tunnel(TunnelHeader::Gre { key, sequence: None, ethernet: false }, false, false);
    let mut connection = connection();
    open(&port, &mut connection, [&gre(None), &gre(None)]);
    let elsewhere = Tunnel { to: "172.16.0.3".parse().expect("an address"), ..gre(None) };
    for other in [gre(Some(0)), gre(Some(1)), elsewhere] {
        let stray = another_s_data(&connection, FromGuest);
        assert_untouched(&port, FromGuest, &other.wrap(&stray, 0));
    }
    assert_eq!(count(&port, counters::OTHER_TUNNEL), 3);
}

/// A segment that continues where the connection is belongs to it: its sender has another number
/// now.
#[test]
fn a_connection_goes_along_into_another_tunnel() {
    if !vcc_testing::can_attach() {
        return;
    }
    let port = Loaded::without_timer(&looking_inside(Params::default()));
    let mut connection = connection();
    open(&port, &mut connection, [&vxlan(1), &vxlan(2)]);
    for vni in [1, 7, 8] {
        for from in [FromGuest, ToGuest] {
            let sent = Packet { payload: payload(100), ..connection.packet(from) };
            run(&port, from, &seen_from(&vxlan(vni), from).wrap(&sent.frame(), 0), 0);
            connection.sent(from, &sent);
            let state = port.flows().expect("flows")[0].state.0;
            let (ours, wanted) = match from {
                FromGuest => (state.snd_nxt, connection.guest_next),
                ToGuest => (state.rcv_nxt, connection.peer_next),
            };
            assert_eq!(ours, wanted, "{vni} {from:?}");
        }
    }
    assert_eq!(count(&port, counters::OTHER_TUNNEL), 0);
}

/// A port that no longer looks into a kind of tunnel takes no more connections inside; those that it has
/// may depend on it.
#[test]
fn known_connections_go_on_when_a_kind_of_tunnel_is_left() {
    if !vcc_testing::can_attach() {
        return;
    }
    let port = Loaded::without_timer(&looking_inside(Params::with(|p| p.police = 1)));
    let mut known = connection();
    open(&port, &mut known, [&vxlan(1), &vxlan(1)]);
    for inside in [Tunnels::NONE, TunnelKind::named("gre").into_iter().collect(), Tunnels::NONE] {
        port.set_inside(inside).expect("set");
        let sent = Packet { payload: payload(100), ..known.packet(FromGuest) };
        run(&port, FromGuest, &vxlan(1).wrap(&sent.frame(), 0), 0);
        known.sent(FromGuest, &sent);
        assert_eq!(port.flows().expect("flows")[0].state.0.snd_nxt, known.guest_next);
        let new = Connection::new(Shape::plain(FromGuest), 20_001).syn().frame();
        assert_untouched(&port, FromGuest, &vxlan(1).wrap(&new, 0));
        // Nor does policing reach into it any more.
        let fragment = fragment(&known);
        assert_untouched(&port, FromGuest, &vxlan(1).wrap(&fragment, 0));
        for (extensions, length) in DEEP.into_iter().filter(|_| inside == Tunnels::NONE) {
            let unread = deep(&data(&known, FromGuest), extensions, length);
            assert_untouched(&port, FromGuest, &unread);
        }
    }
    assert_eq!(flows(&port), 1);
    port.set_inside(TunnelKind::named("vxlan").into_iter().collect()).expect("set");
    let new = Connection::new(Shape::plain(FromGuest), 20_001).syn().frame();
    run(&port, FromGuest, &vxlan(1).wrap(&new, 0), 0);
    assert_eq!(flows(&port), 2);
}

/// A segment that the engine does not accept shows nothing about the tunnel.
#[test]
fn a_stray_segment_does_not_say_which_tunnel_it_is() {
    if !vcc_testing::can_attach() {
        return;
    }
    let port = Loaded::without_timer(&looking_inside(Params::default()));
    let mut connection = connection();
    let syn = connection.syn();
    connection.sent(FromGuest, &syn);
    run(&port, FromGuest, &vxlan(1).wrap(&syn.frame(), 0), 0);
    let stray = another_s_data(&connection, ToGuest);
    // Nor does it make another tunnel of the connection's own.
    for vni in [9, 2] {
        run(&port, ToGuest, &seen_from(&vxlan(vni), ToGuest).wrap(&stray, 0), 0);
    }
    let syn_ack = connection.syn_ack();
    connection.sent(ToGuest, &syn_ack);
    run(&port, ToGuest, &seen_from(&vxlan(2), ToGuest).wrap(&syn_ack.frame(), 0), 0);
    let state = port.flows().expect("flows")[0].state.0;
    assert_eq!(state.rcv_nxt, connection.peer_next);
    assert_eq!(count(&port, counters::OTHER_TUNNEL), 0);
}

/// Where a rule polices, what cannot be judged does not pass.
#[test]
fn policing_reaches_inside() {
    if !vcc_testing::can_attach() {
        return;
    }
    let params = Params::with(|p| p.police = 1);
    let port = Loaded::without_timer(&looking_inside(params));
    let mut connection = connection();
    open(&port, &mut connection, [&vxlan(1), &vxlan(1)]);
    let mut dropped = 0;
    let mut assert_dropped = |frame: Vec<u8>| {
        let output = run(&port, FromGuest, &frame, 0);
        dropped += 1;
        assert_eq!((output.return_value, count(&port, counters::UNJUDGED)), (DROP, dropped));
    };
    assert_dropped(vxlan(2).wrap(&another_s_data(&connection, FromGuest), 0));
    let mut fragment = fragment(&connection);
    assert_dropped(vxlan(1).wrap(&fragment, 0));
    let sent = data(&connection, FromGuest);
    // An Ethernet header's addresses inside, then a tag.
    let mut tagged = vxlan(1).wrap(&sent, 0);
    let at = ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES + VXLAN_BYTES + 12;
    tagged.splice(at..at, [0x81, 0, 0, 5]);
    assert_dropped(tagged);
    // Linux takes reserved flags of GRE for nothing: so it is judged.
    let gre =
        tunnel(TunnelHeader::Gre { key: None, sequence: None, ethernet: false }, false, false);
    let mut reserved = gre.wrap(&another_s_data(&connection, FromGuest), 0);
    reserved[ETHERNET_BYTES + IPV4_BYTES] |= 0x08;
    assert_dropped(reserved);
    for (extensions, length) in DEEP {
        assert_dropped(deep(&sent, extensions, length));
    }
    // A super-segment of UDP is several packets.
    let other = connection.packet(FromGuest).frame();
    let several = [vxlan(1).wrap(&sent, 0), other].concat();
    let output = run(&port, FromGuest, &several, 150);
    dropped += 1;
    assert_eq!((output.return_value, count(&port, counters::UNJUDGED)), (DROP, dropped));
    // What is not TCP passes.
    fragment[ETHERNET_BYTES + 9] = PROTOCOL_UDP;
    assert_untouched(&port, FromGuest, &vxlan(1).wrap(&fragment, 0));
}

/// Padding of an inner frame, as a card adds it to a short one, is no room for options, and none is
/// cut off.
#[test]
fn padding_inside_keeps_all_lengths() {
    if !vcc_testing::can_attach() {
        return;
    }
    let port = Loaded::without_timer(&looking_inside(Params::default()));
    let mut syn = connection().syn().frame();
    syn.extend([0xa5; 6]);
    let tunnel = vxlan(1);
    let output = run(&port, FromGuest, &tunnel.wrap(&syn, 0), 0);
    let opened = tunnel.open(&output.frame).expect("right");
    assert_eq!(opened.frame.len(), syn.len());
    assert_ne!(opened.frame, syn, "it asks for ECN");
    assert!(opened.frame.ends_with(&[0xa5; 6]));
}

/// Frames cut anywhere, or with a wrong byte, harm nobody.
#[test]
fn broken_headers_pass() {
    if !vcc_testing::can_attach() {
        return;
    }
    let port = Loaded::without_timer(&looking_inside(Params::default()));
    let mut random = Random::new(1);
    let syn = connection().syn().frame();
    for tunnel in tunnels() {
        let wrapped = tunnel.wrap(&syn, 0);
        for length in ETHERNET_BYTES + IPV6_BYTES..wrapped.len() {
            assert_untouched(&port, FromGuest, &wrapped[..length]);
        }
        for _ in 0..300 {
            let mut frame = wrapped.clone();
            let at = random.below(frame.len() as u32) as usize;
            frame[at] = random.next() as u8;
            let output = run(&port, FromGuest, &frame, 0);
            assert!([NEXT, DROP].contains(&output.return_value));
        }
    }
    assert_eq!(count(&port, counters::REWRITE_FAILED), 0);
}

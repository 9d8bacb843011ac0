//! Connections that end, begin anew, are too many or have no beginning.

use std::net::SocketAddr;

use vcc_capture::testing::{Style, Timed, pcap, talk};
use vcc_capture::{Capture, Mac, Packet, Replay, Replayed, Treatment};
use vcc_engine::{FlowKey, Stage, sys};
use vcc_frames::Packet as Segment;

use crate::reading::{S_NS, shadow};

const PEER: &str = "192.0.2.9:80";

fn end(text: &str) -> SocketAddr {
    text.parse().expect("an end")
}

fn read(packets: &[Timed<Segment>], max: usize, guest: Option<SocketAddr>) -> Replayed {
    let is_guest = guest.map(|guest| -> IsGuest { Box::new(move |end, _| end == guest) });
    read_with(packets, max, is_guest)
}

type IsGuest = Box<dyn Fn(SocketAddr, Mac) -> bool + Send>;

fn read_with(packets: &[Timed<Segment>], max: usize, is_guest: Option<IsGuest>) -> Replayed {
    replayed(packets, Replay::new(Treatment::from_params(shadow()), max, is_guest))
}

fn read_each_end(packets: &[Timed<Segment>], max: usize) -> Replayed {
    let replay = Replay::new(Treatment::from_params(shadow()), max, None);
    replayed(packets, replay.each_end())
}

fn replayed(packets: &[Timed<Segment>], mut replay: Replay) -> Replayed {
    let frames = vcc_capture::testing::frames(packets);
    let file = pcap(Style::default(), 1, &frames);
    let mut capture = Capture::open(&file[..]).expect("a capture");
    let mut packet = Packet::default();
    while capture.next(&mut packet).expect("readable") {
        replay.take(&mut packet, &mut |_| {}).expect("in order");
    }
    replay.end()
}

fn talk_at(port: u16, after_s: u64) -> Vec<Timed<Segment>> {
    let talk = talk(([10, 0, 0, 2], port).into(), end(PEER));
    talk.into_iter().map(|(time_ns, segment)| (time_ns + after_s * S_NS, segment)).collect()
}

fn counted(seen: &Replayed, reason: sys::vcc_count) -> u64 {
    seen.counters.iter().map(|counters| counters.get(reason)).sum()
}

/// The port forgets it a while after it has ended.
#[test]
fn an_ended_connection_keeps_its_last_state() {
    let at_once = read(&talk_at(1, 0), 9, None);
    let mut packets = talk_at(1, 0);
    packets.extend(talk_at(2, 3600));
    let seen = read(&packets, 9, None);
    let [first, second] = &seen.connections[..] else { panic!("two connections") };
    assert_eq!(first.state.stage(), Stage::Closed);
    assert_eq!(first.state.reductions, 1);
    assert_eq!(first.life, at_once.connections[0].life);
    assert_eq!(second.life.began_ns, 3600 * S_NS);
}

#[test]
fn a_connection_between_the_same_ends_is_another_one() {
    let mut packets = talk_at(1, 0);
    packets.extend(talk_at(1, 1));
    let seen = read(&packets, 9, None);
    let [first, second] = &seen.connections[..] else { panic!("two connections") };
    assert_eq!((first.key, first.life.sent_bytes), (second.key, second.life.sent_bytes));
    assert_eq!(second.life.began_ns, S_NS);
}

#[test]
fn connections_beyond_the_limit_are_counted() {
    let packets: Vec<_> = (1..=5).flat_map(|port| talk_at(port, port.into())).collect();
    let seen = read(&packets, 3, None);
    assert_eq!((seen.connections.len(), seen.left_out), (3, 2));
}

/// With any first segment, windows are unknown, and what happened is as with the SYN.
#[test]
fn a_connection_without_its_syn_is_joined() {
    let whole = &read(&talk_at(40_000, 0), 9, None).connections[0];
    for missing in [1, 2, 3] {
        let seen = read(&talk_at(40_000, 0)[missing..], 9, None);
        let [joined] = &seen.connections[..] else { panic!("{missing}: no connection") };
        assert_eq!((joined.key, seen.unopened), (whole.key, 1), "{missing}");
        assert!(joined.life.is_joined && !whole.life.is_joined);
        assert_eq!(joined.state.window_received_bytes(), None);
        let figures = |it: &vcc_capture::Connection| {
            let (life, state) = (&it.life, &it.state);
            let losses = (state.retransmissions, state.reductions, life.missing_bytes);
            (life.sent_bytes, life.acked_bytes, losses, state.stage())
        };
        assert_eq!(figures(joined), figures(whole), "{missing}");
        // Only data shows whether a connection uses ECN.
        assert_eq!(counted(&seen, sys::COUNT_UNKNOWN), 3 - missing as u64);
    }
}

/// Padding is not the data that shows whether a connection uses ECN.
#[test]
fn a_padded_ack_joins_nothing() {
    let mut packets = talk_at(40_000, 0).split_off(2);
    for (_, packet) in &mut packets {
        if !packet.payload.is_empty() {
            packet.traffic_class = 2;
        } else if packet.from == end(PEER) {
            packet.flags |= sys::TCP_ECE as u16;
        }
    }
    assert!(packets[0].1.payload.is_empty());
    packets[0].1.padding = vec![0; 6];
    let seen = read(&packets, 9, None);
    let [joined] = &seen.connections[..] else { panic!("one connection") };
    assert!(joined.life.is_joined && joined.state.marks > 0);
}

#[test]
fn an_end_without_its_connection_is_counted_alone() {
    let mut packets = talk_at(40_000, 0);
    let seen = read(&packets.split_off(46), 9, None);
    assert_eq!((seen.connections.len(), seen.unopened), (0, 1));
    assert_eq!(counted(&seen, sys::COUNT_UNKNOWN), seen.segments);
}

/// The second flight's first segment is not in the capture; or its fourth, until it is sent again; or the
/// last before the FIN.
#[test]
fn what_was_not_captured_is_told_apart_from_losses() {
    for (seq, lost_upstream_bytes, missing_bytes) in
        [(10_001, 0, 1000), (13_001, 1000, 0), (19_001, 0, 1000)]
    {
        let mut packets = talk_at(1, 0);
        let lost = packets.iter().position(|(_, packet)| packet.seq == seq);
        packets.remove(lost.expect("the segment"));
        let seen = read(&packets, 9, None);
        let life = &seen.connections[0].life;
        let counted = (life.sent_bytes, life.lost_upstream_bytes, life.missing_bytes);
        assert_eq!(counted, (20_001, lost_upstream_bytes, missing_bytes), "{seq}");
    }
}

#[test]
fn the_user_names_the_guest() {
    let packets = [talk_at(1, 0), talk_at(2, 1)].concat();
    let seen = read(&packets, 9, Some(end("10.0.0.2:1")));
    assert_eq!((seen.connections.len(), seen.others), (1, 48));
    // The guest accepts the connections.
    let seen = read(&packets, 9, Some(end(PEER)));
    let keys: Vec<FlowKey> = seen.connections.iter().map(|it| it.key).collect();
    let key = |port| FlowKey::new(end(PEER), ([10, 0, 0, 2], port).into(), None);
    assert_eq!(keys, [key(1), key(2)]);
    assert_eq!(seen.connections[0].life.sent_bytes, 1, "its FIN");
}

/// It accepts the connection, and is named by its Ethernet address.
#[test]
fn the_user_names_the_guest_by_its_device() {
    let macs = [[2, 0, 0, 0, 0, 8], [2, 0, 0, 0, 0, 9]];
    let mut packets = talk_at(40_000, 0);
    for (_, packet) in &mut packets {
        let [of_opener, of_guest] = macs;
        packet.macs =
            if packet.from == end(PEER) { [of_opener, of_guest] } else { [of_guest, of_opener] };
    }
    let is_guest = |mac| -> IsGuest { Box::new(move |_, at| at == mac) };
    let seen = read_with(&packets, 9, Some(is_guest(macs[1])));
    let [only] = &seen.connections[..] else { panic!("one connection") };
    assert_eq!(only.key.guest(), end(PEER));
    let seen = read_with(&packets, 9, Some(is_guest([2; 6])));
    assert_eq!((seen.connections.len(), seen.others), (0, 48));
}

/// Its end is not in the capture, so the port takes it for live when another one begins.
#[test]
fn a_connection_between_the_same_ends_without_the_end_of_the_first() {
    for iss in [50_000_u32, 4_000_000_000] {
        let mut packets = talk_at(1, 0);
        packets.truncate(40);
        let cut = read(&packets, 9, None).connections[0].life;
        packets.extend(talk_at(1, 10).into_iter().map(|(time_ns, mut packet)| {
            if packet.from.port() == 1 {
                packet.seq = packet.seq.wrapping_add(iss);
            } else {
                packet.ack = packet.ack.wrapping_add(iss);
            }
            (time_ns, packet)
        }));
        let seen = read(&packets, 9, None);
        let [first, second] = &seen.connections[..] else {
            panic!("{iss}: {} connections", seen.connections.len());
        };
        assert_eq!((first.life.sent_bytes, first.life.missing_bytes), (cut.sent_bytes, 0), "{iss}");
        assert_eq!((second.life.sent_bytes, second.life.missing_bytes), (20_001, 0), "{iss}");
        assert_eq!(second.state.retransmissions, 1);
    }
}

/// The capture begins with the peer's data, while the guest has much in flight.
#[test]
fn what_was_in_flight_before_the_capture_is_not_missing() {
    let talk = talk_at(40_000, 0);
    let mut from_peer = talk[13].1.clone();
    assert_eq!(from_peer.from, end(PEER));
    from_peer.payload = vec![0; 10];
    let mut packets = vec![(talk[12].0, from_peer)];
    packets.extend(talk[23..].iter().filter(|(_, packet)| packet.from != end(PEER)).cloned());
    let seen = read(&packets, 9, None);
    let life = &seen.connections[0].life;
    assert!(life.is_joined);
    assert_eq!((life.missing_bytes, life.lost_upstream_bytes), (0, 0), "{life:?}");
}

#[test]
fn a_connection_beyond_the_limit_is_counted_once() {
    let mut packets: Vec<_> = (1..4).flat_map(|port| talk_at(port, port.into())).collect();
    for port in 4..7 {
        let syn = talk_at(port, port.into())[0].clone();
        packets.extend((0..5).map(|again| (syn.0 + again * 1_000_000, syn.1.clone())));
    }
    let seen = read(&packets, 3, None);
    assert_eq!((seen.connections.len(), seen.left_out), (3, 3));
}

/// Each view is the one that its guest's name alone gives, and all other figures count once.
#[test]
fn each_end_is_the_guest_in_turn() {
    let whole = [(1, 0), (2, 1), (1, 2), (3, 3)];
    let whole: Vec<_> =
        whole.iter().flat_map(|&(at, after_s)| talk_at(40_000 + at, after_s)).collect();
    for packets in [&whole[..], &whole[5..]] {
        let once = read(packets, 9, None);
        let by_peer = read(packets, 9, Some(end(PEER)));
        let seen = read_each_end(packets, 9);
        let views = |is_turned| {
            let views = seen.connections.iter().filter(move |it| it.is_turned == is_turned);
            views.map(|it| (it.key, it.life)).collect::<Vec<_>>()
        };
        let all = |seen: &Replayed| -> Vec<_> {
            seen.connections.iter().map(|it| (it.key, it.life)).collect()
        };
        assert_eq!(views(false), all(&once));
        assert_eq!(views(true), all(&by_peer));
        let figures = |seen: &Replayed| {
            let counters: Vec<u64> = (0..sys::COUNT_MAX).map(|it| counted(seen, it)).collect();
            (seen.packets, seen.segments, seen.unopened, seen.left_out, counters)
        };
        assert_eq!(figures(&seen), figures(&once));
    }
    let seen = read_each_end(&whole, 2);
    assert_eq!((seen.connections.len(), seen.left_out), (4, 2), "the limit is of connections");
}

/// As in `what_was_not_captured_is_told_apart_from_losses`, for both views.
#[test]
fn what_the_capture_lost_of_the_peers_bytes() {
    for (seq, missing_bytes) in [(0, 0), (10_001, 1000), (13_001, 0), (19_001, 1000)] {
        let mut packets = talk_at(1, 0);
        let lost = packets.iter().position(|(_, packet)| packet.seq == seq && seq != 0);
        lost.map(|at| packets.remove(at));
        let seen = read_each_end(&packets, 9);
        let counted: Vec<_> = seen
            .connections
            .iter()
            .map(|it| (it.is_turned, it.life.missing_bytes, it.life.peer_missing_bytes))
            .collect();
        assert_eq!(counted, [(false, missing_bytes, 0), (true, 0, missing_bytes)], "{seq}");
    }
}

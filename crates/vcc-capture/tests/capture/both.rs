//! Two captures of the same connection, on the two sides of a port.

use vcc_capture::both::{
    ByFace, Change, Comparison, Delays, Direction, Face, Field, Outcome, WAITING_MAX_BYTES,
    read_in_step,
};
use vcc_capture::testing::{EPOCH_NS, MSS_BYTES, Style, Timed, frames, pcap, talk};
use vcc_domain::{Frame, Out, Port, Verdict};
use vcc_engine::{Mode, Params};
use vcc_frames::wire::{ECE, SYN, TCP_BYTES};
use vcc_frames::{Packet, options, payload};

use crate::reading::{ETHERNET, S_NS, ends};

/// From one side of the port to the other.
const DELAY_NS: u64 = 20_000;
const TCP_AT: usize = 34;

type Files = ByFace<Vec<Timed<Vec<u8>>>>;

/// A connection with window scaling, whose peer has ECN: the port translates all of it.
fn connection(is_ipv6: bool) -> Vec<Timed<Packet>> {
    let [guest, peer] = ends(is_ipv6);
    let mut packets = talk(guest, peer);
    for (_, packet) in &mut packets {
        if packet.flags & SYN != 0 {
            let mss = options::mss(MSS_BYTES as u16);
            let all = [mss, options::wscale(7), options::sack_permitted()];
            packet.options = options::join(&all);
        }
        if packet.from == peer {
            packet.flags |= ECE;
        }
    }
    packets
}

/// What is on both sides of a port.
fn passed(packets: &[Timed<Packet>]) -> Files {
    let mut params = Params::default();
    params.0.mode = Mode::Enforce.number();
    let (mut port, mut out) = (Port::new(params, 100), Out::default());
    let guest = packets[0].1.from;
    let mut files = Files::default();
    for (time_ns, packet) in packets {
        let from_guest = packet.from == guest;
        let (near, far) = match from_guest {
            true => (Face::Guest, Face::Fabric),
            false => (Face::Fabric, Face::Guest),
        };
        let mut frame = Frame::full(packet.frame());
        files[near].push((*time_ns, frame.bytes.clone()));
        let now_ns = time_ns - EPOCH_NS + S_NS;
        port.advance(now_ns, &mut out);
        let verdict = match from_guest {
            true => port.from_guest(now_ns, &mut frame, &mut out),
            false => port.to_guest(now_ns, &mut frame, &mut out).0,
        };
        let behind_ns = time_ns + DELAY_NS;
        if verdict == Verdict::Pass {
            files[far].push((behind_ns, frame.bytes));
        }
        files.fabric.extend(out.to_fabric.drain(..).map(|frame| (behind_ns, frame.bytes)));
        files.guest.extend(out.to_guest.drain(..).map(|frame| (behind_ns, frame.bytes)));
    }
    files
}

fn translated(is_ipv6: bool) -> Files {
    passed(&connection(is_ipv6))
}

fn compare_files(guest: &[u8], fabric: &[u8]) -> Outcome {
    let mut comparison = Comparison::new(100, None);
    let mut complain = |face, problem| panic!("{face:?}: {problem}");
    read_in_step(ByFace { guest, fabric }, None, &mut comparison, &mut complain);
    comparison.end()
}

fn compare_with(style: Style, files: &Files) -> Outcome {
    let file = |frames| pcap(style, ETHERNET, frames);
    compare_files(&file(&files.guest), &file(&files.fabric))
}

fn compare(files: &Files) -> Outcome {
    compare_with(Style { is_ns: true, ..Style::default() }, files)
}

#[track_caller]
fn assert_well(outcome: &Outcome) {
    assert_eq!(outcome.differences, []);
    assert_eq!(outcome.total.errors, 0);
}

#[track_caller]
fn assert_one_error(outcome: &Outcome, field: Field) {
    let [difference] = &outcome.differences[..] else { panic!("{:?}", outcome.differences) };
    assert_eq!(difference.field, field, "{difference:?}");
    assert_eq!(outcome.total.errors, 1);
}

/// The index of a frame with so much payload, from the guest or to it.
fn nth(files: &Files, face: Face, from_port: u16, payload_bytes: usize, nth: usize) -> usize {
    let is_it = |bytes: &[u8]| {
        let options_bytes = usize::from(bytes[TCP_AT + 12] >> 4) * 4 - TCP_BYTES;
        bytes[TCP_AT..][..2] == from_port.to_be_bytes()
            && bytes.len() == TCP_AT + TCP_BYTES + options_bytes + payload_bytes
    };
    let mut all = files[face].iter().enumerate().filter(|(_, (_, bytes))| is_it(bytes));
    all.nth(nth).expect("such a frame").0
}

#[test]
fn all_that_a_port_changes_is_named() {
    for is_ipv6 in [false, true] {
        let files = translated(is_ipv6);
        let outcome = compare(&files);
        assert_well(&outcome);
        let [connection] = &outcome.connections[..] else { panic!("one connection") };
        let [guest, peer] = ends(is_ipv6);
        assert_eq!((connection.guest, connection.peer, connection.has_syn), (guest, peer, true));
        let counts = &connection.counts;
        assert_eq!(counts, &outcome.total);
        assert_eq!((counts.segments.guest, counts.segments.fabric), (48, 48));
        assert_eq!(counts.pairs, 48);
        let bytes = (21 * MSS_BYTES) as u64;
        assert_eq!((counts.payload.equal_bytes, counts.payload.uncaptured_bytes), (bytes, 0));
        let count = |change| counts.changes.get(&change).copied().unwrap_or_default();
        assert_eq!(count(Change::Scale { from: 7, to: 5 }), 1);
        assert_eq!(count(Change::Mss { from: 1000, to: 992 }), 1);
        for (change, least) in [
            (Change::WindowLowered, 20),
            (Change::EctSet, 20),
            (Change::EceRemoved, 20),
            (Change::EceAdded, 1),
            (Change::CwrAdded, 2),
            (Change::AeAdded, 1),
            (Change::OptionAdded { kind: 253 }, 1),
        ] {
            assert!(count(change) >= least, "{change:?}: {:?}", counts.changes);
        }
        assert_eq!(count(Change::WindowRaised), 0);
        let Delays::Agreed(delays) = outcome.delays else { panic!("{:?}", outcome.delays) };
        assert_eq!((delays.from_guest, delays.to_guest), (DELAY_NS as i64, DELAY_NS as i64));
    }
}

#[test]
fn a_byte_of_payload() {
    let mut files = translated(false);
    let at = nth(&files, Face::Fabric, 40_000, MSS_BYTES, 5);
    let bytes = &mut files.fabric[at].1;
    let payload_at = bytes.len() - MSS_BYTES;
    bytes[payload_at + 17] ^= 1;
    let outcome = compare(&files);
    assert_one_error(&outcome, Field::Payload { at: 17 });
    assert_eq!(outcome.total.payload.different_bytes, 1);
    assert_eq!(outcome.total.payload.equal_bytes, (21 * MSS_BYTES - 1) as u64);
    let difference = &outcome.differences[0];
    let ByFace { guest, fabric } = &difference.values;
    assert_eq!((guest.as_str(), fabric.as_str()), ("0x11", "0x10"));
    let line = difference.line(ByFace { guest: "a.pcap", fabric: "b.pcap" });
    let offset = difference.offsets.fabric;
    assert_eq!(
        line,
        format!(
            "10.0.0.2:40000 > 192.0.2.9:80, segment 5001, byte 17 of the payload: 0x11 in a.pcap at \
             byte {}, 0x10 in b.pcap at byte {offset}",
            difference.offsets.guest
        )
    );
}

/// Of pure ACKs and of data, in both directions, with neighbours that are as they were.
#[test]
fn a_field_that_no_port_changes() {
    const SEQ: usize = 4;
    const ACKNOWLEDGEMENT: usize = 8;
    const RESERVED: usize = 12;
    const FLAGS: usize = 13;
    const URGENT: usize = 19;
    for (from_port, bytes) in [(40_000, MSS_BYTES), (80, 0)] {
        for (at, bit, field) in [
            (SEQ + 1, 0x40, Field::Sequence),
            (ACKNOWLEDGEMENT + 1, 0x40, Field::Acknowledgement),
            (RESERVED, 0x02, Field::Reserved),
            (FLAGS, 0x20, Field::Flags),
            (FLAGS, 0x04, Field::Flags),
            (URGENT, 0x01, Field::Urgent),
        ] {
            for face in Face::BOTH {
                let mut files = translated(false);
                let index = nth(&files, face, from_port, bytes, 4);
                files[face][index].1[TCP_AT + at] ^= bit;
                assert_one_error(&compare(&files), field);
            }
        }
    }
}

/// A guest's own window and scale reach the peer as they are.
#[test]
fn a_window_toward_the_peer() {
    let mut files = translated(false);
    let index = nth(&files, Face::Fabric, 40_000, MSS_BYTES, 4);
    files.fabric[index].1[TCP_AT + 15] ^= 1;
    assert_one_error(&compare(&files), Field::Window);
    let mut files = translated(false);
    let syn = &mut files.fabric[0].1;
    let scale_at = syn.windows(3).position(|bytes| bytes == [3, 3, 7]).expect("a scale");
    syn[scale_at + 2] = 6;
    assert_one_error(&compare(&files), Field::Option { kind: 3 });
}

#[test]
fn a_larger_window_is_named() {
    let mut files = translated(false);
    let index = nth(&files, Face::Guest, 80, 0, 4);
    files.guest[index].1[TCP_AT + 14..][..2].fill(0xff);
    let fabric = nth(&files, Face::Fabric, 80, 0, 4);
    files.fabric[fabric].1[TCP_AT + 14..][..2].copy_from_slice(&[0, 9]);
    let outcome = compare(&files);
    assert_well(&outcome);
    assert_eq!(outcome.total.changes.get(&Change::WindowRaised), Some(&1));
}

#[test]
fn routers_and_queues_are_not_the_port() {
    let mut files = translated(false);
    let index = nth(&files, Face::Fabric, 40_000, MSS_BYTES, 4);
    let bytes = &mut files.fabric[index].1;
    bytes[22] -= 1;
    bytes[15] |= 3;
    let outcome = compare(&files);
    assert_well(&outcome);
    for change in [Change::Hops, Change::CeSet] {
        assert_eq!(outcome.total.changes.get(&change), Some(&1), "{change:?}");
        assert!(!change.is_of_vcc());
    }
}

/// A flight in one super-segment on either side.
#[test]
fn a_super_segment_and_its_parts() {
    for face in Face::BOTH {
        for length in [None, Some(0)] {
            let mut files = translated(false);
            let first = nth(&files, face, 40_000, MSS_BYTES, 0);
            let flight: Vec<_> = files[face].drain(first..first + 10).collect();
            let (time_ns, mut whole) = flight[0].clone();
            // What the port adds to some of the parts is not in the header of all.
            whole[TCP_AT + 13] = flight[9].1[TCP_AT + 13];
            for (_, part) in &flight[1..] {
                whole.extend(&part[part.len() - MSS_BYTES..]);
            }
            let ip_bytes = length.unwrap_or(whole.len() - 14) as u16;
            whole[16..18].copy_from_slice(&ip_bytes.to_be_bytes());
            files[face].insert(first, (time_ns, whole));
            let outcome = compare(&files);
            assert_well(&outcome);
            let total = &outcome.total;
            assert_eq!((total.segments[face], total.pairs), (39, 48));
            assert_eq!(total.payload.equal_bytes, (21 * MSS_BYTES) as u64);
            assert_eq!(total.alone, Default::default());
            let last = files[face][first].1.len() - 1;
            files[face][first].1[last] ^= 1;
            let at = match face {
                Face::Guest => 10 * MSS_BYTES as u32 - 1,
                Face::Fabric => MSS_BYTES as u32 - 1,
            };
            assert_one_error(&compare(&files), Field::Payload { at });
        }
    }
}

#[test]
fn bytes_that_were_not_captured() {
    let style = Style { is_ns: true, kept_bytes: 154, ..Style::default() };
    let outcome = compare_with(style, &translated(false));
    assert_well(&outcome);
    let payload = outcome.total.payload;
    assert_eq!((payload.equal_bytes, payload.uncaptured_bytes), (21 * 100, 21 * 900));
}

#[test]
fn segments_on_one_side_alone() {
    let mut files = translated(false);
    let lost = nth(&files, Face::Fabric, 40_000, MSS_BYTES, 4);
    files.fabric.remove(lost);
    let swallowed = nth(&files, Face::Guest, 80, 0, 7);
    files.guest.remove(swallowed);
    let outcome = compare(&files);
    assert_well(&outcome);
    let alone = outcome.total.alone;
    assert_eq!(alone.from_guest.guest.segments, 1);
    assert_eq!(alone.from_guest.guest.payload_bytes, MSS_BYTES as u64);
    assert_eq!((alone.to_guest.fabric.segments, alone.to_guest.guest.segments), (1, 0));
    assert_eq!(alone.from_guest.fabric.segments, 0);
}

/// The peer's vcc accepts the offer, and reports in the options of ACKs.
#[test]
fn reports_that_the_port_removes() {
    let mut packets = connection(false);
    let guest = packets[0].1.from;
    for (_, packet) in packets.iter_mut().filter(|(_, packet)| packet.from != guest) {
        let option = match packet.flags & SYN {
            0 => options::pack(packet.ack, 0),
            _ => options::hello(2),
        };
        packet.options = [packet.options.clone(), option].concat();
    }
    let outcome = compare(&passed(&packets));
    assert_well(&outcome);
    let removed = |kind| outcome.total.changes.get(&Change::OptionRemoved { kind });
    assert_eq!(removed(253), Some(&1), "{:?}", outcome.total.changes);
    assert!(removed(172).is_some_and(|count| *count > 20), "{:?}", outcome.total.changes);
}

/// A guest receives marked data, and its port reports the marks in segments of its own.
#[test]
fn segments_that_the_port_sends() {
    let [guest, peer] = ends(false);
    let mut packets: Vec<Timed<Packet>> = connection(false).into_iter().take(3).collect();
    packets[1].1.options.extend(options::hello(2));
    let (mut seq, mut time_ns) = (5001, packets[2].0);
    for round in 0..20_u32 {
        let data = |from, to| Packet { payload: payload(MSS_BYTES), ..Packet::new(from, to) };
        time_ns += 1_000_000;
        let marked = Packet { seq, ack: 1 + 1000 * round, traffic_class: 3, ..data(peer, guest) };
        seq += MSS_BYTES as u32;
        packets.push((time_ns, marked));
        time_ns += 1_000_000;
        packets.push((time_ns, Packet { seq: 1 + 1000 * round, ack: seq, ..data(guest, peer) }));
    }
    let outcome = compare(&passed(&packets));
    assert_well(&outcome);
    let total = &outcome.total;
    assert!(total.reports.from_guest > 0 && total.reports.to_guest == 0, "{total:?}");
    assert_eq!(total.alone.from_guest.fabric.segments, total.reports.from_guest);
    assert!(total.changes.get(&Change::CeCleared).is_some_and(|count| *count == 20), "{total:?}");
}

/// Clocks that are an hour apart, a capture that began later, and more data than waits.
#[test]
fn clocks_that_differ() {
    let [guest, peer] = ends(false);
    let mut packets: Vec<Timed<Packet>> = connection(false).into_iter().take(3).collect();
    let (count, bytes) = (4 * WAITING_MAX_BYTES / MSS_BYTES, MSS_BYTES as u32);
    for segment in 0..count as u32 {
        let (time_ns, seq) = (packets[2].0 + u64::from(segment) * 100_000, 1 + segment * bytes);
        let data =
            Packet { seq, ack: 5001, payload: payload(MSS_BYTES), ..Packet::new(guest, peer) };
        packets.push((time_ns, data));
        if segment % 2 == 1 {
            let ack = Packet { seq: 5001, ack: seq + bytes, ..Packet::new(peer, guest) };
            packets.push((time_ns + 50_000, ack));
        }
    }
    let files = ByFace { guest: frames(&packets), fabric: frames(&packets) };
    for (is_ahead, hour_ns) in [(true, 3600 * S_NS), (false, 3600 * S_NS), (true, 0)] {
        let mut files = files.clone();
        let face = if is_ahead { Face::Fabric } else { Face::Guest };
        files[face].iter_mut().for_each(|(time_ns, _)| *time_ns += hour_ns);
        files.fabric.drain(..500);
        let outcome = compare(&files);
        assert_well(&outcome);
        let total = &outcome.total;
        assert_eq!(total.pairs, total.segments.fabric);
        assert_eq!(total.segments.guest - total.pairs, 500);
        match hour_ns {
            0 => assert!(matches!(outcome.delays, Delays::Agreed(_)), "{:?}", outcome.delays),
            _ => assert!(matches!(outcome.delays, Delays::Apart(_)), "{:?}", outcome.delays),
        }
    }
}

#[test]
fn captures_of_unlike_devices() {
    let mut files = translated(false);
    for (_, bytes) in &mut files.fabric {
        bytes.splice(12..12, [0x81, 0, 0, 7]);
    }
    let outcome = compare(&files);
    assert_well(&outcome);
    assert_eq!((outcome.connections.len(), outcome.total.pairs), (1, 48));
    let mut unopened = translated(false);
    unopened.guest.drain(..2);
    unopened.fabric.drain(..2);
    let outcome = compare(&unopened);
    assert_well(&outcome);
    assert!(!outcome.connections[0].has_syn);
    assert!(outcome.total.changes.contains_key(&Change::WindowUnscaled));
}

#[test]
fn connections_and_guests_are_chosen() {
    let files = translated(false);
    let file = |frames| pcap(Style::default(), ETHERNET, frames);
    let (guest, fabric) = (file(&files.guest), file(&files.fabric));
    let readers = ByFace { guest: &guest[..], fabric: &fabric[..] };
    let outcome = |mut comparison: Comparison| {
        read_in_step(readers, None, &mut comparison, &mut |_, problem| panic!("{problem}"));
        comparison.end()
    };
    let none = outcome(Comparison::new(100, Some(Box::new(|_, _| false))));
    assert_eq!((none.connections.len(), none.seen.guest.others), (0, 48));
    let full = outcome(Comparison::new(0, None));
    assert_eq!((full.connections.len(), full.seen.fabric.left_out), (0, 48));
    let swapped = outcome(Comparison::new(100, Some(Box::new(|end, _| end.port() == 80))));
    assert_eq!(swapped.connections[0].guest.port(), 80);
    assert!(swapped.total.errors > 0, "windows that no port translates in this direction");
    assert!(swapped.differences.iter().all(|it| it.direction == Direction::ToGuest
        || it.field == Field::Window
        || matches!(it.field, Field::Option { .. })));
    assert!(matches!(swapped.delays, Delays::Reversed), "{:?}", swapped.delays);
}

/// Each segment is paired, alone, or given up.
#[test]
fn changed_bytes_are_compared_or_refused() {
    let files = translated(true);
    let style = Style { is_ns: true, ..Style::default() };
    let [guest, fabric] = Face::BOTH.map(|face| pcap(style, ETHERNET, &files[face]));
    for at in (0..guest.len()).step_by(5) {
        let mut changed = guest.clone();
        changed[at] ^= 1 << (at % 8);
        for is_swapped in [false, true] {
            let mut readers = ByFace { guest: &changed[..], fabric: &fabric[..] };
            if is_swapped {
                std::mem::swap(&mut readers.guest, &mut readers.fabric);
            }
            let mut comparison = Comparison::new(3, None);
            read_in_step(readers, None, &mut comparison, &mut |_, _| {});
            let outcome = comparison.end();
            let total = &outcome.total;
            let alone = [total.alone.from_guest, total.alone.to_guest];
            let alone: u64 = alone.iter().map(|it| it.guest.segments + it.fabric.segments).sum();
            let segments = total.segments.guest + total.segments.fabric;
            assert!(
                2 * (total.pairs + total.copies) + alone + total.given_up.segments >= segments,
                "byte {at}"
            );
            assert!(outcome.connections.len() <= 3, "byte {at}");
        }
    }
}

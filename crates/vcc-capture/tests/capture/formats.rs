//! Every format and link type shows the connection that a port sees when it is fed the same frames.

use vcc_capture::testing::{EPOCH_NS, Pcapng, Style, Timed, frames, pcap, talk};
use vcc_capture::{Capture, Packet, Place, Tunnel};
use vcc_engine::FlowKey;
use vcc_frames::TunnelHeader;

use crate::reading::{ETHERNET, S_NS, assert_same, directly, ends, only, read_well};

#[test]
fn pcap_in_both_orders_and_units() {
    for is_ipv6 in [false, true] {
        let ends = ends(is_ipv6);
        let frames = frames(&talk(ends[0], ends[1]));
        let direct = directly(&frames, ends, None);
        for is_big_endian in [false, true] {
            for is_ns in [false, true] {
                let style = Style { is_big_endian, is_ns, ..Style::default() };
                let seen = read_well(&pcap(style, ETHERNET, &frames));
                assert_same(only(&seen), &direct);
                assert_eq!(only(&seen).key, FlowKey::new(ends[0], ends[1], None));
                assert_eq!((seen.packets, seen.segments), (48, 48));
                assert_eq!(seen.span_ns.map(|(first_ns, _)| first_ns), Some(EPOCH_NS));
            }
        }
    }
}

/// Headers suffice, because IP has the length.
#[test]
fn packets_are_cut() {
    let ends = ends(false);
    let frames = frames(&talk(ends[0], ends[1]));
    let style = |kept_bytes| Style { kept_bytes, ..Style::default() };
    let seen = read_well(&pcap(style(58), ETHERNET, &frames));
    assert_same(only(&seen), &directly(&frames, ends, None));
    assert_eq!(seen.cut, 0);
    // The SYNs, which are the only segments with options, are cut within these.
    let seen = read_well(&pcap(style(54), ETHERNET, &frames));
    assert_eq!((seen.cut, seen.connections.len(), seen.unopened), (2, 1, 1));
}

/// Ethernet has no frame below 60 bytes, and the bytes behind IP's length are no payload.
#[test]
fn short_frames_are_padded() {
    for is_ipv6 in [false, true] {
        let ends = ends(is_ipv6);
        let mut packets = talk(ends[0], ends[1]);
        packets.retain(|(_, packet)| packet.flags & vcc_frames::wire::SYN == 0);
        let plain = read_well(&pcap(Style::default(), ETHERNET, &frames(&packets)));
        let is_empty = |packet: &vcc_frames::Packet| packet.payload.is_empty();
        for (_, packet) in packets.iter_mut().filter(|(_, packet)| is_empty(packet)) {
            packet.padding = vec![0; 6];
        }
        let padded = read_well(&pcap(Style::default(), ETHERNET, &frames(&packets)));
        let [plain, padded] = [&plain, &padded].map(only);
        assert!(padded.state.0 == plain.state.0, "another state with padding");
        assert_eq!(padded.life, plain.life);
    }
}

/// The packets of an Ethernet frame's connection with other headers in front.
fn with_header(frames: &[Timed<Vec<u8>>], header: &[u8]) -> Vec<Timed<Vec<u8>>> {
    frames.iter().map(|(time_ns, frame)| (*time_ns, [header, &frame[14..]].concat())).collect()
}

#[test]
fn link_types() {
    let ends = ends(false);
    let untagged = frames(&talk(ends[0], ends[1]));
    let direct = directly(&untagged, ends, None);
    let cooked = [&[0; 14][..], &[8, 0]].concat();
    let mut cooked2 = [0; 20];
    (cooked2[0], cooked2[7]) = (8, 3);
    for (link, header) in [
        (101, &[][..]),
        (228, &[]),
        (0, &[2, 0, 0, 0]),
        (108, &[0, 0, 0, 2]),
        (113, &cooked),
        (276, &cooked2),
    ] {
        let seen = read_well(&pcap(Style::default(), link, &with_header(&untagged, header)));
        assert_same(only(&seen), &direct);
        let device = (link == 276).then_some(3);
        assert_eq!(seen.places, [Place { interface: 0, device, tunnel: None }]);
    }
    let mut tagged = talk(ends[0], ends[1]);
    tagged.iter_mut().for_each(|(_, packet)| packet.tags = vec![(0x8100, 0x2007)]);
    let tagged = frames(&tagged);
    let seen = read_well(&pcap(Style::default(), ETHERNET, &tagged));
    assert_same(only(&seen), &directly(&tagged, ends, Some(7)));
    assert_eq!(only(&seen).key.vlan(), Some(7));
}

/// A host's capture of two devices has each packet twice.
#[test]
fn pcapng_with_two_interfaces() {
    let ends = ends(false);
    let frames = frames(&talk(ends[0], ends[1]));
    let direct = directly(&frames, ends, None);
    for is_big_endian in [false, true] {
        let style = Style { is_big_endian, ..Style::default() };
        let mut file = Pcapng::new(style);
        file.interface(1, "tap0", 6, 0);
        // 2^-30 s hold these times: each is a whole number of 10 us, but is rounded down to ns.
        file.interface(1, "", 0x80 | 30, 1_699_999_000);
        file.block(4, &[0; 4]);
        for (time_ns, frame) in &frames {
            file.packet(0, time_ns / 1000, frame);
            let since_ns = u128::from(time_ns - 1_699_999_000 * S_NS);
            let units = ((since_ns << 30) / u128::from(S_NS) + 1) as u64;
            file.packet(1, units, frame);
        }
        let seen = read_well(&file.file);
        let [first, second] = &seen.connections[..] else { panic!("a connection at each") };
        assert_same(first, &direct);
        assert_eq!((first.place, second.place), (0, 1));
        assert_eq!(second.state.retransmissions, 1);
        assert_eq!(second.state.srtt_us(), direct.srtt_us());
    }
}

/// Devices in different network namespaces may have the same name.
#[test]
fn interfaces_of_one_name_are_two_places() {
    let ends = ends(false);
    let frames = frames(&talk(ends[0], ends[1]));
    let direct = directly(&frames, ends, None);
    let mut file = Pcapng::new(Style::default());
    let (before, behind) = frames.split_at(20);
    for (part, is_first) in [(before, true), (behind, false)] {
        // Each continues in the next section.
        if !is_first {
            file.section(Style::default());
        }
        (0..2).for_each(|_| file.interface(1, "tap0", 6, 0));
        for (time_ns, frame) in part {
            (0..2).for_each(|interface| file.packet(interface, time_ns / 1000, frame));
        }
    }
    let seen = read_well(&file.file);
    let [first, second] = &seen.connections[..] else { panic!("a connection at each") };
    assert_same(first, &direct);
    assert_same(second, &direct);
    let mut capture = Capture::open(&file.file[..]).expect("a capture");
    while capture.next(&mut Packet::default()).expect("readable") {}
    let names: Vec<_> = capture.interfaces().iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["tap0", "tap0 (1)"]);
}

#[test]
fn sections_change_the_order_and_continue_a_connection() {
    let ends = ends(false);
    let frames = frames(&talk(ends[0], ends[1]));
    let mut file = Pcapng::new(Style::default());
    file.interface(1, "tap0", 9, 0);
    let (before, behind) = frames.split_at(20);
    before.iter().for_each(|(time_ns, frame)| file.packet(0, *time_ns, frame));
    file.section(Style { is_big_endian: true, ..Style::default() });
    file.interface(101, "wg0", 6, 0);
    file.interface(1, "tap0", 6, 0);
    behind.iter().for_each(|(time_ns, frame)| file.packet(1, time_ns / 1000, frame));
    let seen = read_well(&file.file);
    assert_same(only(&seen), &directly(&frames, ends, None));
    assert_eq!(seen.places, [Place { interface: 0, device: None, tunnel: None }]);
}

/// A sender's device cuts super-segments behind the place of the capture; IPv4's length may be 0.
#[test]
fn super_segments() {
    let ends = ends(false);
    let mut packets = talk(ends[0], ends[1]);
    let single = directly(&frames(&packets), ends, None);
    let is_data = |packet: &vcc_frames::Packet| !packet.payload.is_empty();
    let first = packets.iter().position(|(_, packet)| is_data(packet)).expect("data");
    let flight: Vec<_> = packets.drain(first..first + 10).collect();
    let payload = flight.iter().flat_map(|(_, packet)| packet.payload.clone()).collect();
    let (time_ns, packet) = flight[0].clone();
    packets.insert(first, (time_ns, vcc_frames::Packet { payload, ..packet }));
    let mut frames = frames(&packets);
    for has_length in [true, false] {
        if !has_length {
            frames[first].1[16..18].fill(0);
        }
        let seen = read_well(&pcap(Style::default(), ETHERNET, &frames));
        let state = &only(&seen).state;
        assert_eq!(state.mss_bytes, single.mss_bytes);
        assert_eq!(state.cwnd_segs(), single.cwnd_segs());
        assert_eq!((state.retransmissions, state.reductions), (1, 1));
    }
}

/// A connection inside a tunnel is not that of the same ends outside it.
#[test]
fn packets_inside_a_tunnel() {
    let ends = ends(false);
    let plain = frames(&talk(ends[0], ends[1]));
    let [from, to] = ["192.0.2.1", "192.0.2.2"].map(|end| end.parse().expect("an address"));
    let header = TunnelHeader::Vxlan { port: 4789, vni: 7 };
    let tunnel = vcc_frames::Tunnel { header, from, to, checksum: false, limit: false };
    let both = plain.iter().flat_map(|(time_ns, frame)| {
        [(*time_ns, frame.clone()), (*time_ns, tunnel.wrap(frame, 0))]
    });
    let seen = read_well(&pcap(Style::default(), ETHERNET, &both.collect::<Vec<_>>()));
    let [outside, inside] = &seen.connections[..] else { panic!("two connections") };
    assert_same(outside, &directly(&plain, ends, None));
    assert_same(inside, &directly(&plain, ends, None));
    assert_eq!(seen.places[inside.place].tunnel, Some(Tunnel::Vxlan { vni: 7 }));
    assert_eq!(seen.places[outside.place].tunnel, None);
}

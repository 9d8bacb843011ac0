//! Frames that are not TCP, or not valid TCP: passed byte for byte and counted, even if their
//! addresses and ports are those of a translated flow.

use vcc_frames::wire::*;
use vcc_frames::{Packet, options, payload};
use vcc_port::{Counter, counters};

use crate::conversation::{Connection, Conversation, Shape};
use crate::direction::Direction::{self, FromGuest};
use crate::dual::DualRun;
use crate::layout::fill_checksums;
use crate::setup::usual;

/// An edit of a frame whose IP header begins at `l3`, and whose TCP header begins at `l4`.
struct Harm {
    what: &'static str,
    counter: Counter,
    edit: fn(&mut Vec<u8>, l3: usize, l4: usize),
}

const fn harm(
    counter: Counter,
    what: &'static str,
    edit: fn(&mut Vec<u8>, l3: usize, l4: usize),
) -> Harm {
    Harm { what, counter, edit }
}

/// Sets the flags, and keeps the data offset.
fn set_flags(frame: &mut [u8], l4: usize, flags: u16) {
    let offset = read_u16(frame, l4 + 12) & !ALL_FLAGS;
    write_u16(frame, l4 + 12, offset | flags);
}

fn set_data_offset(frame: &mut [u8], l4: usize, words: u8) {
    frame[l4 + 12] = frame[l4 + 12] & 0x0f | words << 4;
}

/// Overwrites the options, of which every frame here has 20 bytes.
fn set_options(frame: &mut [u8], l4: usize, options: &[u8]) {
    frame[l4 + TCP_BYTES..][..options.len()].copy_from_slice(options);
}

const ANY_FAMILY: &[Harm] = &[
    harm(counters::NOT_IP, "ARP", |f, l3, _| write_u16(f, l3 - 2, ETHERTYPE_ARP)),
    harm(counters::NOT_IP, "an unknown type", |f, l3, _| write_u16(f, l3 - 2, 0x88b5)),
    harm(counters::NOT_IP, "an 802.1ad tag outside", |f, _, _| {
        let [high, low] = ETHERTYPE_QINQ.to_be_bytes();
        f.splice(12..12, [high, low, 0, 5]);
    }),
    harm(counters::NOT_IP, "two tags more of one type", |f, _, _| {
        let tags = [[0x81, 0, 0, 5], [0x81, 0, 0, 6]].concat();
        f.splice(12..12, tags);
    }),
    harm(counters::NOT_IP, "a tag cut short", |f, _, _| {
        write_u16(f, 12, ETHERTYPE_VLAN);
        f.truncate(17);
    }),
    harm(counters::MALFORMED, "an IP header of one byte", |f, l3, _| f.truncate(l3 + 1)),
    harm(counters::MALFORMED, "no TCP header", |f, _, l4| f.truncate(l4)),
    harm(counters::MALFORMED, "a TCP header cut short", |f, _, l4| f.truncate(l4 + 19)),
    harm(counters::MALFORMED, "TCP options cut short", |f, _, l4| f.truncate(l4 + 39)),
    harm(counters::MALFORMED, "payload cut short", |f, _, _| f.truncate(f.len() - 1)),
    harm(counters::MALFORMED, "IP version 5", |f, l3, _| f[l3] = 0x50 | f[l3] & 0x0f),
    harm(counters::MALFORMED, "data offset 0", |f, _, l4| set_data_offset(f, l4, 0)),
    harm(counters::MALFORMED, "data offset 4", |f, _, l4| set_data_offset(f, l4, 4)),
    harm(counters::MALFORMED, "data offset past the end", |f, _, l4| set_data_offset(f, l4, 15)),
    harm(counters::BAD_FLAGS, "no flags", |f, _, l4| set_flags(f, l4, 0)),
    harm(counters::BAD_FLAGS, "all flags", |f, _, l4| set_flags(f, l4, ALL_FLAGS)),
    harm(counters::BAD_FLAGS, "all classic flags", |f, _, l4| set_flags(f, l4, 0xff)),
    harm(counters::BAD_FLAGS, "SYN and RST", |f, _, l4| set_flags(f, l4, SYN | RST)),
    harm(counters::BAD_FLAGS, "SYN, RST, ACK", |f, _, l4| set_flags(f, l4, SYN | RST | ACK)),
    harm(counters::BAD_FLAGS, "FIN alone", |f, _, l4| set_flags(f, l4, FIN)),
    harm(counters::BAD_FLAGS, "PSH alone", |f, _, l4| set_flags(f, l4, PSH)),
    harm(counters::BAD_FLAGS, "ECE and CWR alone", |f, _, l4| set_flags(f, l4, ECE | CWR)),
];

const IPV4: &[Harm] = &[
    harm(counters::MALFORMED, "a header cut short", |f, l3, _| f.truncate(l3 + 19)),
    harm(counters::MALFORMED, "ihl 0", |f, l3, _| f[l3] = 0x40),
    harm(counters::MALFORMED, "ihl 4", |f, l3, _| f[l3] = 0x44),
    harm(counters::MALFORMED, "total length beyond the frame", |f, l3, _| {
        let beyond = (f.len() - l3 + 1) as u16;
        write_u16(f, l3 + 2, beyond);
    }),
    harm(counters::MALFORMED, "total length 0", |f, l3, _| write_u16(f, l3 + 2, 0)),
    harm(counters::MALFORMED, "total length of the IP header", |f, l3, _| {
        write_u16(f, l3 + 2, 20);
    }),
    harm(counters::MALFORMED, "total length within the options", |f, l3, _| {
        write_u16(f, l3 + 2, 20 + 39);
    }),
    harm(counters::FRAGMENT, "the first fragment", |f, l3, _| write_u16(f, l3 + 6, 0x2000)),
    harm(counters::FRAGMENT, "a middle fragment", |f, l3, _| write_u16(f, l3 + 6, 0x2001)),
    harm(counters::FRAGMENT, "the last fragment", |f, l3, _| write_u16(f, l3 + 6, 0x1fff)),
    harm(counters::NOT_TCP, "UDP", |f, l3, _| f[l3 + 9] = PROTOCOL_UDP),
    harm(counters::NOT_TCP, "ICMP", |f, l3, _| f[l3 + 9] = PROTOCOL_ICMP),
    harm(counters::NOT_TCP, "a fragment of UDP", |f, l3, _| {
        f[l3 + 9] = PROTOCOL_UDP;
        write_u16(f, l3 + 6, 0x2000);
    }),
];

/// Puts an extension header between IPv6 and TCP.
fn extend(frame: &mut Vec<u8>, l3: usize, kind: u8, rest: &[u8]) {
    let next = std::mem::replace(&mut frame[l3 + 6], kind);
    let bytes = [&[next], rest].concat();
    let longer = read_u16(frame, l3 + 4) + bytes.len() as u16;
    write_u16(frame, l3 + 4, longer);
    frame.splice(l3 + IPV6_BYTES..l3 + IPV6_BYTES, bytes);
}

const NO_PADDING: [u8; 7] = [0; 7];

const IPV6: &[Harm] = &[
    harm(counters::MALFORMED, "a header cut short", |f, l3, _| f.truncate(l3 + 39)),
    harm(counters::MALFORMED, "payload length beyond the frame", |f, l3, _| {
        let beyond = read_u16(f, l3 + 4) + 1;
        write_u16(f, l3 + 4, beyond);
    }),
    harm(counters::MALFORMED, "payload length 0", |f, l3, _| write_u16(f, l3 + 4, 0)),
    harm(counters::MALFORMED, "payload length within the options", |f, l3, _| {
        write_u16(f, l3 + 4, 39);
    }),
    harm(counters::FRAGMENT, "the first fragment", |f, l3, _| {
        extend(f, l3, PROTOCOL_FRAGMENT, &[0, 0, 1, 0, 0, 0, 9]);
    }),
    harm(counters::FRAGMENT, "a later fragment", |f, l3, _| {
        extend(f, l3, PROTOCOL_FRAGMENT, &[0, 5, 0xa8, 0, 0, 0, 9]);
    }),
    harm(counters::FRAGMENT, "a whole packet as a fragment (RFC 6946)", |f, l3, _| {
        extend(f, l3, PROTOCOL_FRAGMENT, &NO_PADDING);
    }),
    harm(counters::FRAGMENT, "a fragment behind another header", |f, l3, _| {
        extend(f, l3, PROTOCOL_FRAGMENT, &NO_PADDING);
        extend(f, l3, PROTOCOL_DESTINATION, &NO_PADDING);
    }),
    harm(counters::MALFORMED, "an extension header past the end", |f, l3, _| {
        extend(f, l3, PROTOCOL_HOP_BY_HOP, &[200, 0, 0, 0, 0, 0, 0]);
    }),
    harm(counters::MALFORMED, "an extension header cut short", |f, l3, _| {
        f[l3 + 6] = PROTOCOL_HOP_BY_HOP;
        f.truncate(l3 + IPV6_BYTES + 1);
    }),
    harm(counters::DEEP, "five extension headers", |f, l3, _| {
        for _ in 0..5 {
            extend(f, l3, PROTOCOL_DESTINATION, &NO_PADDING);
        }
    }),
    harm(counters::NOT_TCP, "UDP", |f, l3, _| f[l3 + 6] = PROTOCOL_UDP),
    harm(counters::NOT_TCP, "UDP behind another header", |f, l3, _| {
        f[l3 + 6] = PROTOCOL_UDP;
        extend(f, l3, PROTOCOL_HOP_BY_HOP, &NO_PADDING);
    }),
    harm(counters::NOT_TCP, "ICMP", |f, l3, _| f[l3 + 6] = 58),
    harm(counters::NOT_TCP, "nothing at all", |f, l3, _| f[l3 + 6] = 59),
    harm(counters::NOT_TCP, "encrypted (RFC 4303)", |f, l3, _| f[l3 + 6] = 50),
];

/// Too few for a TCP header of the largest size to end within them.
const PAYLOAD_BYTES: usize = 16;

/// Segments to edit: data of a live flow, and the SYN of an unknown connection.
fn victims(c: &Connection, from: Direction) -> [Packet; 2] {
    let mut data = c.packet(from);
    data.options = options::join(&[options::nops(8), options::timestamps(1, 2)]);
    data.payload = payload(PAYLOAD_BYTES);
    let mut syn = data.clone();
    syn.flags = SYN;
    syn.from.set_port(9);
    [data, syn]
}

fn count(run: &DualRun, counter: Counter) -> u64 {
    run.datapath.counters().expect("counters").get(counter)
}

/// BPF_PROG_RUN of recent kernels refuses frames that are shorter than their IP header, unless they
/// have a VLAN tag.
fn refused_by_the_kernel(frame: &[u8], l4: usize) -> bool {
    let ethertype = read_u16(frame, ETHERNET_BYTES - 2);
    [ETHERTYPE_IPV4, ETHERTYPE_IPV6].contains(&ethertype) && frame.len() < l4
}

fn pass_untouched(of_family: &[Harm], ipv6: bool) {
    if !vcc_testing::can_attach() {
        return;
    }
    let mut run = DualRun::new(&usual());
    for vlan in [None, Some(3)] {
        let shape = Shape { ipv6, vlan, opener: FromGuest };
        let mut c = Conversation::new(&mut run, shape, 30_000);
        c.open();
        let connection = c.connection;
        let l3 = ETHERNET_BYTES + if vlan.is_some() { TAG_BYTES } else { 0 };
        let l4 = l3 + if ipv6 { IPV6_BYTES } else { IPV4_BYTES };
        for Harm { what, counter, edit } in ANY_FAMILY.iter().chain(of_family) {
            for from in Direction::BOTH {
                for victim in victims(&connection, from) {
                    run.doing = format!("{what}, {shape:?}");
                    let mut frame = victim.frame();
                    edit(&mut frame, l3, l4);
                    if refused_by_the_kernel(&frame, l4) {
                        continue;
                    }
                    let before = count(&run, *counter);
                    assert!(run.send(from, &frame, 0).is_none(), "{}", run.doing);
                    assert_eq!(count(&run, *counter), before + 1, "{}", run.doing);
                }
            }
        }
    }
    // No flow was created or changed, and each frame was counted once.
    run.assert_all();
}

#[test]
fn bad_frames_over_ipv4() {
    pass_untouched(IPV4, false);
}

#[test]
fn bad_frames_over_ipv6() {
    pass_untouched(IPV6, true);
}

/// BPF_PROG_RUN refuses these. No device delivers such a frame.
#[test]
fn less_than_ethernet_is_refused_by_the_kernel() {
    if !vcc_testing::can_attach() {
        return;
    }
    let run = DualRun::new(&usual());
    for bytes in 0..ETHERNET_BYTES {
        assert!(run.datapath.run(FromGuest.program(), &vec![0; bytes], 0).is_err());
    }
}

/// Frames truncated to every length, and options with every length.
#[test]
fn nothing_is_read_past_the_end() {
    if !vcc_testing::can_attach() {
        return;
    }
    let mut run = DualRun::new(&usual());
    for ipv6 in [false, true] {
        let shape = Shape { ipv6, vlan: Some(3), opener: FromGuest };
        let mut c = Conversation::new(&mut run, shape, 30_000);
        c.open();
        let frame = victims(&c.connection, FromGuest)[0].frame();
        for bytes in ETHERNET_BYTES + 1..frame.len() {
            run.doing = format!("cut to {bytes} bytes");
            assert!(run.send(FromGuest, &frame[..bytes], 0).is_none());
        }
        let l4 = frame.len() - PAYLOAD_BYTES - 20 - TCP_BYTES;
        for length in 0..=255 {
            run.doing = format!("an option of {length} bytes");
            let mut frame = frame.clone();
            set_options(&mut frame, l4, &[vec![254, length], options::nops(18)].concat());
            fill_checksums(&mut frame);
            assert!(run.send(FromGuest, &frame, 0).is_some(), "{}", run.doing);
        }
    }
    run.assert_all();
}

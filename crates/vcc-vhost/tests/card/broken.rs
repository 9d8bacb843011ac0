//! What a guest may write into its rings: the frame is dropped and counted, or the ring is stopped;
//! the card keeps running.

use std::net::SocketAddr;

use vcc_domain::{BufferSpec, Port};
use vcc_engine::{Params, sys};
use vcc_frames::{MACS, Packet, options, payload};
use vcc_vhost::testing::*;

use crate::PLAIN;
use crate::host::{Host, eventually};
use crate::{frame, port};

const FAR: u64 = 1 << 40;

#[test]
fn bad_descriptors_are_counted_and_given_back() {
    let host = Host::with(port());
    let mut guest = Guest::new(2);
    let _front_end = FrontEnd::ready(&guest, &host.socket, USUAL);
    let at = BUFFERS_AT;
    let table = BUFFERS_AT + 0x8000;
    type Describe<'a> = &'a dyn Fn(&Guest);
    let bad: &[(&str, Describe)] = &[
        ("out of range", &|guest| guest.describe(SEND, 0, FAR, 100, 0, 0)),
        ("at the end of all memory", &|guest| guest.describe(SEND, 0, u64::MAX - 4, 100, 0, 0)),
        ("over the end of memory", &|guest| {
            guest.describe(SEND, 0, MEMORY_BYTES as u64 - 50, 100, 0, 0);
        }),
        ("of no length", &|guest| guest.describe(SEND, 0, at, 0, 0, 0)),
        ("a header of 11 bytes", &|guest| guest.describe(SEND, 0, at, 11, 0, 0)),
        ("a header alone", &|guest| guest.describe(SEND, 0, at, 12, 0, 0)),
        ("a frame of 13 bytes", &|guest| guest.describe(SEND, 0, at, 25, 0, 0)),
        ("of 4 GiB", &|guest| guest.describe(SEND, 0, at, u32::MAX, 0, 0)),
        ("longer than a frame", &|guest| guest.describe(SEND, 0, at, 12 + 65_554, 0, 0)),
        ("for the card to write", &|guest| guest.describe(SEND, 0, at, 100, WRITE, 0)),
        ("that point to themselves", &|guest| guest.describe(SEND, 0, at, 1000, NEXT, 0)),
        ("of no length that point to themselves", &|guest| {
            guest.describe(SEND, 0, at, 0, NEXT, 0);
        }),
        ("that point to each other", &|guest| {
            guest.describe(SEND, 0, at, 8, NEXT, 1);
            guest.describe(SEND, 1, at, 8000, NEXT, 0);
        }),
        ("whose next is beyond the ring", &|guest| guest.describe(SEND, 0, at, 8, NEXT, 60_000)),
        ("in a table that is no multiple", &|guest| {
            guest.describe(SEND, 0, table, 17, INDIRECT, 0)
        }),
        ("in a table of no length", &|guest| guest.describe(SEND, 0, table, 0, INDIRECT, 0)),
        ("in a table out of range", &|guest| guest.describe(SEND, 0, FAR, 160, INDIRECT, 0)),
        ("in a table within a table", &|guest| {
            guest.describe(SEND, 0, table, 16, INDIRECT, 0);
            guest.write_descriptor(table, table, 16, INDIRECT, 0);
        }),
        ("in a table of a million", &|guest| {
            guest.describe(SEND, 0, table, 16_000_000, INDIRECT, 0);
        }),
        ("in a table that points to itself", &|guest| {
            guest.describe(SEND, 0, table, 65_535 * 16, INDIRECT, 0);
            guest.write_descriptor(table, at, 0, NEXT, 0);
        }),
    ];
    for (count, (what, describe)) in (1..).zip(bad) {
        describe(&guest);
        guest.offer(SEND, 0);
        guest.kick(SEND);
        eventually(what, || guest.used(SEND) == count);
        assert_eq!(host.card.counts().bad_from_guest, u64::from(count), "{what}");
    }
    guest.send(PLAIN, &frame(7));
    assert_eq!(host.sent()[12..], frame(7));
    host.reports(
        "dropped a frame from the guest: an invalid frame, descriptor or virtio-net header",
    );
    assert_eq!(host.reported_more(), None, "one line for all of them");
}

#[test]
fn bad_headers_are_counted() {
    let host = Host::with(port());
    let mut guest = Guest::new(2);
    let _front_end = FrontEnd::ready(&guest, &host.socket, USUAL);
    let bad: [[u8; 12]; 6] = [
        // A super-segment of segments of no length; without checksum; of UDP; of nothing known.
        [1, 1, 0, 0, 0, 0, 34, 0, 16, 0, 0, 0],
        [0, 1, 0, 0, 100, 0, 0, 0, 0, 0, 0, 0],
        [1, 3, 0, 0, 100, 0, 34, 0, 16, 0, 0, 0],
        [1, 77, 0, 0, 100, 0, 34, 0, 16, 0, 0, 0],
        // A checksum beyond the frame.
        [1, 0, 0, 0, 0, 0, 34, 0, 200, 0, 0, 0],
        [1, 0, 0, 0, 0, 0, 255, 255, 255, 255, 0, 0],
    ];
    for (count, header) in (1..).zip(bad) {
        guest.send(header, &frame(1));
        eventually("given back", || guest.used(SEND) == count);
        assert_eq!(host.card.counts().bad_from_guest, u64::from(count), "{header:?}");
    }
    guest.send(PLAIN, &frame(7));
    assert_eq!(host.sent()[12..], frame(7));
}

#[test]
fn bad_receive_buffers_are_counted() {
    let host = Host::with(port());
    let mut guest = Guest::new(2);
    let _front_end = FrontEnd::ready(&guest, &host.socket, USUAL & !MERGEABLE);
    let send = || host.wire.send(&[&PLAIN[..], &frame(1)].concat()).expect("sent");
    for (count, (at, bytes, flags)) in
        (1..).zip([(FAR, 2048, WRITE), (BUFFERS_AT, 0, WRITE), (BUFFERS_AT, 2048, 0)])
    {
        guest.describe(RECEIVE, 0, at, bytes, flags, 0);
        guest.offer(RECEIVE, 0);
        send();
        eventually("given back", || guest.used(RECEIVE) == count);
        assert_eq!(host.card.counts().bad_buffer, u64::from(count));
    }
    guest.offer_buffers(RECEIVE, 1, 2048);
    send();
    eventually("received", || guest.used(RECEIVE) == 4);
    assert_eq!(guest.received(RECEIVE, 3, 1)[12..], frame(1));
}

/// However long the guest makes its chains, and however many of them a frame would take.
#[test]
fn a_frame_looks_at_as_many_descriptors_as_a_ring_has() {
    // Bytes of the last descriptor of each chain, and the chains that a frame then takes.
    for (last_bytes, chains) in [(0, 1), (16, 2)] {
        let host = Host::with(port());
        let mut guest = Guest::new(2);
        let _front_end = FrontEnd::ready(&guest, &host.socket, USUAL);
        let (table, descriptors) = (BUFFERS_AT, 600);
        for number in 0..descriptors {
            let is_last = number + 1 == descriptors;
            let bytes = if is_last { last_bytes } else { 0 };
            let (flags, next) = if is_last { (WRITE, 0) } else { (WRITE | NEXT, number + 1) };
            let place = table + 16 * u64::from(number);
            guest.write_descriptor(place, BUFFERS_AT + 0x8000, bytes, flags, next);
        }
        guest.describe(RECEIVE, 0, table, 16 * u32::from(descriptors), INDIRECT, 0);
        for _ in 0..100 {
            guest.offer(RECEIVE, 0);
        }
        host.wire.send(&[&PLAIN[..], &frame(1)].concat()).expect("sent");
        eventually("dropped", || host.card.counts().bad_buffer == 1);
        assert_eq!(guest.used(RECEIVE), chains, "{last_bytes} bytes");
    }
}

/// An index beyond the ring, and a head beyond the table: the meaning is unknown.
#[test]
fn a_ring_that_makes_no_sense_is_stopped_until_it_is_set_up_again() {
    let host = Host::with(port());
    let mut guest = Guest::new(2);
    let mut front_end = FrontEnd::ready(&guest, &host.socket, USUAL);
    for head in [None, Some(RING_ENTRIES)] {
        match head {
            None => guest.skip(SEND, RING_ENTRIES + 1),
            Some(head) => guest.offer(SEND, head),
        }
        guest.kick(SEND);
        host.reports("stopped ring 1 until the guest's driver resets the card");
        // The other direction keeps running.
        guest.offer_buffers(RECEIVE, 1, 2048);
        host.wire.send(&[&PLAIN[..], &frame(1)].concat()).expect("sent");
        eventually("received", || guest.used(RECEIVE) == 1);
        for ring in [0, 1] {
            front_end.stop(ring);
        }
        guest.forget();
        front_end.set_up(&guest, USUAL);
        guest.send(PLAIN, &frame(7));
        assert_eq!(host.sent()[12..], frame(7));
    }
}

/// Rings, descriptors and buffers full of noise.
#[test]
fn noise_in_the_guests_memory_breaks_nothing() {
    let host = Host::with(port());
    let mut guest = Guest::new(2);
    let mut front_end = FrontEnd::ready(&guest, &host.socket, USUAL | EVENT_IDX);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..200 {
        for ring in [RECEIVE, SEND] {
            for index in 0..RING_ENTRIES {
                let at = match random() % 4 {
                    0 => random(),
                    _ => random() % MEMORY_BYTES as u64,
                };
                let bytes = random() as u32 >> (random() % 32);
                let (flags, next) = (random() as u16 & 7, random() as u16 % (RING_ENTRIES + 3));
                guest.describe(ring, index, at, bytes, flags, next);
            }
            for _ in 0..random() % 32 {
                guest.offer(ring, random() as u16 % (RING_ENTRIES + u16::from(round % 8 == 0)));
            }
            guest.kick(ring);
        }
        let _ = host.wire.send(&[&PLAIN[..], &frame(round)].concat());
        // All of it has been looked at, and the rings may be stopped.
        front_end.features();
        for ring in [0, 1] {
            front_end.stop(ring);
        }
        guest.forget();
        for ring in [RECEIVE, SEND] {
            front_end.start(&guest, ring);
        }
    }
    while host.sent_more().is_some() {}
    guest.send(PLAIN, &frame(7));
    assert_eq!(host.sent()[12..], frame(7));
}

/// What a connection sends beyond its share of the buffer is dropped, and delays no other frame.
#[test]
fn a_connection_without_room_delays_no_other_frame() {
    let params = Params::with(|params| params.act = sys::ACT_HOLD as _);
    let small = BufferSpec { size_bytes: 8000, ..BufferSpec::default() };
    let host = Host::with(Port::with_buffer(params, 64, small));
    let mut guest = Guest::new(2);
    let _front_end = FrontEnd::ready(&guest, &host.socket, USUAL);
    guest.offer_buffers(RECEIVE, 64, 2048);
    open_with_a_small_window(&host, &mut guest);
    for number in 0..40 {
        guest.send(PLAIN, &data(number));
    }
    guest.send(PLAIN, &frame(7));
    // The window's segment, and nothing between.
    host.sent();
    assert_eq!(host.sent()[12..], frame(7));
    assert_eq!(guest.used(SEND), 42);
    let held_bytes = host.card.with_port(Port::held_bytes);
    assert!((2000..=4000).contains(&held_bytes), "{held_bytes}");
    // One for the share that is full, and what is behind that gap.
    let dropped = |reason| host.card.with_port(|port| port.counters().get(reason));
    assert_eq!(dropped(sys::COUNT_NO_BUFFER), 1);
    assert!(dropped(sys::COUNT_DROPPED) > 30);
}

fn ends() -> [SocketAddr; 2] {
    ["10.0.0.1:1000", "10.0.0.2:80"].map(|end| end.parse().expect("an end"))
}

/// The guest connects to a peer whose window is one segment.
fn open_with_a_small_window(host: &Host, guest: &mut Guest) {
    let [one, other] = ends();
    let syn = Packet { seq: 999, options: options::mss(1460), ..Packet::syn(one, other) };
    guest.send(PLAIN, &syn.frame());
    host.sent();
    let flags = (sys::TCP_SYN | sys::TCP_ACK) as u16;
    let syn_ack = Packet { flags, seq: 4999, options: options::mss(1460), ..from_peer() };
    host.wire.send(&[&PLAIN[..], &syn_ack.frame()].concat()).expect("sent");
    eventually("the SYN-ACK", || guest.used(RECEIVE) >= 1);
}

fn from_peer() -> Packet {
    let [guest, peer] = ends();
    let macs = [MACS[1], MACS[0]];
    Packet { seq: 5000, ack: 1000, window: 1000, macs, ..Packet::new(peer, guest) }
}

/// The guest's segments, one after the other.
fn data(number: u32) -> Vec<u8> {
    let [guest, peer] = ends();
    let (seq, payload) = (1000 + 1000 * number, payload(1000));
    Packet { seq, ack: 5000, payload, ..Packet::new(guest, peer) }.frame()
}

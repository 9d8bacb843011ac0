//! Frames both ways.

use vcc_frames::wire::{ACK, CWR};
use vcc_frames::{Packet, payload};
use vcc_vhost::testing::*;

use crate::PLAIN;
use crate::host::{Host, eventually};
use crate::{frame, port};

const ONE_BUFFER: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0];

#[test]
fn frames_cross_both_ways() {
    for features in
        [USUAL, USUAL | EVENT_IDX, (USUAL | EVENT_IDX) & !(MERGEABLE | PROTOCOL_FEATURES)]
    {
        let host = Host::with(port());
        let mut guest = Guest::new(2);
        let _front_end = FrontEnd::ready(&guest, &host.socket, features);
        // The ring is used more than once.
        guest.offer_buffers(RECEIVE, 128, 2048);
        for number in 0..600 {
            guest.send(PLAIN, &frame(number));
            assert_eq!(host.sent(), [&ONE_BUFFER[..], &frame(number)].concat(), "{number}");
            host.wire.send(&[&PLAIN[..], &frame(number)].concat()).expect("sent");
            eventually("received", || guest.used(RECEIVE) == number + 1);
            assert_eq!(
                guest.received(RECEIVE, number, 1),
                [&ONE_BUFFER[..], &frame(number)].concat()
            );
            guest.offer_buffers(RECEIVE, 1, 2048);
        }
        eventually("given back", || guest.used(SEND) == 600);
        assert_eq!(host.card.counts(), Default::default());
        assert!(guest.was_called(RECEIVE) && guest.was_called(SEND));
    }
}

/// The answer to [`frame`].
fn to_guest(number: u16) -> Vec<u8> {
    let end = |host: &str, port: u16| format!("{host}:{port}").parse().expect("an end");
    Packet::new(end("10.0.0.2", 80), end("10.0.0.1", 1000 + number)).frame()
}

/// A header and a super-segment of 60,000 bytes, which needs its checksum completed.
fn super_segment() -> Vec<u8> {
    let [from, to] = ["10.0.0.2:80", "10.0.0.1:1000"].map(|end| end.parse().expect("an end"));
    let segment = Packet { payload: payload(60_000), ..Packet::new(from, to) };
    let header = [1, 1, 54, 0, 0xa8, 5, 34, 0, 16, 0, 0, 0];
    [&header[..], &segment.frame()].concat()
}

#[test]
fn a_super_segment_takes_several_buffers() {
    let host = Host::with(port());
    let mut guest = Guest::new(2);
    let _front_end = FrontEnd::ready(&guest, &host.socket, USUAL | EVENT_IDX);
    let whole = super_segment();
    guest.offer_buffers(RECEIVE, 20, 1536);
    host.wire.send(&whole).expect("sent");
    // The guest adds to what is too little, and the card waits without work.
    guest.offer_buffers(RECEIVE, 19, 1536);
    assert_eq!(guest.used(RECEIVE), 0);
    guest.offer_buffers(RECEIVE, 2, 1536);
    let buffers = whole.len().div_ceil(1536) as u16;
    eventually("received", || guest.used(RECEIVE) == buffers);
    let received = guest.received(RECEIVE, 0, buffers);
    assert_eq!((received.len(), &received[12..]), (whole.len(), &whole[12..]));
    assert_eq!(received[..10], whole[..10]);
    assert_eq!(received[10..12], buffers.to_le_bytes());
}

#[test]
fn one_that_fits_no_buffer_is_dropped() {
    let host = Host::with(port());
    let mut guest = Guest::new(2);
    let _front_end = FrontEnd::ready(&guest, &host.socket, USUAL & !MERGEABLE);
    guest.offer_buffers(RECEIVE, 2, 1536);
    host.wire.send(&super_segment()).expect("sent");
    host.wire.send(&[&PLAIN[..], &frame(1)].concat()).expect("sent");
    eventually("received", || guest.used(RECEIVE) == 2);
    assert_eq!(guest.used_entry(RECEIVE, 0).1, 0);
    assert_eq!(guest.received(RECEIVE, 1, 1)[12..], frame(1));
    assert_eq!(host.card.counts().bad_buffer, 1);
}

/// As just after a reboot into a kernel that takes no super-segments.
#[test]
fn a_guest_gets_no_offload_that_it_has_not_accepted() {
    let host = Host::with(port());
    let mut guest = Guest::new(2);
    let _front_end = FrontEnd::ready(&guest, &host.socket, USUAL & !(GUEST_TSO4 | GUEST_CSUM));
    guest.offer_buffers(RECEIVE, 100, 1536);
    host.wire.send(&super_segment()).expect("sent");
    host.wire.send(&[&PLAIN[..], &frame(1)].concat()).expect("sent");
    eventually("received", || guest.used(RECEIVE) == 1);
    assert_eq!(host.card.counts().not_negotiated, 1);
}

/// Linux forwards a super-segment without the mark of virtio 1.2, 5.1.6.2 with CWR on each segment.
#[test]
fn a_guest_without_guest_ecn_gets_the_segment_with_cwr_alone() {
    const GUEST_ECN: u64 = 1 << 9;
    let [from, to] = ["10.0.0.2:80", "10.0.0.1:1000"].map(|end| end.parse().expect("an end"));
    let reduced =
        Packet { payload: payload(4_000), flags: ACK | CWR, seq: 7, ..Packet::new(from, to) };
    let whole = [&[1, 0x81, 54, 0, 0xa8, 5, 34, 0, 16, 0, 0, 0][..], &reduced.frame()].concat();
    let received = |features, frames| {
        let host = Host::with(port());
        let mut guest = Guest::new(2);
        let _front_end = FrontEnd::ready(&guest, &host.socket, features);
        guest.offer_buffers(RECEIVE, 4, 8192);
        host.wire.send(&whole).expect("sent");
        eventually("received", || guest.used(RECEIVE) == frames);
        assert_eq!(host.card.counts(), Default::default());
        (0..frames).map(|at| guest.received(RECEIVE, at, 1)).collect::<Vec<_>>()
    };
    // GSO type and size, sequence number, flags, bytes of payload.
    let says = |frame: &Vec<u8>| {
        let seq = u32::from_be_bytes([frame[50], frame[51], frame[52], frame[53]]);
        let gso_size = u16::from_le_bytes([frame[4], frame[5]]);
        (frame[1], gso_size, seq, u16::from(frame[59]), frame.len() - 12 - 54)
    };
    let [first, rest] = &received(USUAL, 2)[..] else { panic!("two frames") };
    assert_eq!(says(first), (0, 0, 7, ACK | CWR, 1448));
    assert_eq!(says(rest), (1, 1448, 7 + 1448, ACK, 4_000 - 1448));
    assert_eq!([&first[66..], &rest[66..]].concat(), payload(4_000));
    let [whole] = &received(USUAL | GUEST_ECN, 1)[..] else { panic!("one frame") };
    assert_eq!(says(whole), (0x81, 1448, 7, ACK | CWR, 4_000));
}

/// A super-segment that waits while the guest reboots into such a kernel.
#[test]
fn what_waits_is_not_given_to_a_guest_that_takes_it_no_more() {
    let host = Host::with(port());
    let mut guest = Guest::new(2);
    let mut front_end = FrontEnd::ready(&guest, &host.socket, USUAL);
    guest.offer_buffers(RECEIVE, 2, 1536);
    host.wire.send(&super_segment()).expect("sent");
    front_end.settle();
    for ring in [0, 1] {
        front_end.stop(ring);
    }
    guest.forget();
    front_end.set_up(&guest, USUAL & !(GUEST_TSO4 | GUEST_CSUM));
    guest.offer_buffers(RECEIVE, 100, 1536);
    host.wire.send(&[&PLAIN[..], &frame(1)].concat()).expect("sent");
    eventually("received", || guest.used(RECEIVE) == 1);
    assert_eq!(guest.received(RECEIVE, 0, 1)[12..], frame(1));
    assert_eq!(host.card.counts().not_negotiated, 1);
}

/// What waits for a driver does not come to the next one.
#[test]
fn a_reset_discards_what_waits() {
    let host = Host::with(port());
    let mut guest = Guest::new(2);
    let mut front_end = FrontEnd::ready(&guest, &host.socket, USUAL);
    host.wire.send(&[&PLAIN[..], &frame(1)].concat()).expect("sent");
    front_end.settle();
    // VHOST_USER_RESET_DEVICE
    front_end.ask(34, &[], &[]);
    guest.forget();
    front_end.set_up(&guest, USUAL);
    guest.offer_buffers(RECEIVE, 2, 1536);
    host.wire.send(&[&PLAIN[..], &frame(2)].concat()).expect("sent");
    eventually("received", || guest.used(RECEIVE) == 1);
    assert_eq!(guest.received(RECEIVE, 0, 1)[12..], frame(2));
}

/// VIRTIO_NET_HDR_F_DATA_VALID is for guests that leave checksums to the host (virtio 1.2,
/// 5.1.6.4.1).
#[test]
fn only_a_guest_that_leaves_checksums_learns_that_one_is_valid() {
    const VALID: u8 = 2;
    for (features, flags) in [(USUAL, VALID), (USUAL & !(GUEST_TSO4 | GUEST_CSUM), 0)] {
        let host = Host::with(port());
        let mut guest = Guest::new(2);
        let _front_end = FrontEnd::ready(&guest, &host.socket, features);
        guest.offer_buffers(RECEIVE, 2, 1536);
        let header = [VALID, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        host.wire.send(&[&header[..], &frame(1)].concat()).expect("sent");
        eventually("received", || guest.used(RECEIVE) == 1);
        assert_eq!(guest.received(RECEIVE, 0, 1)[0], flags);
    }
}

/// A guest that does not read one pair's ring gets what is for the other, and no more than a limit
/// waits for it.
#[test]
fn a_full_ring_stops_no_other() {
    let host = Host::with(port());
    let mut guest = Guest::new(4);
    let _front_end = FrontEnd::ready(&guest, &host.socket, USUAL | 1 << 22);
    guest.send_on(SEND + 2, PLAIN, &frame(1));
    host.sent();
    guest.offer_buffers(RECEIVE + 2, 2, 2048);
    let segment = super_segment();
    // More than waits.
    for _ in 0..20 {
        host.wire.send(&segment).expect("sent");
    }
    host.wire.send(&[&PLAIN[..], &to_guest(1)].concat()).expect("sent");
    eventually("on the other pair", || guest.used(RECEIVE + 2) == 1);
    assert_eq!(guest.used(RECEIVE), 0);
    let dropped = host.card.counts().no_buffer;
    assert!((1..20).contains(&dropped), "{dropped}");
    // The limit is of bytes, of which there are half a MiB for each of two pairs.
    assert_eq!(20 - dropped as usize, (1_usize << 19).div_ceil(segment.len()));
}

/// As of a pair of rings that a guest with several does not use.
#[test]
fn what_a_guest_sends_on_a_disabled_ring_comes_to_nothing() {
    let host = Host::with(port());
    let mut guest = Guest::new(2);
    let mut front_end = FrontEnd::ready(&guest, &host.socket, USUAL);
    let enable = |front_end: &mut FrontEnd, on: u32| {
        front_end.ask(18, &words(&[SEND as u32, on]), &[]);
        front_end.settle();
    };
    enable(&mut front_end, 0);
    assert!(guest.was_called(SEND), "at its start");
    guest.send(PLAIN, &frame(1));
    eventually("given back", || guest.used(SEND) == 1);
    front_end.settle();
    assert!(guest.was_called(SEND));
    enable(&mut front_end, 1);
    guest.send(PLAIN, &frame(2));
    assert_eq!(host.sent()[12..], frame(2));
    assert_eq!(host.card.counts(), Default::default());
}

#[test]
fn a_connection_keeps_its_pair_of_rings() {
    let host = Host::with(port());
    let mut guest = Guest::new(4);
    let _front_end = FrontEnd::ready(&guest, &host.socket, USUAL | 1 << 22);
    guest.offer_buffers(RECEIVE, 16, 2048);
    guest.offer_buffers(RECEIVE + 2, 16, 2048);
    for number in 0..8 {
        let pair = usize::from(number % 2);
        guest.send_on(SEND + 2 * pair, PLAIN, &frame(number));
        host.sent();
        let before = guest.used(RECEIVE + 2 * pair);
        host.wire.send(&[&PLAIN[..], &to_guest(number)].concat()).expect("sent");
        eventually("on its pair", || guest.used(RECEIVE + 2 * pair) == before + 1);
    }
}

//! What is acknowledged in the guest's name, and when.

use vcc_domain::{Checksum, Frame, Out, Verdict};
use vcc_engine::sys;
use vcc_frames::checksum;
use vcc_frames::options;
use vcc_frames::wire::*;

use crate::guest::{FIRST_WINDOW, Guest, NO_ACKS, SEG_BYTES, UNIT, snooping};

#[test]
fn every_second_segment_is_acknowledged_at_once_and_others_with_a_delay() {
    for mut guest in [Guest::new().accept(), Guest::v6().accept()] {
        assert_eq!(guest.data(0, SEG_BYTES).acks(), NO_ACKS);
        let sent = guest.data(SEG_BYTES, SEG_BYTES);
        assert_eq!(sent.acks(), [2 * SEG_BYTES]);
        let segment = &sent.to_fabric[0];
        assert_eq!((segment.seq, segment.flags, segment.payload_bytes), (0, ACK, 0));
        let edge = segment.ack + segment.window;
        assert!((FIRST_WINDOW - UNIT..=FIRST_WINDOW).contains(&edge), "{edge}");
        assert_eq!(guest.data(2 * SEG_BYTES, SEG_BYTES).acks(), NO_ACKS);
        assert_eq!(guest.wait_ms(39).acks(), NO_ACKS);
        assert_eq!(guest.wait_ms(1).acks(), [3 * SEG_BYTES]);
        assert_eq!(guest.wait_ms(900).acks(), NO_ACKS);
    }
}

#[test]
fn a_push_is_acknowledged_at_once() {
    let mut guest = Guest::new().accept();
    let mut packet = guest.peer_packet(0, 100);
    packet.flags |= PSH;
    assert_eq!(guest.receive(&packet).acks(), [100]);
}

#[test]
fn a_super_segment_whose_checksum_is_to_be_completed_is_acknowledged() {
    let mut guest = Guest::new().accept();
    let packet = guest.peer_packet(0, 10 * SEG_BYTES);
    let mut bytes = packet.frame();
    checksum::make_partial(&mut bytes, &packet.headers());
    let frame = Frame { bytes, gso_size: SEG_BYTES as u16, checksum: Checksum::Partial };
    assert_eq!(guest.receive_frame(frame).acks(), [10 * SEG_BYTES]);
}

/// The port changes the window, and the checksum with it.
#[test]
fn a_verified_checksum_is_not_verified_again_and_stays_right() {
    let mut guest = Guest::new().accept();
    let packet = guest.peer_packet(0, 2 * SEG_BYTES);
    let mut frame = Frame { checksum: Checksum::Verified, ..Frame::full(packet.frame()) };
    let mut out = Out::default();
    let (passed, _) = guest.port.to_guest(guest.now_ns, &mut frame, &mut out);
    assert_eq!((passed, frame.checksum), (Verdict::Pass, Checksum::Verified));
    assert_ne!(frame.bytes, packet.frame());
    assert!(checksum::verify(&frame.bytes, &packet.headers()));
    // It shows that the port does not look.
    *frame.bytes.last_mut().expect("a payload") ^= 1;
    assert_eq!(guest.receive_frame(frame).acks(), [2 * SEG_BYTES]);
}

/// A running guest would answer: a segment whose acknowledgement was lost, and a keep-alive.
#[test]
fn what_is_old_is_answered_again() {
    let mut guest = Guest::new().accept();
    guest.data(0, SEG_BYTES);
    guest.data(SEG_BYTES, SEG_BYTES);
    assert_eq!(guest.data(SEG_BYTES, SEG_BYTES).acks(), [2 * SEG_BYTES]);
    assert_eq!(guest.data(2 * SEG_BYTES - 1, 0).acks(), [2 * SEG_BYTES], "a keep-alive");
    assert_eq!(guest.data(2 * SEG_BYTES, 0).acks(), NO_ACKS, "an ACK is not answered");
}

#[test]
fn the_payload_of_a_fin_is_acknowledged_and_the_fin_is_not() {
    let mut guest = Guest::new().accept();
    let mut packet = guest.peer_packet(0, 500);
    packet.flags |= FIN;
    assert_eq!(guest.receive(&packet).acks(), [500]);
    assert_eq!(guest.data(500, 500).acks(), NO_ACKS, "nothing follows it");
    assert_eq!(guest.acks(501, 64_000).acks(), [501], "the guest's own");
}

#[test]
fn timestamps_are_those_that_a_running_guest_would_send() {
    let mut guest = Guest { stamps: Some((700, 100)), ..Guest::new() }.accept();
    guest.stamps = Some((700, 105));
    guest.data(0, SEG_BYTES);
    guest.stamps = Some((700, 109));
    let sent = guest.data(SEG_BYTES, SEG_BYTES);
    // TSecr is of the first of the two (RFC 7323, 4.3).
    assert_eq!(sent.to_fabric[0].options, [vec![1, 1], options::timestamps(700, 105)].concat());
}

/// Classic ECN of the guest's own, which the policy leaves alone: the port echoes in its name.
#[test]
fn marks_are_echoed_until_cwr() {
    let mut guest = Guest { ecn: [ECE | CWR, ECE], ..Guest::new() }.accept();
    assert!(guest.flow().has(sys::FLOW_LEFT_ALONE));
    let mut marked = guest.peer_packet(0, SEG_BYTES);
    marked.traffic_class = CE;
    guest.receive(&marked);
    assert_eq!(guest.data(SEG_BYTES, SEG_BYTES).to_fabric[0].flags, ACK | ECE);
    let mut reduced = guest.peer_packet(2 * SEG_BYTES, SEG_BYTES);
    reduced.flags |= CWR | PSH;
    assert_eq!(guest.receive(&reduced).to_fabric[0].flags, ACK);
    // The guest has not read the CWR yet.
    let mut own = guest.guest_packet(SEG_BYTES, FIRST_WINDOW + 20_000);
    own.flags |= ECE;
    let segment = &guest.send(&own).to_fabric[0];
    assert_eq!((segment.ack, segment.flags), (3 * SEG_BYTES, ACK));
}

#[test]
fn the_window_ends_where_the_ring_does_and_opens_with_it() {
    let mut guest = Guest { ring_segs: 100, ..Guest::new() }.accept();
    guest.acks(0, 500_000);
    let edge = |sent: &crate::guest::Sent| sent.to_fabric.last().map(|it| it.ack + it.window);
    let is_edge = |sent: &crate::guest::Sent, segs: u32| {
        edge(sent).is_some_and(|edge| edge.abs_diff(segs * SEG_BYTES) < 128)
    };
    // Eight buffers are kept for others.
    for number in 0..92 {
        guest.ring_segs -= 1;
        let sent = guest.data(number * SEG_BYTES, SEG_BYTES);
        assert!(sent.to_fabric.is_empty() || is_edge(&sent, 92), "{number}: {sent:?}");
    }
    let sent = guest.reads(9);
    assert!(sent.acks() == [92 * SEG_BYTES] && is_edge(&sent, 93), "{sent:?}");
    assert_eq!(guest.reads(10).acks(), NO_ACKS, "a silly window");
    let sent = guest.reads(300);
    assert!(is_edge(&sent, 92 + 292), "{sent:?}");
    assert_eq!(guest.reads(300).acks(), NO_ACKS);
}

#[test]
fn a_full_ring_does_not_shut_the_window() {
    let mut guest = Guest { ring_segs: 0, ..Guest::new() }.accept();
    guest.acks(0, 500_000);
    for offset in (0..FIRST_WINDOW).step_by(SEG_BYTES as usize) {
        assert_eq!(guest.data(offset, SEG_BYTES).acks(), NO_ACKS, "it waits");
    }
    let segment = guest.reads(100).to_fabric.remove(0);
    assert_eq!(segment.ack, FIRST_WINDOW);
    assert!(segment.window.abs_diff(92 * SEG_BYTES) < 128, "{segment:?}");
}

/// Without an own window or an underlay, a port still snoops.
#[test]
fn nothing_is_promised_beyond_the_guests_window() {
    let mut guest = Guest::with(snooping()).accept();
    let mut promised = 0;
    for offset in (0..2 * FIRST_WINDOW).step_by(SEG_BYTES as usize) {
        promised = guest.data(offset, SEG_BYTES).acks().last().copied().unwrap_or(promised);
    }
    assert_eq!(promised, FIRST_WINDOW);
}

/// What lies beyond the guest's window is not promised, and what follows it would lie behind a hole.
#[test]
fn a_peer_that_fills_its_window_is_told_no_more_than_the_guest_has_offered() {
    let mut guest = Guest::new().accept();
    let (mut sent, mut acked, mut edge) = (0, 0, FIRST_WINDOW);
    while sent < edge {
        let bytes = SEG_BYTES.min(edge - sent);
        // A window that is not a multiple of its unit ends within a segment.
        let mut packet = guest.peer_packet(sent, bytes - bytes / 10);
        packet.flags |= PSH;
        sent += bytes - bytes / 10;
        for segment in guest.receive(&packet).to_fabric {
            (acked, edge) = (segment.ack, segment.ack + segment.window);
            assert!(edge <= FIRST_WINDOW, "{} bytes too many at {acked}", edge - FIRST_WINDOW);
        }
        assert_eq!(acked, sent);
    }
    assert!(sent > FIRST_WINDOW - UNIT, "{sent}");
}

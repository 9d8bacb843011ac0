//! FIN, RST and new SYNs while segments are held.

use vcc_domain::Verdict;
use vcc_frames::Packet;
use vcc_frames::wire::*;

use crate::common::segment::Segment;
use crate::ends::{Ends, Guest, MSS_BYTES};

const WINDOW_BYTES: u32 = 60_000;
const SENT: u32 = 30_000;

/// A connection with 10 segments in flight and 20 held.
fn with_held() -> (Guest, Ends) {
    let (mut guest, mut ends) = (Guest::new(), Ends::new(0));
    ends.open(&mut guest, 60_000);
    for offset in (0..SENT).step_by(MSS_BYTES) {
        let _ = guest.send(&ends.data(offset, MSS_BYTES));
    }
    ends.take(&mut guest);
    assert_eq!(ends.in_sequence, 10_000);
    assert!(guest.port.held_bytes() > 20_000);
    guest.left.clear();
    (guest, ends)
}

fn fin(ends: &Ends, offset: u32) -> Packet {
    Packet { flags: FIN | ACK, ..ends.guest_ack(offset) }
}

/// The flow is there and its held bytes leave; all arrive.
fn goes_on(mut guest: Guest, mut ends: Ends) {
    let _ = guest.receive(&ends.peer_ack(ends.in_sequence, WINDOW_BYTES));
    ends.drain(&mut guest, WINDOW_BYTES);
    assert_eq!((ends.in_sequence, guest.port.held_bytes()), (SENT, 0));
}

#[test]
fn a_fin_leaves_behind_all_that_is_held() {
    let (mut guest, mut ends) = with_held();
    assert_eq!(guest.send(&fin(&ends, SENT)), Verdict::Held);
    assert!(guest.left.is_empty());
    let _ = guest.receive(&ends.peer_ack(10_000, WINDOW_BYTES));
    ends.drain(&mut guest, WINDOW_BYTES);
    assert_eq!((ends.in_sequence, ends.finished), (SENT, true));
    assert_eq!(guest.port.held_bytes(), 0);
}

/// A tail loss probe of a guest whose last segment is a bare FIN (RFC 8985, 7.3).
#[test]
fn a_fin_that_is_sent_again_does_not_pass_what_is_held() {
    let (mut guest, mut ends) = with_held();
    for _ in 0..3 {
        let _ = guest.send(&fin(&ends, SENT));
        guest.wait_ms(300);
        assert_eq!(guest.left, []);
    }
    let _ = guest.receive(&ends.peer_ack(10_000, WINDOW_BYTES));
    ends.drain(&mut guest, WINDOW_BYTES);
    assert_eq!((ends.in_sequence, ends.finished), (SENT, true));
    assert_eq!(guest.port.held_bytes(), 0);
}

/// The last data fills the peer's window, its FIN does not fit; the guest sends both again.
#[test]
fn a_fin_behind_data_that_has_left_waits_for_the_window() {
    let (mut guest, mut ends) = (Guest::new(), Ends::new(0));
    ends.open(&mut guest, 2000);
    let _ = guest.send(&ends.data(0, MSS_BYTES));
    let last = Packet { flags: FIN | PSH | ACK, ..ends.data(1000, MSS_BYTES) };
    let _ = guest.send(&last);
    ends.take(&mut guest);
    assert_eq!((ends.in_sequence, ends.finished), (2000, false));
    let _ = guest.receive(&ends.peer_ack(1000, 1000));
    guest.wait_ms(1000);
    let _ = guest.send(&last);
    ends.take(&mut guest);
    assert!(!ends.finished, "law 14");
    let _ = guest.receive(&ends.peer_ack(2000, 0));
    guest.wait_ms(1000);
    let _ = guest.send(&fin(&ends, 2000));
    ends.take(&mut guest);
    assert!(!ends.finished, "law 14");
    let _ = guest.receive(&ends.peer_ack(2000, WINDOW_BYTES));
    ends.take(&mut guest);
    assert!(ends.finished);
    assert_eq!(guest.port.held_bytes(), 0);
}

#[test]
fn the_peers_fin_ends_nothing() {
    let (mut guest, ends) = with_held();
    let fin = Packet { flags: FIN | ACK, ..ends.peer_ack(10_000, WINDOW_BYTES) };
    assert_eq!(guest.receive(&fin), Verdict::Pass);
    let ack = ends.irs.wrapping_add(2);
    let _ = guest.send(&Packet { ack, ..ends.guest_ack(SENT) });
    goes_on_after_fin(guest, ends);
}

fn goes_on_after_fin(mut guest: Guest, mut ends: Ends) {
    while ends.take(&mut guest) {
        guest.wait_ms(1);
        let ack = ends.peer_ack(ends.in_sequence, WINDOW_BYTES);
        let _ = guest.receive(&Packet { seq: ends.irs.wrapping_add(2), ..ack });
    }
    assert_eq!((ends.in_sequence, guest.port.held_bytes()), (SENT, 0));
}

#[test]
fn both_ends_close_at_once_with_segments_held() {
    let (mut guest, mut ends) = with_held();
    let _ = guest.send(&fin(&ends, SENT));
    let peers_fin = Packet { flags: FIN | ACK, ..ends.peer_ack(10_000, WINDOW_BYTES) };
    let _ = guest.receive(&peers_fin);
    while ends.take(&mut guest) {
        guest.wait_ms(1);
        let ack = ends.peer_ack(ends.in_sequence + u32::from(ends.finished), WINDOW_BYTES);
        let _ = guest.receive(&Packet { seq: ends.irs.wrapping_add(2), ..ack });
    }
    assert_eq!((ends.in_sequence, ends.finished), (SENT, true));
    assert_eq!(guest.port.held_bytes(), 0);
}

/// It passes at once, where the peer accepts it, and what is held is discarded.
#[test]
fn the_guests_rst_passes_what_is_held() {
    let (mut guest, ends) = with_held();
    let rst = Packet { flags: RST | ACK, ..ends.guest_ack(SENT) };
    assert_eq!(guest.send(&rst), Verdict::Pass);
    let left = Segment::read(&guest.left[0].bytes).expect("TCP");
    assert_eq!((left.flags & RST, left.seq), (RST, ends.seq(10_000)));
    assert_eq!((guest.left.len(), guest.port.held_bytes()), (1, 0));
}

/// It answers a stray segment (RFC 9293, 3.10.7.1); its number is that segment's.
#[test]
fn a_rst_that_is_not_the_connections_is_left_alone() {
    let (mut guest, ends) = with_held();
    for offset in [SENT + 500_000_000, SENT + 2_000_000] {
        let rst = Packet { flags: RST, ..ends.guest_ack(offset) };
        assert_eq!(guest.send(&rst), Verdict::Pass);
        let left = guest.left.pop().expect("the RST");
        assert_eq!(Segment::read(&left.bytes).expect("TCP").seq, ends.seq(offset));
    }
    goes_on(guest, ends);
}

#[test]
fn the_peers_rst_discards_what_is_held() {
    let (mut guest, ends) = with_held();
    let rst = Packet { flags: RST | ACK, ..ends.peer_ack(10_000, 0) };
    assert_eq!(guest.receive(&rst), Verdict::Pass);
    assert_eq!((guest.left.len(), guest.port.held_bytes()), (0, 0));
    // The guest may still send, and ends it.
    let _ = guest.send(&Packet { flags: RST, ..ends.guest_ack(SENT) });
    guest.wait_ms(60_000);
    assert!(guest.port.flow(&ends.key()).is_none());
}

/// Law 17.
#[test]
fn a_rst_that_the_guest_refuses_discards_nothing() {
    let (mut guest, ends) = with_held();
    for off in [1, 1000, 0x4000_0000, 0xffff_ff00] {
        let peer = ends.peer_ack(10_000, 0);
        let rst = Packet { flags: RST, seq: peer.seq.wrapping_add(off), ..peer };
        let held_bytes = guest.port.held_bytes();
        let _ = guest.receive_forged(&rst);
        assert_eq!((guest.left.len(), guest.port.held_bytes()), (0, held_bytes), "{off:#x}");
    }
    goes_on(guest, ends);
}

/// A guest that was reset opens the connection anew while the port holds segments of the old one.
#[test]
fn a_new_connection_starts_without_the_old_ones_segments() {
    for by_guest in [true, false] {
        let (mut guest, old) = with_held();
        let mut ends = Ends::new(0);
        ends.iss = old.iss.wrapping_add(5_000_000);
        ends.irs = old.irs.wrapping_add(7_000_000);
        if by_guest {
            ends.open(&mut guest, 60_000);
        } else {
            // The guest's old end is gone, so it accepts.
            ends.accept(&mut guest, WINDOW_BYTES);
        }
        assert_eq!(guest.port.held_bytes(), 0, "by guest: {by_guest}");
        guest.left.clear();
        for offset in (0..SENT).step_by(MSS_BYTES) {
            let _ = guest.send(&ends.data(offset, MSS_BYTES));
        }
        ends.drain(&mut guest, WINDOW_BYTES);
        assert_eq!((ends.in_sequence, guest.port.held_bytes()), (SENT, 0), "by guest: {by_guest}");
    }
}

/// A SYN into a live connection: the peer answers with a challenge ACK (RFC 5961, 4.2).
#[test]
fn a_stray_syn_changes_nothing() {
    let (mut guest, ends) = with_held();
    let syn = Packet { seq: ends.seq(77_777), ..ends.syn() };
    assert_eq!(guest.send(&syn), Verdict::Pass);
    let syn = Packet { seq: ends.irs.wrapping_add(5000), ..Packet::syn(ends.peer, ends.guest) };
    assert_eq!(guest.receive_forged(&syn), Verdict::Pass);
    guest.left.clear();
    // The guest's own stream continues in the watch, too.
    guest.watch = crate::common::watch::Watch::new(crate::ends::SALT);
    goes_on(guest, ends);
}

/// The handshake's last ACK is lost, so the peer repeats its SYN-ACK while data is held.
#[test]
fn a_repeated_syn_ack_discards_nothing() {
    let (mut guest, mut ends) = (Guest::new(), Ends::new(0));
    let _ = guest.send(&ends.syn());
    let _ = guest.receive(&ends.syn_ack(0));
    for offset in (0..SENT).step_by(MSS_BYTES) {
        let _ = guest.send(&ends.data(offset, MSS_BYTES));
    }
    let held_bytes = guest.port.held_bytes();
    assert!(held_bytes > SENT);
    let _ = guest.receive(&ends.syn_ack(0));
    assert_eq!(guest.port.held_bytes(), held_bytes);
    let _ = guest.receive(&ends.peer_ack(0, WINDOW_BYTES));
    ends.drain(&mut guest, WINDOW_BYTES);
    assert_eq!((ends.in_sequence, guest.port.held_bytes()), (SENT, 0));
}

/// A RST at the number that the guest last acknowledged, which data in the port has passed: the
/// engine believes it, the guest does not (RFC 5961, 3.2), and continues.
#[test]
fn after_a_rst_that_only_the_port_believes_data_still_waits() {
    let (mut guest, mut ends) = with_held();
    let data = Packet { payload: vec![1; 100], ..ends.peer_ack(10_000, 0) };
    let _ = guest.receive(&data);
    let _ = guest.receive_forged(&Packet { flags: RST, ..ends.peer_ack(10_000, 0) });
    assert_eq!(guest.port.held_bytes(), 0);
    let ack = ends.irs.wrapping_add(101);
    for offset in (SENT..2 * SENT).step_by(MSS_BYTES) {
        let _ = guest.send(&Packet { ack, ..ends.data(offset, MSS_BYTES) });
    }
    assert!(guest.left.iter().all(|frame| {
        let segment = Segment::read(&frame.bytes).expect("TCP");
        segment.payload.is_empty()
    }));
    // What was discarded is sent again.
    for offset in (10_000..2 * SENT).step_by(MSS_BYTES) {
        let _ = guest.send(&Packet { ack, ..ends.data(offset, MSS_BYTES) });
    }
    let update = ends.peer_ack(10_000, WINDOW_BYTES);
    let _ = guest.receive(&Packet { seq: ends.irs.wrapping_add(101), ..update });
    while ends.take(&mut guest) {
        guest.wait_ms(1);
        let ack = ends.peer_ack(ends.in_sequence, WINDOW_BYTES);
        let _ = guest.receive(&Packet { seq: ends.irs.wrapping_add(101), ..ack });
    }
    assert_eq!((ends.in_sequence, guest.port.held_bytes()), (2 * SENT, 0));
}

/// Law 17: its window is nobody's.
#[test]
fn a_stray_syn_behind_the_syn_ack_opens_no_window() {
    let (mut guest, mut ends) = (Guest::new(), Ends::new(0));
    let _ = guest.send(&ends.syn());
    let _ = guest.receive(&ends.syn_ack(0));
    let stray = Packet { seq: ends.irs.wrapping_add(9), ..Packet::syn(ends.peer, ends.guest) };
    let _ = guest.receive_forged(&Packet { window: 60_000, ..stray });
    let _ = guest.receive_forged(&Packet { ack: ends.iss, ..ends.syn_ack(60_000) });
    for offset in (0..SENT).step_by(MSS_BYTES) {
        let _ = guest.send(&ends.data(offset, MSS_BYTES));
    }
    let _ = guest.receive(&ends.peer_ack(0, WINDOW_BYTES));
    ends.drain(&mut guest, WINDOW_BYTES);
    assert_eq!((ends.in_sequence, guest.port.held_bytes()), (SENT, 0));
}

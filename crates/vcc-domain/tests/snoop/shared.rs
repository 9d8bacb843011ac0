//! Connections that share the guest's receive ring.

use vcc_frames::Packet;
use vcc_frames::wire::*;

use crate::guest::{FIRST_WINDOW, Guest, SEG_BYTES};

const RING_SEGS: u32 = 256;
const GUESTS_WINDOW: u32 = 1 << 20;
const INITIAL_WINDOW: u32 = 10 * SEG_BYTES;

/// A peer in slow start whose segments all reach the ring, while the guest does not run.
#[derive(Clone, Copy, Debug)]
struct Peer {
    port: u16,
    sent: u32,
    acked: u32,
    cwnd: u32,
    edge: u32,
}

impl Peer {
    fn open(guest: &mut Guest, port: u16, window: u32) -> Self {
        guest.at_peer(port).open();
        let mut peer = Peer { port, sent: 0, acked: 0, cwnd: INITIAL_WINDOW, edge: FIRST_WINDOW };
        // With window scaling.
        let sent = guest.acks(0, window);
        peer.hear(&sent.to_fabric);
        peer
    }

    fn hear(&mut self, segments: &[crate::guest::Said]) {
        for segment in segments.iter().filter(|segment| segment.port == self.port) {
            self.cwnd += segment.ack - self.acked;
            self.acked = segment.ack;
            self.edge = self.edge.max(segment.ack + segment.window);
        }
    }

    /// Sends what its windows allow, at most so many segments. Returns how many.
    fn send(&mut self, guest: &mut Guest, most: u32) -> u32 {
        let end = self.edge.min(self.acked + self.cwnd);
        let segs = (end.saturating_sub(self.sent) / SEG_BYTES).min(most);
        for _ in 0..segs {
            assert!(guest.ring_segs > 0, "the ring overflows: {self:?}");
            guest.ring_segs -= 1;
            let sent = guest.at_peer(self.port).data(self.sent, SEG_BYTES);
            self.sent += SEG_BYTES;
            self.hear(&sent.to_fabric);
        }
        segs
    }
}

fn peers<const N: usize>(guest: &mut Guest) -> [Peer; N] {
    std::array::from_fn(|number| Peer::open(guest, 40_000 + number as u16, GUESTS_WINDOW))
}

/// In turns, until none may send more.
fn all_send(guest: &mut Guest, peers: &mut [Peer]) {
    while peers.iter_mut().map(|peer| peer.send(guest, 4)).sum::<u32>() > 0 {}
}

#[test]
fn what_several_peers_are_told_fits_the_ring() {
    let mut guest = Guest::new();
    let mut all: [Peer; 3] = peers(&mut guest);
    all_send(&mut guest, &mut all);
    let taken = RING_SEGS - guest.ring_segs;
    assert!(taken >= RING_SEGS * 9 / 10, "{taken} of the ring's buffers are used");
    let [least, most] = [u32::min, u32::max]
        .map(|of| all.iter().map(|peer| peer.sent).reduce(of).expect("three peers"));
    assert!(most <= 2 * least, "{least} to {most} bytes");
}

/// Frames wait there, unacknowledged, until the guest adds buffers.
#[test]
fn the_window_counts_the_room_behind_the_ring() {
    let mut guest = Guest { ring_segs: 20, behind_segs: 100, ..Guest::new() };
    let [peer] = peers(&mut guest);
    assert!(peer.edge.abs_diff(112 * SEG_BYTES) < 128, "{peer:?}");
}

#[test]
fn bursts_of_all_at_once_fit_the_ring() {
    let mut guest = Guest::new();
    let mut all: [Peer; 4] = peers(&mut guest);
    // Each sends all it may before another does.
    loop {
        let sent: u32 = all.iter_mut().map(|peer| peer.send(&mut guest, RING_SEGS)).sum();
        if sent == 0 {
            break;
        }
    }
}

#[test]
fn a_guest_that_reads_lets_all_go_on() {
    let mut guest = Guest::new();
    let window = 150 * SEG_BYTES;
    let mut all = [1, 2, 3].map(|port| Peer::open(&mut guest, port, window));
    let mut before = [0; 3];
    for _ in 0..10 {
        all_send(&mut guest, &mut all);
        for (peer, before) in all.iter().zip(&mut before) {
            assert!(peer.sent > *before, "{} stands still at {before}", peer.port);
            *before = peer.sent;
        }
        guest.wait_ms(30);
        let sent = guest.reads(RING_SEGS);
        all.iter_mut().for_each(|peer| peer.hear(&sent.to_fabric));
        for peer in &mut all {
            let sent = guest.at_peer(peer.port).acks(peer.sent, window);
            peer.hear(&sent.to_fabric);
        }
    }
}

/// Options take their part of the MSS.
#[test]
fn segments_smaller_than_the_mss_are_acknowledged_until_the_ring_is_full() {
    let bytes = SEG_BYTES - 12;
    let mut guest = Guest::new();
    let [mut peer] = peers(&mut guest);
    while peer.sent + bytes <= peer.edge.min(peer.acked + peer.cwnd) {
        guest.ring_segs -= 1;
        let sent = guest.at_peer(peer.port).data(peer.sent, bytes);
        peer.sent += bytes;
        peer.hear(&sent.to_fabric);
    }
    assert!(peer.acked >= RING_SEGS * 9 / 10 * bytes, "{peer:?}");
}

/// Its peer's data is not promised after the guest's FIN.
#[test]
fn a_connection_that_is_not_snooped_takes_nothing_from_others() {
    let mut guest = Guest::new();
    let [mut one, mut other] = peers(&mut guest);
    one.send(&mut guest, 9);
    let fin = guest.at_peer(one.port).guest_packet(0, GUESTS_WINDOW);
    guest.send(&Packet { flags: FIN | ACK, ..fin.clone() });
    for offset in (one.sent..200 * SEG_BYTES).step_by(SEG_BYTES as usize) {
        guest.at_peer(one.port).data(offset, SEG_BYTES);
        let ack = guest.guest_packet(offset + SEG_BYTES, GUESTS_WINDOW);
        guest.send(&Packet { seq: fin.seq.wrapping_add(1), ..ack });
    }
    while other.send(&mut guest, 4) > 0 {}
    let taken = RING_SEGS - guest.ring_segs;
    assert!(taken >= RING_SEGS * 9 / 10, "{taken} of the ring's buffers are used");
}

/// Together they wait for more than a ring.
#[test]
fn all_of_many_that_wait_are_answered() {
    let mut guest = Guest::new();
    let mut all: [Peer; 16] = peers(&mut guest);
    for peer in &mut all {
        peer.send(&mut guest, 10);
    }
    assert!(all.iter().any(|peer| peer.acked < peer.sent), "some wait");
    for _ in 0..20 {
        let read = guest.reads(RING_SEGS);
        let waited = guest.wait_ms(30);
        for peer in &mut all {
            peer.hear(&read.to_fabric);
            peer.hear(&waited.to_fabric);
        }
    }
    assert!(all.iter().all(|peer| peer.acked == peer.sent), "{all:?}");
}

#[test]
fn a_guest_that_reads_is_not_a_burst_of_updates() {
    let mut guest = Guest { ring_segs: 60, ..Guest::new() };
    let mut all: [Peer; 4] = peers(&mut guest);
    all_send(&mut guest, &mut all);
    let updates = guest.reads(RING_SEGS).to_fabric.len();
    assert!((1..=24).contains(&updates), "{updates}");
}

/// A peer that sends nothing more was offered a window when the ring was nearly full.
#[test]
fn a_small_window_is_widened_when_the_guest_reads() {
    let mut guest = Guest { ring_segs: 20, ..Guest::new() };
    let mut peer = Peer::open(&mut guest, 1, 0);
    peer.hear(&guest.acks(0, GUESTS_WINDOW).to_fabric);
    assert_eq!(peer.edge, FIRST_WINDOW, "that of the SYN-ACK");
    let message = guest.at_peer(peer.port).peer_packet(0, 100);
    guest.receive(&Packet { flags: ACK | PSH, ..message });
    let sent = guest.reads(RING_SEGS).to_fabric;
    assert_eq!(sent.len(), 1, "one update: {sent:?}");
    assert!((sent[0].ack + sent[0].window).abs_diff(100 + 248 * SEG_BYTES) < 128, "{sent:?}");
    assert_eq!(guest.reads(RING_SEGS).to_fabric, []);
}

#[test]
fn what_does_not_come_gives_its_room_to_others() {
    let mut guest = Guest::new();
    let window = 150 * SEG_BYTES;
    let [mut one, mut other] = [1, 2].map(|port| Peer::open(&mut guest, port, window));
    // One could send the rest of its window, and does not.
    while one.sent < 60 * SEG_BYTES {
        one.send(&mut guest, 4);
    }
    while other.send(&mut guest, 4) > 0 {}
    assert!(other.sent < 130 * SEG_BYTES, "{other:?}");
    let sent = guest.wait_ms(21);
    other.hear(&sent.to_fabric);
    while other.send(&mut guest, 4) > 0 {}
    // The window is rounded down.
    assert!(other.sent >= window - SEG_BYTES, "{other:?}");
}

#[test]
fn a_message_of_one_segment_keeps_nothing_from_others() {
    let bulk_sent = |messages: u16| {
        let mut guest = Guest::new();
        let [mut bulk] = peers(&mut guest);
        for number in 0..messages {
            let peer = Peer::open(&mut guest, 50_000 + number, GUESTS_WINDOW);
            let message = guest.at_peer(peer.port).peer_packet(0, 100);
            guest.receive(&Packet { flags: ACK | PSH, ..message });
        }
        // They share the ring, but nothing is set aside for them.
        bulk.send(&mut guest, RING_SEGS);
        guest.wait_ms(21);
        while bulk.send(&mut guest, 4) > 0 {}
        bulk.sent
    };
    assert_eq!(bulk_sent(0), bulk_sent(5));
}

//! The receiver half for a native DCTCP sender (RFC 8257, 3.2; vCC, appendix A.7). The sender
//! counts all bytes of an ACK with ECE as marked, so the sums must match.

use crate::common::sim::Rng;
use crate::common::*;
use vcc_engine::{Params, sys};

/// A connection with a DCTCP peer, which sends its SYNs as ECT (RFC 8257, 3.5), in both roles.
fn ends() -> [Conn; 2] {
    let opened = Conn::opened(Params::default(), 5, linux_syn(), linux_syn().ect0());
    let mut accepted = Conn::new(Params::default(), 5);
    accepted.peer_syn(linux_syn().asking_ecn().ect0());
    accepted.guest_synack(linux_syn());
    accepted.guest_gets(accepted.ack(0).ect0());
    [opened, accepted]
}

/// The peer's stream, and the bytes that the guest's ACKs echoed.
struct Stream {
    conn: Conn,
    arrived_bytes: u32,
    acked_bytes: u32,
    marked_bytes: u64,
    echoed_bytes: u64,
}

impl Stream {
    fn new(conn: Conn) -> Self {
        Stream { conn, arrived_bytes: 0, acked_bytes: 0, marked_bytes: 0, echoed_bytes: 0 }
    }

    fn arrives(&mut self, payload_bytes: u32, marked: bool) {
        let data = self.conn.ack(0).seq(self.conn.peer_seq(self.arrived_bytes)).len(payload_bytes);
        let action = self.conn.guest_gets(if marked { data.ce() } else { data.ect0() });
        assert!(is_not_ect(&action) && lacks_flags(&action, sys::TCP_ECN_BITS));
        self.arrived_bytes = self.arrived_bytes.wrapping_add(payload_bytes);
        self.marked_bytes += u64::from(marked) * u64::from(payload_bytes);
    }

    /// The guest acknowledges everything. Returns true if the ACK has ECE.
    fn acks(&mut self) -> bool {
        let action = self.conn.guest_acks(self.arrived_bytes);
        let echoes = has_flags(&action, sys::TCP_ECE);
        let news_bytes = self.arrived_bytes.wrapping_sub(self.acked_bytes);
        self.acked_bytes = self.arrived_bytes;
        self.echoed_bytes += u64::from(echoes) * u64::from(news_bytes);
        echoes
    }
}

#[test]
fn the_echoed_bytes_match_the_marked_bytes() {
    const SEG_BYTES: u32 = 1448;
    for conn in ends() {
        for seed in 0..100 {
            let mut rng = Rng::new(seed);
            let mut stream = Stream::new(conn.clone());
            let mut mark_permille = 0;
            for step in 0..5000 {
                if step % 500 == 0 {
                    mark_permille = rng.pick(&[0, 10, 100, 300, 500, 700, 900, 1000]);
                }
                // Delayed ACKs, and sometimes a GRO train or a single segment.
                let segs = rng.pick(&[2, 2, 2, 2, 1, 5]);
                for _ in 0..segs {
                    stream.arrives(SEG_BYTES, rng.chance(mark_permille));
                }
                stream.acks();
                let off = stream.echoed_bytes.abs_diff(stream.marked_bytes);
                // Within half of the largest ACK: no choice could be closer.
                assert!(2 * off <= 5 * u64::from(SEG_BYTES), "seed {seed}, step {step}: {off}");
            }
            assert!(stream.marked_bytes > 1 << 20);
        }
    }
}

#[test]
fn a_half_is_a_half() {
    // One of the two segments per ACK is marked.
    for conn in ends() {
        let mut stream = Stream::new(conn);
        let mut echoes = 0;
        for _ in 0..1000 {
            stream.arrives(1000, true);
            stream.arrives(1000, false);
            echoes += u32::from(stream.acks());
        }
        assert_eq!(echoes, 500);
    }
}

#[test]
fn all_is_all_and_nothing_is_nothing() {
    for conn in ends() {
        for marked in [false, true] {
            let mut stream = Stream::new(conn.clone());
            for _ in 0..100 {
                stream.arrives(1448, marked);
                stream.arrives(1448, marked);
                assert_eq!(stream.acks(), marked);
            }
        }
    }
}

#[test]
fn the_echo_ends_with_the_marks() {
    // No latch: the peer would keep reducing (RFC 8257, 3.2).
    let [conn, _] = ends();
    let mut stream = Stream::new(conn);
    stream.arrives(1448, true);
    assert!(stream.acks());
    for _ in 0..10 {
        stream.arrives(1448, false);
        assert!(!stream.acks());
    }
}

#[test]
fn an_ack_of_no_new_data_echoes_nothing() {
    // It would be a mark without bytes, for which Linux reduces.
    let [conn, _] = ends();
    let mut stream = Stream::new(conn);
    stream.arrives(1000, true);
    stream.arrives(1000, false);
    stream.arrives(1000, false);
    assert!(!stream.acks(), "a third is not most of it");
    for offset in 0..5 {
        assert!(!stream.acks());
        assert!(lacks_flags(&stream.conn.send(offset * 10, 10), sys::TCP_ECE));
    }
    stream.arrives(1000, true);
    assert!(stream.acks());
}

#[test]
fn the_guests_own_ece_is_ignored() {
    let [mut conn, _] = ends();
    let ack = seg().seq(conn.flow.snd_nxt).ack(conn.peer_seq(0)).win(500);
    assert!(lacks_flags(&conn.guest_sends(ack.ece()), sys::TCP_ECE));
}

#[test]
fn classic_senders_get_the_latch() {
    let classic = Conn::established(Params::default(), 5);
    let vcc = Conn::opened(
        Params::default(),
        5,
        linux_syn().room(ROOM_BYTES),
        linux_syn().ect0().accept(),
    );
    assert!(vcc.flow.has(sys::FLOW_FEEDBACK));
    for conn in [classic, vcc] {
        let mut stream = Stream::new(conn);
        stream.arrives(1448, true);
        assert!(stream.acks());
        stream.arrives(1448, false);
        assert!(stream.acks(), "until CWR");
    }
}

#[test]
fn a_peer_that_only_sends_control_packets_as_ect_is_no_dctcp() {
    // A classic peer may send an ECT SYN-ACK (RFC 5562), but no ECT pure ACKs (RFC 3168, 6.1.4).
    for mut conn in ends() {
        conn.guest_gets(conn.ack(0));
        conn.guest_gets(conn.ack(0).len(1000).ce());
        for _ in 0..3 {
            let ack = conn.guest_acks(1000);
            assert!(has_flags(&ack, sys::TCP_ECE), "a classic sender gets ECE until CWR comes");
        }
        conn.guest_gets(conn.ack(0).seq(conn.peer_seq(1000)).len(1000).ect0().cwr());
        assert!(lacks_flags(&conn.guest_acks(2000), sys::TCP_ECE));
    }
}

//! The fabric's delay where the guest receives, by timestamps.

use crate::common::*;

/// A guest that downloads from a peer whose flight is always four segments. Clocks tick in
/// milliseconds.
struct Download {
    conn: Conn,
    /// Full segments that have come.
    got: u32,
    tsval: u32,
}

impl Download {
    fn new(isn: u32) -> Self {
        let mut download =
            Self { conn: Conn::established(underlay("transparent"), isn), got: 0, tsval: isn };
        download.gets(4, isn);
        download
    }

    /// Full segments of the peer that echo a TSval. Returns what was measured by the first.
    fn gets(&mut self, segs: u32, tsecr: u32) -> u32 {
        let measured = (0..segs).map(|_| self.gets_bytes(self.conn.mss(), tsecr));
        measured.collect::<Vec<_>>()[0]
    }

    fn gets_bytes(&mut self, payload_bytes: u32, tsecr: u32) -> u32 {
        let conn = &mut self.conn;
        let at = conn.peer_seq(self.got * conn.mss());
        self.got += 1;
        let segment = conn.ack(0).seq(at).ack(conn.flow.snd_nxt).len(payload_bytes);
        conn.guest_gets(segment.stamped(7, tsecr)).fabric_us
    }

    /// The peer's next segments are lost.
    fn loses(&mut self, segs: u32) {
        self.got += segs;
    }

    /// The guest's ACK of all but the latest segments, at this time of its clock.
    fn ack_but(&mut self, segs: u32, tsval: u32) -> Seg {
        self.tsval = tsval;
        let ack = self.conn.peer_seq((self.got - segs) * self.conn.mss());
        seg().seq(self.conn.flow.snd_nxt).ack(ack).win(500).stamped(tsval, 7)
    }

    fn acks_but(&mut self, segs: u32, tsval: u32) {
        let segment = self.ack_but(segs, tsval);
        self.conn.guest_sends(segment);
    }

    /// The same, a millisecond later.
    fn acks(&mut self) {
        self.acks_but(0, self.tsval.wrapping_add(1));
    }
}

#[test]
fn data_that_echoes_an_ack_measures_the_fabric() {
    for isn in ISNS {
        let mut download = Download::new(isn);
        let before = download.tsval;
        download.acks();
        download.acks_but(0, before.wrapping_add(1));
        download.gets(2, before);
        download.acks();
        let timed = download.tsval;
        download.conn.wait_us(300);
        // What was on its way.
        assert_eq!(download.gets(2, timed.wrapping_sub(1)), 0);
        download.conn.wait_us(5_700);
        assert_eq!(download.gets(2, timed), 6_000, "{isn}");
        assert_eq!(download.conn.flow.fabric_delay_us(), Some(6_000));
    }
}

#[test]
fn a_tsval_that_was_sent_before_is_not_timed() {
    let mut download = Download::new(5);
    download.acks_but(2, 9);
    // The peer may answer the first of both.
    download.conn.wait_us(400);
    download.acks_but(0, 9);
    download.conn.wait_us(200);
    assert_eq!(download.gets(4, 9), 0);
}

#[test]
fn a_peer_without_more_to_send_is_not_waited_for() {
    let mut download = Download::new(5);
    download.acks();
    download.gets(1, 5);
    download.gets_bytes(100, 5);
    download.acks();
    download.conn.wait_us(50_000);
    assert_eq!(download.gets(4, download.tsval), 0);
    // Nor one whose last segment came after the timed ACK.
    download.acks();
    download.gets(2, 0);
    download.acks();
    download.gets_bytes(100, 0);
    download.conn.wait_us(50_000);
    assert_eq!(download.gets(4, download.tsval), 0);
}

#[test]
fn a_peers_largest_segment_tells_which_are_full() {
    // It announces a small MSS and sends by the guest's. Its application pauses between short writes.
    let mut conn = Conn::opened(underlay("transparent"), 5, linux_syn(), linux_syn().mss(536));
    let mut at = 0;
    let mut measured = |tsval: u32, payload_bytes: u32| {
        let data = conn.ack(0).seq(conn.peer_seq(at)).len(payload_bytes);
        at += payload_bytes;
        let measured_us = conn.guest_gets(data.stamped(7, tsval - 1)).fabric_us;
        let ack = seg().seq(conn.flow.snd_nxt).ack(conn.peer_seq(at)).win(500);
        conn.guest_sends(ack.stamped(tsval, 7));
        conn.wait_us(20_000);
        measured_us
    };
    assert_eq!([10, 11, 12].map(|tsval| measured(tsval, 1448)), [0, 0, 20_000]);
    assert_eq!([13, 14, 15, 16].map(|tsval| measured(tsval, 600)), [0; 4]);
}

#[test]
fn a_window_that_does_not_open_keeps_the_peer_waiting() {
    // Of an application that does not read, the edge stays or creeps by what the scale rounds.
    for more in [-1, 0] {
        let mut download = Download::new(5);
        download.acks();
        download.gets(2, 0);
        let ack = download.conn.peer_seq(download.got * download.conn.mss());
        let got = (2 * download.conn.mss()) >> download.conn.flow.wscale_guest;
        let window = 500 - got as i32 + more;
        let segment = seg().seq(download.conn.flow.snd_nxt).ack(ack).win(window as u16);
        download.conn.guest_sends(segment.stamped(100, 7));
        download.conn.wait_us(50_000);
        assert_eq!(download.gets(2, 100), 0, "{more}");
    }
}

#[test]
fn a_peer_that_has_lost_data_may_wait_for_a_timer() {
    // All that it sent in response but a probe (RFC 8985, 7).
    let mut download = Download::new(5);
    download.acks();
    download.gets(2, 0);
    download.acks();
    download.conn.wait_us(40_000);
    download.loses(2);
    assert_eq!(download.gets(1, download.tsval), 0);
    // What fills the hole, once more.
    let mut download = Download::new(5);
    download.acks();
    download.gets(2, 0);
    let ack = download.ack_but(0, 9).sack();
    download.conn.guest_sends(ack);
    download.conn.wait_us(200_000);
    assert_eq!(download.gets(2, 9), 0);
}

#[test]
fn a_peer_that_the_guest_owes_an_ack_may_wait_for_it() {
    let mut download = Download::new(5);
    download.acks();
    download.gets(4, 0);
    // The guest is not running between both ACKs.
    download.acks_but(3, 9);
    download.conn.wait_us(36_000);
    download.acks_but(0, 9);
    download.conn.wait_us(300);
    assert_eq!(download.gets(4, 9), 0);
}

#[test]
fn timestamps_that_stand_still_or_run_backwards_measure_nothing() {
    for step in [0u32, u32::MAX] {
        let mut download = Download::new(1000);
        for _ in 0..50 {
            download.acks_but(0, download.tsval.wrapping_add(step));
            download.conn.wait_us(20_000);
            assert_eq!(download.gets(2, download.tsval), 0);
        }
        assert_eq!(download.conn.flow.fabric_delay_us(), None);
    }
}

#[test]
fn without_timestamps_the_fabric_of_a_receiver_is_unknown() {
    let mut conn = Conn::established(underlay("transparent"), 5);
    for number in 0..50 {
        let mss_bytes = conn.mss();
        let data = conn.ack(0).seq(conn.peer_seq(number * mss_bytes)).ack(conn.flow.snd_nxt);
        assert_eq!(conn.guest_gets(data.len(mss_bytes)).fabric_us, 0);
        conn.guest_acks((number + 1) * mss_bytes);
        conn.wait_us(20_000);
    }
    assert_eq!(conn.flow.fabric_delay_us(), None);
}

//! The sender half: marks that the peer's counters report (RFC 9768, 3.2.2.5, 3.2.3 and A.2).

use super::*;

/// An ACK for the guest's first `segs` segments.
fn acked(conn: &Conn, segs: u32, ace: u32) -> Seg {
    conn.ack(segs * conn.mss()).ace(ace as u16)
}

/// The bytes that DCTCP counts as marked by an ACK, in the middle of one of its windows.
fn marked_after(conn: &mut Conn, ack: impl FnOnce(&Conn) -> Seg) -> u32 {
    let ack = ack(conn);
    let own = &mut conn.flow.0.cc.own;
    own[sys::DCTCP_WINDOW_END as usize] = conn.flow.0.snd_nxt.wrapping_add(1 << 20);
    own[sys::DCTCP_REPORTED as usize] = 0;
    own[sys::DCTCP_MARKED as usize] = 0;
    conn.guest_gets(ack);
    conn.flow.cc.own[sys::DCTCP_MARKED as usize]
}

fn dctcp() -> Conn {
    to_accecn(underlay("dctcp"))
}

#[test]
fn the_field_counts_marked_packets() {
    let mut conn = dctcp();
    conn.send_segs(0, 8);
    let mss = conn.mss();
    assert_eq!(marked_after(&mut conn, |conn| acked(conn, 1, 5)), 0);
    assert_eq!(marked_after(&mut conn, |conn| acked(conn, 3, 6)), mss, "one of two");
    assert_eq!(conn.flow.reductions, 1);
    assert_eq!(marked_after(&mut conn, |conn| acked(conn, 6, 9)), 3 * mss, "it wraps");
    assert_eq!(marked_after(&mut conn, |conn| acked(conn, 7, 1)), 0);
    assert_eq!(conn.flow.reductions, 1, "one reduction a window");
}

#[test]
fn no_more_is_marked_than_was_delivered() {
    let mut conn = dctcp();
    conn.send_segs(0, 4);
    let mss = conn.mss();
    // A peer that jumps, or counts marks on ACKs.
    assert_eq!(marked_after(&mut conn, |conn| acked(conn, 2, 5 + 7)), 2 * mss);
}

#[test]
fn an_ack_without_progress_tells_nothing() {
    let mut conn = dctcp();
    conn.send_segs(0, 4);
    conn.guest_gets(acked(&conn, 2, 5));
    let mut again = acked(&conn, 2, 7);
    again.0.window += 1;
    assert_eq!(marked_after(&mut conn, |_| again), 0);
    assert_eq!(marked_after(&mut conn, |conn| acked(conn, 1, 7)), 0, "an old one");
    let mss = conn.mss();
    assert_eq!(marked_after(&mut conn, |conn| acked(conn, 4, 7)), 2 * mss, "the next one does");
}

#[test]
fn lost_acks_are_taken_for_the_worst_unless_long_ones_are_usual() {
    // A.2.1: 12 packets at once, of a receiver that acknowledges every second one.
    let mut conn = dctcp();
    conn.send_segs(0, 40);
    let mss = conn.mss();
    for segs in (2..=20).step_by(2) {
        conn.guest_gets(acked(&conn, segs, 5));
    }
    assert_eq!(marked_after(&mut conn, |conn| acked(conn, 32, 6)), 9 * mss, "1, or 9");
    // One that acknowledges ten at once: Linux reads one mark, and so does vcc.
    let mut conn = dctcp();
    conn.send_segs(0, 40);
    for segs in [10, 20] {
        conn.guest_gets(acked(&conn, segs, 5));
    }
    assert_eq!(marked_after(&mut conn, |conn| acked(conn, 30, 6)), mss);
}

#[test]
fn the_option_tells_exact_bytes() {
    for other_order in [false, true] {
        let with = |ack: Seg, ce_bytes: u32| {
            if other_order { ack.accecn_option(1, ce_bytes) } else { ack.pack(9, ce_bytes) }
        };
        let mut conn = dctcp();
        conn.send_segs(0, 40);
        let mss = conn.mss();
        conn.guest_gets(acked(&conn, 1, 5));
        let ack = with(acked(&conn, 13, 5 + 3), 11 * mss);
        let got = conn.clone().guest_gets(ack);
        assert!(got.strip != 0 && got.forged == 0, "the guest sees no option");
        assert_eq!(
            marked_after(&mut conn, |_| ack),
            11 * mss,
            "eight more than the field can tell"
        );
        // Between options the field's marks are taken as packets of full size; the next option
        // corrects this.
        assert_eq!(marked_after(&mut conn, |conn| acked(conn, 14, 5 + 4)), mss);
        let ack = with(acked(&conn, 15, 5 + 4), 11 * mss + 100);
        assert_eq!(marked_after(&mut conn, |_| ack), 0, "that mark was on 100 bytes");
        let ack = with(acked(&conn, 16, 5 + 5), 12 * mss + 100);
        assert_eq!(marked_after(&mut conn, |_| ack), mss);
        assert_eq!(conn.flow.forged, 0);
    }
}

#[test]
fn the_option_wraps() {
    let mut conn = dctcp();
    conn.flow.0.heard.ce_bytes = 0xff_ff00;
    conn.send_segs(0, 8);
    let ack = acked(&conn, 4, 6).pack(1, 0x300);
    assert_eq!(marked_after(&mut conn, |_| ack), 0x400);
}

#[test]
fn an_option_that_tells_of_no_byte_does_not_silence_the_field() {
    let mut conn = dctcp();
    conn.send_segs(0, 8);
    let mss = conn.mss();
    assert_eq!(marked_after(&mut conn, |conn| acked(conn, 2, 6).pack(9, 0)), mss);
    assert_eq!(marked_after(&mut conn, |conn| acked(conn, 4, 6).pack(9, 0)), 0);
}

#[test]
fn an_impossible_option_is_ignored_for_good() {
    let mss = dctcp().mss();
    for (ce_bytes, why) in [
        (0xff_ffff, "it runs back"),
        (0x7f_ffff, "it jumps"),
        (20 * mss + 65537, "by more than was sent and repeated"),
    ] {
        let mut conn = dctcp();
        conn.send_segs(0, 20);
        let ack = acked(&conn, 2, 6).pack(9, ce_bytes);
        let got = conn.clone().guest_gets(ack);
        assert!(got.forged != 0, "{why}");
        assert_eq!(marked_after(&mut conn, |_| ack), mss, "{why}: the field counts");
        let ack = acked(&conn, 4, 6).pack(9, 2 * mss);
        assert_eq!(marked_after(&mut conn, |_| ack), 0, "{why}: it stays so");
    }
}

#[test]
fn an_option_that_the_path_has_cleared_is_not_believed() {
    // No ECT counter begins at zero (3.2.3.2.3).
    for answer in [linux_syn().pack(0, 0), linux_syn().accecn_option(0, 0)] {
        let mut conn = Conn::new(underlay("dctcp"), 5);
        conn.guest_syn(linux_syn());
        let got = conn.peer_synack(answer.ace(CODES[0]));
        assert!(got.strip != 0 && got.forged == 0);
        conn.guest_acks(0);
        conn.send_segs(0, 8);
        let mss = conn.mss();
        assert_eq!(marked_after(&mut conn, |conn| acked(conn, 2, 6).pack(0, 300)), mss);
    }
    // An option of no field, or of one, reports nothing.
    let mut conn = Conn::new(underlay("dctcp"), 5);
    conn.guest_syn(linux_syn());
    let mut answer = linux_syn().ace(CODES[0]);
    answer.0.options |= sys::OPT_ACCECN as u16;
    conn.peer_synack(answer);
    conn.guest_acks(0);
    conn.send_segs(0, 8);
    assert_eq!(marked_after(&mut conn, |conn| acked(conn, 2, 6).pack(9, 300)), 300);
}

#[test]
fn a_field_that_the_path_clears_forbids_ect() {
    // 3.2.2.4: the first field after the handshake is zero, where no counter begins.
    let mut conn = dctcp();
    conn.send_segs(0, 8);
    conn.guest_gets(acked(&conn, 1, 0));
    assert!(is_not_ect(&conn.send(8 * conn.mss(), 1000)));
    assert_eq!((conn.flow.marks, conn.flow.reductions), (0, 0), "zero is no count");
    // Later zero is a value like any other.
    let mut conn = dctcp();
    conn.send_segs(0, 8);
    conn.guest_gets(acked(&conn, 1, 5));
    conn.guest_gets(acked(&conn, 4, 8));
    assert_eq!(conn.flow.reductions, 1);
    assert!(is_ect0(&conn.send(8 * conn.mss(), 1000)));
}

#[test]
fn duplicate_acks_tell_of_marks() {
    let mut conn = dctcp();
    conn.send_segs(0, 60);
    conn.guest_gets(acked(&conn, 1, 5));
    let mss = conn.mss();
    let mut sacked = acked(&conn, 1, 6);
    sacked.0.options |= sys::OPT_SACK as u16;
    // 17 of 20 behind a hole are marked, one ACK each.
    let marked: u32 = (1..=17).map(|more| marked_after(&mut conn, |_| sacked.ace(5 + more))).sum();
    assert_eq!(marked, 17 * mss);
    for _ in 0..3 {
        assert_eq!(marked_after(&mut conn, |_| sacked.ace(5 + 17)), 0);
    }
    assert_eq!(marked_after(&mut conn, |conn| acked(conn, 22, 5 + 18)), mss);
    assert_eq!(marked_after(&mut conn, |conn| acked(conn, 24, 5 + 18)), 0);
}

#[test]
fn a_duplicate_that_was_overtaken_is_no_lie() {
    let mut conn = dctcp();
    conn.send_segs(0, 20);
    conn.guest_gets(acked(&conn, 1, 5));
    let mss = conn.mss();
    let mut sacked = acked(&conn, 1, 6);
    sacked.0.options |= sys::OPT_SACK as u16;
    assert_eq!(marked_after(&mut conn, |_| sacked.ace(7).pack(9, 2 * mss)), 2 * mss);
    assert_eq!(marked_after(&mut conn, |_| sacked.pack(9, mss)), 0);
    assert_eq!(conn.flow.forged, 0);
    let ack = acked(&conn, 5, 8).pack(9, 3 * mss);
    assert_eq!(marked_after(&mut conn, |_| ack), mss);
}

#[test]
fn a_counter_that_stands_at_zero_is_no_cleared_field() {
    // Three marks in the first ACK: 5 and 3 is 8.
    let mut conn = dctcp();
    conn.send_segs(0, 8);
    let mss = conn.mss();
    assert_eq!(marked_after(&mut conn, |conn| acked(conn, 3, 8)), 3 * mss);
    assert!(is_ect0(&conn.send(8 * mss, 1000)));
    // One of them on the third ACK.
    let mut conn = dctcp();
    conn.send_segs(0, 8);
    conn.guest_gets(acked(&conn, 2, 8));
    assert!(is_ect0(&conn.send(8 * mss, 1000)));
    // On ACKs of the peer's data, which was in flight when they were sent.
    let mut conn = dctcp();
    conn.send_segs(0, 8);
    let mut data = acked(&conn, 1, 8);
    data.0.payload_bytes = 100;
    conn.guest_gets(data);
    assert!(is_ect0(&conn.send(8 * mss, 1000)));
    // The option says that there were marks.
    let mut conn = dctcp();
    conn.send_segs(0, 8);
    let ack = acked(&conn, 2, 8).pack(1, 2 * mss);
    assert_eq!(marked_after(&mut conn, |_| ack), 2 * mss);
}

#[test]
fn retransmissions_may_be_counted_twice() {
    let mut conn = dctcp();
    conn.send_segs(0, 60);
    let mss = conn.mss();
    conn.guest_gets(acked(&conn, 2, 5).pack(9, 0));
    for _ in 0..2 {
        conn.send_segs(2, 59);
    }
    let most = (58 + 2 * 57) * mss;
    let ack = acked(&conn, 60, 7).pack(9, most);
    assert_eq!(marked_after(&mut conn, |_| ack), most);
    assert_eq!(conn.flow.forged, 0);
}

#[test]
fn a_base_after_half_a_turn_is_not_guessed_upon() {
    let mut conn = dctcp();
    conn.send_segs(0, 20);
    conn.guest_gets(acked(&conn, 1, 5));
    conn.flow.0.unreported_bytes = 1 << 24;
    let mss = conn.mss();
    let ack = acked(&conn, 2, 6).pack(9, 777);
    assert_eq!(marked_after(&mut conn, |_| ack), mss, "the field");
    let ack = acked(&conn, 3, 7).pack(9, 777 + mss);
    assert_eq!(marked_after(&mut conn, |_| ack), mss);
}

#[test]
fn ece_alone_is_no_echo() {
    // Bit 0 of the counter is where a classic receiver has ECE.
    let mut conn = to_accecn(Params::default());
    conn.send_segs(0, 4);
    conn.guest_gets(acked(&conn, 1, 5));
    conn.guest_gets(acked(&conn, 2, 5));
    assert_eq!((conn.flow.marks, conn.flow.reductions), (0, 0));
    let got = conn.guest_gets(acked(&conn, 3, 5));
    assert_eq!(ace(&got), 0);
}

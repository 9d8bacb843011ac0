//! The receiver half: what is reported to the peer of the marks on its data (RFC 9768, 3.2.2 and
//! 3.2.3).

use super::*;

#[test]
fn each_marked_packet_counts_and_nothing_reaches_the_guest() {
    for overridden in [false, true] {
        let mut conn = if overridden {
            opened(overriding(), linux_syn().asking_accecn(), CODES[0])
        } else {
            to_accecn(Params::default())
        };
        let mut expected = 5;
        for number in 0..20 {
            let mut data = conn.ack(0).ace(7).len(1000);
            data.0.seq = conn.peer_seq(number * 1000);
            let marked = number % 3 == 0;
            let got = conn.guest_gets(if marked { data.ce() } else { data.ect0() });
            assert_eq!(ace(&got), 0, "the guest reads no counter");
            let seen = if overridden { sys::IP_ECN_ECT_0 } else { sys::IP_ECN_NOT_ECT };
            assert_eq!(u32::from(got.ip_ecn), seen);
            expected += u32::from(marked);
            assert_eq!(ace(&conn.guest_acks((number + 1) * 1000)), expected % 8);
        }
    }
}

#[test]
fn packets_count_by_their_number_and_bytes_by_theirs() {
    let mut conn = to_accecn(Params::default());
    // Three packets in one super-segment, and an ACK without data.
    conn.guest_gets(conn.ack(0).ace(5).len(2500).cut(1000).ce());
    let mut ack = conn.ack(0).ace(5).ce();
    ack.0.seq = conn.peer_seq(2500);
    conn.guest_gets(ack);
    let report =
        conn.guest_sends(seg().seq(conn.seq(0)).ack(conn.peer_seq(2500)).win(500).room(20));
    assert_eq!(ace(&report), (5 + 4) % 8);
    assert!(emits(&report, sys::EMIT_PACK));
    assert_eq!((report.feedback.ect0_bytes, report.feedback.ce_bytes), (1, 2500));
}

#[test]
fn the_option_goes_where_there_is_room_and_something_new() {
    let mut conn = to_accecn(Params::default());
    let ack = |conn: &Conn, offset: u32| {
        seg().seq(conn.seq(0)).ack(conn.peer_seq(offset)).win(500).room(8)
    };
    // The first tries the path, even if nothing has come.
    let mut fresh = Conn::new(Params::default(), 5);
    fresh.guest_syn(linux_syn());
    fresh.peer_synack(linux_syn().ace(CODES[0]));
    let first = fresh.guest_sends(ack(&fresh, 0));
    assert!(emits(&first, sys::EMIT_PACK) && first.feedback.ect0_bytes == 1);
    assert!(emits(&fresh.guest_sends(ack(&fresh, 0)), sys::EMIT_NOTHING), "nothing new");

    conn.guest_gets(conn.ack(0).ace(5).len(1000).ect0());
    assert!(emits(&conn.guest_sends(ack(&conn, 1000).room(7)), sys::EMIT_NOTHING));
    assert!(emits(&conn.send(0, 1000), sys::EMIT_NOTHING), "data carry none, and need no FACK");
    assert!(emits(&conn.guest_sends(ack(&conn, 1000)), sys::EMIT_PACK));
    // ECT(1) has no field in this form, and may not be left out (3.2.3.3).
    let mut data = conn.ack(0).ace(5).len(1000);
    data.0.seq = conn.peer_seq(1000);
    data.0.ip_ecn = sys::IP_ECN_ECT_1 as u8;
    conn.guest_gets(data);
    assert!(emits(&conn.guest_sends(ack(&conn, 2000)), sys::EMIT_NOTHING));
}

#[test]
fn a_super_segment_never_says_a_value_with_cwr() {
    // Segmentation clears that bit in all packets but the first.
    for marks in 0..20 {
        let mut conn = to_accecn(Params::default());
        for number in 0..marks {
            let mut data = conn.ack(0).ace(5).len(1000).ce();
            data.0.seq = conn.peer_seq(number * 1000);
            conn.guest_gets(data);
        }
        let sent = conn.guest_sends(conn.data(0, 3000).cut(1000));
        let report = ace(&sent);
        assert_eq!(report & 2, 0);
        let ahead = (report + 8 - (5 + marks) % 8) % 8;
        assert!(ahead <= 2, "{marks} marks: {ahead} more than came");
        assert_eq!(ace(&conn.guest_acks(0)), report, "it does not run back");
        // A single packet can report any value.
        let mut data = conn.ack(0).ace(5).len(1000).ce();
        data.0.seq = conn.peer_seq(marks * 1000);
        conn.guest_gets(data);
        assert_eq!(ace(&conn.guest_sends(conn.data(3000, 1000).cut(1000))), (report + 1) % 8);
    }
}

#[test]
fn no_cwr_is_sent_and_none_is_expected() {
    let mut conn = to_accecn(Params::default());
    conn.send_segs(0, 4);
    let mss = conn.mss();
    conn.guest_gets(conn.ack(mss).ace(6));
    assert_eq!(conn.flow.reductions, 1);
    assert_eq!(ace(&conn.send(4 * mss, mss)), 5, "the counter alone");
    // The guest sets the bits of the ECN that it has.
    let mut conn = opened(overriding(), linux_syn().asking_ecn(), CODES[0]);
    let sent = conn.guest_sends(conn.data(0, 1000).cwr().ece());
    assert_eq!(ace(&sent), 5);
}

#[test]
fn what_is_refused_does_not_count() {
    let mut conn = to_accecn(Params::default());
    let mut forged = conn.ack(0).ace(7).len(1000).ce();
    forged.0.seq = conn.peer_seq(1 << 30);
    let got = conn.guest_gets(forged);
    assert!(ace(&got) == 0 && is_not_ect(&got), "nor does the guest see it");
    assert_eq!(ace(&conn.guest_acks(0)), 5);
}

#[test]
fn every_segment_leaves_as_ect() {
    let mut conn = from_accecn(Params::default());
    assert!(is_ect0(&conn.send(0, 1000)));
    assert!(is_ect0(&conn.send(0, 1000)), "a retransmission");
    assert!(is_ect0(&conn.guest_acks(0)), "an ACK");
}

//! A far end whose reports stop, or never start.

use super::*;

/// A stream with every segment acknowledged; `alter` changes each ACK.
fn stream(conn: &mut Conn, from_segs: u32, to_segs: u32, alter: impl Fn(u32, Seg) -> Seg) {
    let mss_bytes = conn.mss();
    for number in from_segs..to_segs {
        conn.send(number * mss_bytes, mss_bytes);
        let ack = conn.ack((number + 1) * mss_bytes);
        conn.guest_gets(alter(number, ack));
    }
}

#[test]
fn a_far_end_that_never_reports_is_a_classic_receiver() {
    for name in ["reno-ecn", "dctcp"] {
        // Our acceptance may have been lost: the far end would echo marks by ECE.
        let mut conn = Conn::to_vcc(underlay(name), 5);
        stream(&mut conn, 0, 40, |_, ack| ack);
        assert_eq!(state(&conn), 0, "{name}: reports may still be in flight");
        stream(&mut conn, 40, 2000, |_, ack| ack);
        assert_eq!(state(&conn), sys::FLOW_FEEDBACK_LOST, "{name}");
        let mss_bytes = conn.mss();
        assert!(is_ect0(&conn.send(2000 * mss_bytes, mss_bytes)), "{name}");
        assert_eq!(conn.flow.forged, 0, "it is gone, not wrong");

        // A mark is echoed: a middlebox removes the options, and ECE remains.
        let mut conn = Conn::to_vcc(underlay(name), 5);
        stream(&mut conn, 0, 2000, |number, ack| if number % 20 == 0 { ack.ece() } else { ack });
        assert_eq!(state(&conn), sys::FLOW_FEEDBACK_LOST, "{name}");
        assert!(is_ect0(&conn.send(2000 * mss_bytes, mss_bytes)), "{name}");
        assert!(conn.flow.reductions > 10);
    }
}

#[test]
fn a_far_end_that_falls_silent_hears_no_marks() {
    let mut conn = Conn::to_vcc(underlay("dctcp"), 5);
    let mss_bytes = conn.mss();
    let reported =
        |number: u32, ack: Seg| ack.pack((1 + (number + 1) * mss_bytes) & COUNTER_MASK, 0);
    // ECE came from a vcc that reports. When that vcc is gone, no one echoes.
    stream(
        &mut conn,
        0,
        200,
        |number, ack| {
            if number % 10 == 0 { reported(number, ack) } else { ack.ece() }
        },
    );
    assert_eq!(state(&conn), sys::FLOW_FEEDBACK_HEARD);
    stream(&mut conn, 200, 201, reported);
    stream(&mut conn, 201, 4000, |_, ack| ack);
    assert!(conn.flow.has(sys::FLOW_FEEDBACK_LOST) && conn.flow.has(sys::FLOW_UNHEARD));
    // The reports were only late: the counters, which moved while data was ECT, report the missed
    // marks.
    conn.flow.0.marks = 0;
    let missed_bytes = conn.flow.unreported_bytes;
    let received_bytes = 4000 * mss_bytes;
    conn.send(received_bytes, mss_bytes);
    let ect0_bytes = (conn.flow.heard.ect0_bytes + missed_bytes - mss_bytes) & COUNTER_MASK;
    let late = conn.ack(received_bytes).pack(ect0_bytes, mss_bytes);
    let action = conn.guest_gets(late);
    assert_eq!((state(&conn), action.forged), (sys::FLOW_FEEDBACK_HEARD, 0));
    assert_eq!(conn.flow.marks, 1);
    assert!(is_ect0(&conn.send(received_bytes + mss_bytes, mss_bytes)));
}

/// Counters wrap every 16 MiB: after a long silence they only set the new base.
#[test]
fn after_any_silence_reports_count_again() {
    for missed_mib in [1u32, 7, 9, 15, 17, 40] {
        let mut conn = Conn::to_vcc(underlay("dctcp"), 5);
        let mss_bytes = conn.mss();
        let segs = (missed_mib << 20) / mss_bytes;
        // ECE is echoed, so data stays ECT, and the far end keeps counting.
        stream(&mut conn, 0, segs, |number, ack| if number % 50 == 0 { ack.ece() } else { ack });
        assert_eq!(state(&conn), sys::FLOW_FEEDBACK_LOST, "{missed_mib} MiB");
        let marks = conn.flow.marks;
        let mut far = Far::new();
        far.gets(segs * mss_bytes / 2, segs * mss_bytes / 2);
        conn.send(segs * mss_bytes, mss_bytes);
        let action = conn.guest_gets(far.pack(conn.ack((segs + 1) * mss_bytes)));
        assert_eq!((state(&conn), action.forged), (sys::FLOW_FEEDBACK_HEARD, 0), "{missed_mib}");
        assert_eq!(conn.flow.marks, marks, "those were answered by ECE");
        conn.send((segs + 1) * mss_bytes, mss_bytes);
        conn.guest_gets(far.gets(0, mss_bytes).pack(conn.ack((segs + 2) * mss_bytes)));
        assert_eq!((conn.flow.marks, conn.flow.forged), (marks + 1, 0), "{missed_mib} MiB");
    }
}

/// Half of the sequence space or more, after which an acknowledgement seems older than the last
/// that carried a report.
#[test]
fn after_gigabytes_of_silence_reports_count_again() {
    let mut conn = Conn::to_vcc(underlay("dctcp"), 5);
    let mss_bytes = conn.mss();
    stream(&mut conn, 0, 100, |number, ack| ack.pack(1 + (number + 1) * mss_bytes, 0));
    assert_eq!(state(&conn), sys::FLOW_FEEDBACK_HEARD);
    let mut offset = 100 * mss_bytes;
    while offset < 3 << 30 {
        conn.guest_sends(conn.data(offset, 1 << 20).cut(mss_bytes));
        offset += 1 << 20;
        conn.peer_ack(offset);
    }
    assert!(conn.flow.has(sys::FLOW_FEEDBACK_LOST) && conn.flow.has(sys::FLOW_UNHEARD));
    let mut far = Far::new();
    far.gets(1 << 20, 0);
    conn.send(offset, mss_bytes);
    let action = conn.guest_gets(far.pack(conn.ack(offset + mss_bytes)));
    assert_eq!((state(&conn), action.forged), (sys::FLOW_FEEDBACK_HEARD, 0));
    assert!(is_ect0(&conn.send(offset + mss_bytes, mss_bytes)));
}

#[test]
fn repair_after_a_timeout_is_no_silence() {
    // A retransmission is Not-ECT (RFC 3168, 6.1.5), so it is never reported, and its ACK covers
    // data that was reported before.
    for segs in [100u32, 400] {
        let big = params(|p| p.initial_window_segs = segs);
        let mut conn = Conn::to_vcc(big, 5);
        let mss_bytes = conn.mss();
        conn.send_segs(0, segs);
        let far = (segs - 1) * mss_bytes;
        for _ in 1..segs {
            conn.guest_gets(conn.ack(0).pack(1 + far, 0).sack());
        }
        // The guest's timer retransmits the hole; the retransmission is lost once.
        conn.send(0, mss_bytes);
        conn.wait_us(3_000_000).deadline();
        assert_eq!(u32::from(conn.flow.ca_state), sys::CA_LOSS);
        conn.send(0, mss_bytes);
        conn.peer_ack_segs(segs);
        assert_eq!(state(&conn), sys::FLOW_FEEDBACK_HEARD, "{segs} segments");
        // Later silence counts from there.
        conn.send(segs * mss_bytes, mss_bytes);
        conn.peer_ack((segs + 1) * mss_bytes);
        assert_eq!(state(&conn), sys::FLOW_FEEDBACK_HEARD, "{segs} segments");
    }
}

#[test]
fn unreported_retransmissions_do_not_accumulate() {
    // Counted as unreported forever, they would eventually wrap.
    let mut conn = Conn::to_vcc(Params::default(), 5);
    let mss_bytes = conn.mss();
    conn.flow.0.unreported_bytes = u32::MAX - 10 * mss_bytes;
    conn.send_segs(0, 20);
    assert!(conn.flow.unreported_bytes > 1 << 29);
    let action = conn.guest_gets(conn.ack(20 * mss_bytes).pack(1 + 20 * mss_bytes, 0));
    assert_eq!((action.forged, state(&conn)), (0, sys::FLOW_FEEDBACK_HEARD));
}

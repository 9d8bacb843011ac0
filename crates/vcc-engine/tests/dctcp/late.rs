//! A guest that answers a batch of ACKs after the last of them has passed.

use super::*;

const WINDOW_SEGS: u32 = 10;

/// A window of ten segments in flight, behind which the guest has more.
fn filled() -> Conn {
    let mut conn = conn(underlay("dctcp"), 5, Reporting::DctcpEcho);
    conn.flow.0.cc.ssthresh_segs = WINDOW_SEGS;
    conn.peer_ack(0);
    conn.send_segs(0, WINDOW_SEGS);
    conn
}

fn ack(conn: &mut Conn, segs: u32) {
    let ack = conn.ack(segs * conn.mss()).ect0();
    conn.guest_gets(ack);
}

fn window_end(conn: &Conn) -> u32 {
    let end = conn.flow.cc.own[sys::DCTCP_WINDOW_END as usize];
    end.wrapping_sub(conn.seq(0)) / conn.mss()
}

/// As a sender that has answered the first nine of them at once.
#[test]
fn an_observation_window_includes_what_is_about_to_be_sent() {
    let mut conn = filled();
    for segs in 1..WINDOW_SEGS {
        ack(&mut conn, segs);
    }
    let before = alpha(&conn);
    ack(&mut conn, WINDOW_SEGS);
    assert_ne!(alpha(&conn), before);
    assert_eq!(window_end(&conn), 2 * WINDOW_SEGS - 1);
}

#[test]
fn what_an_application_has_not_written_is_not_about_to_be_sent() {
    for delays in [false, true] {
        let mut conn = filled();
        conn.params.0.delays = delays.into();
        for segs in 1..WINDOW_SEGS {
            ack(&mut conn, segs);
        }
        // The window has room for more behind it.
        let last = conn.data(WINDOW_SEGS * conn.mss(), conn.mss()).psh();
        conn.guest_sends(last);
        ack(&mut conn, WINDOW_SEGS);
        assert_eq!(window_end(&conn), WINDOW_SEGS + 1);
    }
}

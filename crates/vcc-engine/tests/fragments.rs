//! A guest whose segments leave in IP fragments, of which the port sees the first bytes.

use crate::common::*;
use vcc_engine::{Limit, Untranslated, sys};

/// Of each segment, as much is in the first fragment.
const FIRST_BYTES: u32 = 28;

fn released(conn: &Conn) -> bool {
    conn.flow.flags & sys::FLOW_RELEASED != 0
}

/// The first fragment of the segment at this offset of the guest's data.
fn fragment(conn: &mut Conn, offset: u32) -> bool {
    let segment = conn.data(offset, FIRST_BYTES).at_us(conn.now_us).0;
    conn.flow.fragment_from_guest(&conn.params, &segment)
}

/// The window field of the peer, as the guest is shown it without an underlay.
fn unlimited(conn: &Conn) -> u16 {
    let scale = conn.flow.wscale_peer - conn.flow.wscale_shown;
    u16::try_from(u32::from(PEER_WINDOW) << scale).unwrap_or(u16::MAX)
}

#[test]
fn it_is_shown_its_peers_window_to_the_end() {
    for isn in ISNS {
        let mut conn = Conn::established(underlay("cubic"), isn);
        let limited = conn.peer_ack(0);
        assert!(limited.window < unlimited(&conn));
        assert!(fragment(&mut conn, 0), "it releases the flow");
        assert!(released(&conn));
        let limit = conn.flow.limited_by(&conn.params, None, conn.now_us);
        assert_eq!(limit, Limit::Untranslated(Untranslated::Fragments));
        assert!(!fragment(&mut conn, 1000), "which is so for good");
        // The peer acknowledges bytes that no whole segment had.
        assert_eq!(conn.peer_ack(2000).window, unlimited(&conn));
        assert_eq!(conn.flow.snd_una, conn.flow.snd_nxt);
        // Both ends close, with numbers that the fragments had reached.
        conn.guest_gets(conn.ack(3000).fin());
        conn.guest_sends(conn.data(3000, 0).fin());
        assert_eq!(u32::from(conn.flow.stage), sys::STAGE_CLOSED);
    }
}

#[test]
fn a_new_treatment_imposes_its_window_until_the_next_fragment() {
    let mut conn = Conn::established(underlay("cubic"), 5);
    fragment(&mut conn, 0);
    conn.peer_ack(1000);
    conn.flow.judge_anew(&conn.params);
    assert!(!released(&conn));
    assert!(fragment(&mut conn, 1000) && released(&conn));
}

#[test]
fn what_is_known_is_no_news() {
    let mut conn = Conn::established(underlay("cubic"), 5);
    conn.send(0, 1000);
    assert!(!fragment(&mut conn, 500), "it was sent as a whole");
    assert!(!fragment(&mut conn, 1 << 31), "it is none of this connection's");
    assert!(!released(&conn));
    let shadow = params(|p| p.mode = vcc_engine::Mode::Shadow.number());
    for params in [underlay("transparent"), shadow] {
        let mut conn = Conn::established(params, 5);
        assert!(!fragment(&mut conn, 0) && !released(&conn), "there is nothing to release");
    }
}

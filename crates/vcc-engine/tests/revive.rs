//! Connections whose flow was forgotten, and connections of which the port sees one direction: the
//! guest reads its peer's windows.

use crate::common::*;
use vcc_engine::{Action, Elsewhere, FlowState, Limit, OnUnknown, Params, sys};

const MS_US: u64 = 1000;

/// The flow is forgotten at its deadline, and revived by the next segment.
fn forgotten(mut conn: Conn, idle_ms: u32) -> Conn {
    conn.wait_us((u64::from(idle_ms) + 1000) * MS_US);
    assert_ne!(conn.deadline().forget, 0, "it has been idle for long");
    let minisock = conn.flow.minisock(&conn.params).expect("the guest may still read windows");
    conn.flow = FlowState::default();
    conn.wait_us(3_600_000 * MS_US);
    assert!(conn.flow.revive(&minisock, &conn.params, conn.now_us));
    conn
}

fn policing() -> Params {
    params(|p| p.police = 1)
}

#[test]
fn a_paused_guest_answers_a_syn_that_waited() {
    let mut conn = Conn::new(underlay("dctcp"), 5);
    let shown = conn.peer_syn(linux_syn());
    assert_ne!(u32::from(shown.wscale), u32::from(PEER_WSCALE), "else there is nothing to do");
    let mut conn = forgotten(conn, 10_000);
    conn.guest_synack(linux_syn());
    let ack = conn.peer_ack(0);
    let mut unpaused = Conn::new(underlay("dctcp"), 5);
    unpaused.peer_syn(linux_syn());
    unpaused.guest_synack(linux_syn());
    assert_eq!(ack.window, unpaused.peer_ack(0).window);
    assert_eq!(conn.flow.stage, sys::STAGE_ESTABLISHED as u8);
    assert_eq!(conn.flow.flags, unpaused.flow.flags);
}

#[test]
fn the_guests_own_rst_does_not_end_what_it_reads() {
    let conn = Conn::established(policing(), 5);
    let before = conn.flow;
    let mut conn = conn;
    conn.send(0, 1000);
    conn.peer_ack(1000);
    conn.guest_sends(conn.data(1000, 0).rst());
    assert_eq!(conn.flow.stage, sys::STAGE_CLOSED as u8);
    let mut conn = forgotten(conn, conn_idle_closed());
    assert_eq!((conn.flow.wscale_shown, conn.flow.wscale_peer), (before.wscale_shown, PEER_WSCALE));
    // It gains nothing either: what is beyond its window is dropped as before.
    let window_bytes = conn.flow.right_edge.wrapping_sub(conn.flow.snd_una);
    assert_ne!(conn.send(window_bytes + 100_000, 1000).police, 0);
    // Nor is what is below that a retransmission.
    assert_ne!(conn.send(window_bytes + 50_000, 1000).police, 0);
    assert_eq!(conn.send(1000, 1000).police, 0);
    let ack = conn.peer_ack(2000);
    assert!(ack.window > 0 && conn.shown_bytes(&ack) <= u32::from(PEER_WINDOW) << PEER_WSCALE);
}

fn conn_idle_closed() -> u32 {
    Params::default().0.idle_closed_ms
}

#[test]
fn half_closed_for_hours() {
    let mut conn = Conn::established(underlay("dctcp"), 5);
    conn.guest_gets(conn.ack(0).fin());
    let idle_ms = conn.params.0.idle_half_closed_ms;
    let mut conn = forgotten(conn, idle_ms);
    conn.guest_sends(conn.data(0, 1000).ack(conn.peer_seq(1)));
    let ack = conn.guest_gets(conn.ack(1000).seq(conn.peer_seq(1)));
    // 2 MB, or what the underlay grants; in units of the shown scale, not of the peer's.
    assert!(conn.shown_bytes(&ack) >= 2 * conn.mss());
    assert!(conn.shown_bytes(&ack) <= u32::from(PEER_WINDOW) << PEER_WSCALE);
}

#[test]
fn an_old_connection_ends_for_good() {
    let mut conn = Conn::established(underlay("dctcp"), 5);
    conn.guest_gets(conn.ack(0).fin());
    conn.guest_sends(conn.data(0, 0).fin().ack(conn.peer_seq(1)));
    assert!(conn.flow.minisock(&conn.params).is_none(), "both ends have closed");
    // The guest refuses a SYN, and reads nothing.
    let mut conn = Conn::new(underlay("dctcp"), 5);
    conn.peer_syn(linux_syn());
    conn.guest_sends(seg().rst().seq(0).ack(conn.peer_seq(0)));
    assert_eq!(conn.flow.stage, sys::STAGE_CLOSED as u8);
    assert!(conn.flow.minisock(&conn.params).is_none());
    assert!(FlowState::default().minisock(&conn.params).is_none());
}

/// Where its rule rejects what is unknown, the guest may still repeat what was lost.
#[test]
fn an_old_connection_repeats_what_was_lost() {
    for police in [0, 1] {
        let mut conn = Conn::established(params(|p| p.police = police), 5);
        conn.guest_gets(conn.ack(0).fin());
        conn.guest_sends(conn.data(0, 1000).fin().ack(conn.peer_seq(1)));
        let lost = conn.flow.minisock(&conn.params);
        assert_eq!(lost.is_some(), police == 1);
        if let Some(minisock) = lost {
            conn.flow = FlowState::default();
            assert!(conn.flow.revive(&minisock, &conn.params, conn.now_us));
            assert_eq!(conn.send(0, 1000).police, 0);
            let window_bytes = conn.flow.right_edge.wrapping_sub(conn.flow.snd_una);
            assert_ne!(conn.send(window_bytes + 100_000, 1000).police, 0);
        }
        conn.guest_gets(conn.ack(1001).seq(conn.peer_seq(1)));
        assert!(conn.flow.minisock(&conn.params).is_none(), "it has arrived");
    }
}

/// A connection that vcc has not changed is forgotten without a trace, unless it would be rejected.
#[test]
fn what_was_not_changed_is_kept_where_the_unknown_is_rejected() {
    let plain = |police| {
        params(|p| {
            (p.police, p.feedback, p.accecn) = (police, 0, 0);
            p.underlay = "reno".parse::<vcc_engine::Underlay>().expect("an underlay").number();
        })
    };
    for police in [0, 1] {
        let syn = seg().syn().win(64_240).mss(1460);
        let conn = Conn::accepted(plain(police), 5, syn, syn);
        assert_eq!(conn.flow.minisock(&conn.params).is_some(), police == 1);
        let passing = Params(sys::vcc_params {
            on_unknown: vcc_engine::OnUnknown::Pass.number(),
            ..conn.params.0
        });
        assert!(conn.flow.minisock(&passing).is_none());
    }
}

#[test]
fn what_nobody_may_describe_is_not_revived() {
    let mut conn = Conn::established(underlay("dctcp"), 5);
    conn.flow.0.underlay = 77;
    let minisock = conn.flow.minisock(&conn.params).expect("a minisock");
    assert!(!FlowState::default().revive(&minisock, &conn.params, conn.now_us));
}

/// The guest's SYN-ACK takes another way; the peer's window is that of its SYN, scaled.
#[test]
fn the_guest_answers_by_another_card() {
    for police in [0, 1] {
        let mut conn = Conn::new(params(|p| p.police = police), 5);
        let syn = linux_syn();
        conn.peer_syn(syn.win(64_240));
        let shown = u32::from(conn.flow.wscale_shown);
        let ack = conn.guest_gets(conn.ack(0).win(63));
        assert_eq!(u32::from(ack.window) << shown, 63 << PEER_WSCALE);
        assert_ne!(ack.one_direction, 0, "it is counted once");
        // Megabytes later, and the window has grown beyond the number in the SYN.
        let later =
            conn.guest_gets(conn.ack(400_000_000).seq(conn.peer_seq(900_000_000)).win(2000));
        assert_eq!(u32::from(later.window) << shown, 2000 << PEER_WSCALE);
        assert_eq!(later.one_direction, 0);
        // It stays known as long as segments pass.
        conn.wait_us(9000 * MS_US);
        conn.guest_gets(conn.ack(400_000_000).win(2000));
        conn.wait_us(9000 * MS_US);
        assert_eq!(conn.deadline().forget, 0);
    }
}

/// The peer's SYN-ACK takes another way, and so do all of its ACKs.
#[test]
fn the_peer_answers_by_another_card() {
    for (police, on_unknown) in [(0, OnUnknown::Drop), (1, OnUnknown::Pass), (1, OnUnknown::Drop)] {
        let treatment = params(|p| (p.police, p.on_unknown) = (police, on_unknown.number()));
        let mut conn = Conn::new(treatment, 5);
        let drops = police == 1 && on_unknown == OnUnknown::Drop;
        conn.guest_syn(linux_syn());
        let ack = conn.guest_sends(conn.data(0, 0));
        assert_ne!(ack.one_direction, 0, "it is counted once");
        assert!(!is_dropped(&ack), "it has no data");
        for offset in [0, 400_000_000] {
            let data = conn.send(offset, 1000);
            let police = if drops { sys::POLICED_UNKNOWN } else { sys::POLICED_NOT };
            assert_eq!((is_dropped(&data), u32::from(data.police)), (drops, police));
            assert_eq!(data.one_direction, 0);
            assert!(is_not_ect(&data));
        }
        assert_eq!(u32::from(conn.flow.policed), if drops { 2 } else { 0 });
        assert_eq!(
            conn.flow.limited_by(&conn.params, None, conn.now_us),
            Limit::OneDirection(Elsewhere::Peer)
        );
        assert!(!conn.flow.depends_on_translation(), "the guest was shown the peer's own scale");
        // It stays known as long as segments pass.
        conn.wait_us(9000 * MS_US);
        conn.send(0, 1000);
        conn.wait_us(9000 * MS_US);
        assert_eq!(conn.deadline().forget, 0);
    }
}

/// The guest's SYN-ACK has left by another card, and its data passes this port.
#[test]
fn the_guest_goes_on_by_this_card() {
    for (police, on_unknown) in [(0, OnUnknown::Drop), (1, OnUnknown::Pass), (1, OnUnknown::Drop)] {
        let treatment = params(|p| (p.police, p.on_unknown) = (police, on_unknown.number()));
        for peer_first in [false, true] {
            let mut conn = Conn::new(treatment, 5);
            let drops = police == 1 && on_unknown == OnUnknown::Drop;
            conn.peer_syn(linux_syn().win(64_240));
            let counted = |action: &Action| usize::from(action.one_direction != 0);
            let mut count = 0;
            if peer_first {
                count += counted(&conn.guest_gets(conn.ack(0).win(63)));
            }
            for offset in [0, 1000] {
                let data = conn.send(offset, 1000);
                let police = if drops { sys::POLICED_UNKNOWN } else { sys::POLICED_NOT };
                assert_eq!((is_dropped(&data), u32::from(data.police)), (drops, police));
                count += counted(&data);
            }
            count += counted(&conn.guest_gets(conn.ack(2000).win(63)));
            assert_eq!(count, 1, "it is counted once");
            assert!(conn.flow.depends_on_translation(), "the guest was shown another scale");
            let limit = conn.flow.limited_by(&conn.params, None, conn.now_us);
            assert_eq!(limit, Limit::OneDirection(Elsewhere::Guest));
        }
    }
}

/// An ACK before the SYN-ACK proves nothing: with the answer, the connection is one like others.
#[test]
fn an_ack_before_the_answer_changes_nothing() {
    for police in [0, 1] {
        let treatment = params(|p| (p.police, p.on_unknown) = (police, OnUnknown::Pass.number()));
        let mut conn = Conn::new(treatment, 5);
        conn.guest_syn(linux_syn());
        conn.send(0, 1000);
        conn.send(100_000, 1000);
        conn.peer_synack(linux_syn().ece());
        conn.guest_sends(conn.data(0, 0));
        let mut undisturbed = Conn::opened(treatment, 5, linux_syn(), linux_syn());
        let facts = |c: &Conn| {
            let f = &c.flow;
            (f.stage, f.flags, f.sends, f.settled, f.wscale_shown, f.right_edge, f.snd_nxt)
        };
        assert_eq!(facts(&conn), facts(&undisturbed));
        for (offset, bytes) in [(0, 1000), (100_000, 1000)] {
            let [is, would] = [&mut conn, &mut undisturbed].map(|c| c.send(offset, bytes).police);
            assert_eq!(is, would, "{offset}");
        }
    }
}

#[test]
fn a_guest_that_declines_scaling_by_another_card() {
    let mut conn = Conn::new(underlay("dctcp"), 5);
    conn.peer_syn(linux_syn().win(64_240));
    // No receiver shrinks its window, so this one is not scaled.
    let ack = conn.guest_gets(conn.ack(0).win(64_240));
    assert_eq!(ack.window, 64_240);
    assert_eq!(conn.guest_gets(conn.ack(1000).win(100)).window, 100);
}

#[test]
fn a_forged_ack_before_the_answer_changes_nothing() {
    let mut conn = Conn::new(underlay("dctcp"), 5);
    conn.peer_syn(linux_syn().win(64_240));
    conn.guest_gets(conn.ack(77).win(65_535));
    conn.guest_gets(seg().seq(1).ack(2).win(3));
    conn.guest_synack(linux_syn());
    conn.peer_ack(0);
    let undisturbed = Conn::accepted(underlay("dctcp"), 5, linux_syn().win(64_240), linux_syn());
    let facts = |c: &Conn| (c.flow.stage, c.flow.flags, c.flow.wscale_shown, c.flow.right_edge);
    assert_eq!(facts(&conn), facts(&undisturbed));
}

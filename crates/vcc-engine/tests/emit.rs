//! Segments that the engine requests for the guest (AC/DC, 3.3): duplicate ACKs for a guest whose
//! own timeout is far off, and window updates.

use crate::common::*;
use vcc_engine::{Action, Mode, Params, sys};

const AFTER_US: u64 = 10_000;

fn emitting(change: impl FnOnce(&mut sys::vcc_params)) -> Params {
    params(|p| {
        p.emit = 1;
        p.emit_after_us = AFTER_US as u32;
        change(p);
    })
}

/// A guest without SACK with `segs` segments in flight, after the first ACK.
fn waiting(params: Params, segs: u32) -> Conn {
    let syn = linux_syn().without(sys::OPT_SACK_PERMITTED);
    waiting_with(params, segs, syn)
}

fn waiting_with(params: Params, segs: u32, syn: Seg) -> Conn {
    let mut conn = Conn::opened(params, 5, syn, linux_syn());
    conn.send_segs(0, 1);
    conn.wait_us(1000).peer_ack_segs(1);
    conn.send_segs(1, 1 + segs);
    conn
}

fn quiet(action: &Action) -> bool {
    action.dupacks == 0 && action.update == 0
}

/// Follows the deadlines. Returns the engine's requests and their times.
fn watch(conn: &mut Conn, lasts_us: u64) -> Vec<(u64, Action)> {
    let start_us = conn.now_us;
    let mut asked = Vec::new();
    loop {
        let action = conn.deadline();
        assert_eq!(action.forget, 0);
        assert!(action.deadline_ms >= 1);
        if !quiet(&action) {
            asked.push((conn.now_us - start_us, action));
        }
        let wait_us = u64::from(action.deadline_ms) * 1000;
        if conn.now_us + wait_us > start_us + lasts_us {
            return asked;
        }
        conn.wait_us(wait_us);
    }
}

#[test]
fn duplicates_go_out_in_time_and_once() {
    for segs in [4, 5, 9] {
        let mut conn = waiting(emitting(|_| ()), segs);
        let asked = watch(&mut conn, 150_000);
        let [(at_us, action)] = asked[..] else { panic!("asked {} times", asked.len()) };
        assert_eq!((action.dupacks, action.update), (3, 0));
        assert!((AFTER_US..=AFTER_US + 2000).contains(&at_us), "after {at_us} us");
    }
}

#[test]
fn nothing_is_due_while_the_peers_window_is_closed() {
    let mut conn = waiting(emitting(|_| ()), 1);
    let mss_bytes = conn.mss();
    conn.guest_gets(conn.ack(mss_bytes).win(0));
    for _ in 0..3 {
        conn.wait_us(2_000_000);
        assert!(conn.deadline().deadline_ms >= 10_000, "a look for nothing");
    }
    // It opens: its timer counts again.
    conn.peer_ack(mss_bytes);
    assert!(conn.deadline().deadline_ms < 10_000);
}

#[test]
fn no_duplicates_without_reason() {
    let none = |mut conn: Conn| watch(&mut conn, 150_000).iter().all(|(_, a)| a.dupacks == 0);
    assert!(!none(waiting(emitting(|_| ()), 4)));
    assert!(none(waiting(Params::default(), 4)), "only if enabled");
    assert!(none(waiting(emitting(|p| p.mode = Mode::Shadow.number()), 4)), "shadow");
    assert!(none(waiting_with(emitting(|_| ()), 4, linux_syn())), "a guest with SACK ignores them");
    assert!(none(waiting(emitting(|_| ()), 3)), "three segments cannot cause three duplicates");
    let mut fewer = waiting(emitting(|_| ()), 4);
    fewer.peer_ack(fewer.mss() + fewer.mss());
    assert!(none(fewer), "three in flight");
    let transparent = params(|p| {
        p.emit = 1;
        p.underlay = underlay("transparent").0.underlay;
    });
    assert!(none(waiting(transparent, 4)));
    let mut duplicated = waiting(emitting(|_| ()), 6);
    duplicated.peer_ack_segs(1);
    assert!(none(duplicated), "the peer sends its own");
    let mut closed = waiting(emitting(|_| ()), 4);
    closed.guest_gets(closed.ack(closed.mss()).win(0));
    assert!(none(closed), "the peer's window is closed");
    let mut reducing = waiting(emitting(|_| ()), 8);
    reducing.guest_gets(reducing.ack(2 * reducing.mss()).ece());
    assert!(none(reducing), "a reduction is under way");
    let syn = linux_syn().without(sys::OPT_SACK_PERMITTED);
    let mut fresh = Conn::opened(emitting(|_| ()), 5, syn, linux_syn());
    fresh.send_segs(0, 10);
    assert!(none(fresh), "there is no ACK to repeat yet");
}

#[test]
fn progress_allows_the_next() {
    let mut conn = waiting(emitting(|_| ()), 8);
    assert_eq!(watch(&mut conn, 30_000).len(), 1);
    conn.peer_ack_segs(3);
    let asked = watch(&mut conn, 30_000);
    assert_eq!(asked.len(), 1, "six are left without progress");
    assert_eq!(asked[0].1.dupacks, 3);
    // Old ACKs and data are no progress.
    conn.peer_ack_segs(2);
    conn.guest_gets(conn.ack(3 * conn.mss()).len(100));
    assert_eq!(watch(&mut conn, 30_000).len(), 0);
}

#[test]
fn the_fast_retransmit_counts_as_one_loss() {
    let mut conn = waiting(emitting(|_| ()), 8);
    watch(&mut conn, 15_000);
    let mss_bytes = conn.mss();
    assert_eq!((conn.flow.reductions, conn.flow.dupacks), (0, 0), "ours are not counted");
    conn.send(mss_bytes, mss_bytes);
    assert_eq!((conn.flow.reductions, u32::from(conn.flow.ca_state)), (1, sys::CA_RECOVERY));
    conn.peer_ack_segs(9);
    assert_eq!(conn.flow.reductions, 1);
}

#[test]
fn no_duplicates_after_a_timeout() {
    let mut conn = waiting(emitting(|p| p.emit_after_us = 10_000_000), 8);
    assert!(watch(&mut conn, 5_000_000).is_empty());
    assert_eq!(u32::from(conn.flow.ca_state), sys::CA_LOSS);
}

/// A guest whose window is full with `flight` segments, while cwnd is larger.
fn held_back(params: Params, flight: u32) -> Conn {
    let mut conn = waiting(params, 0);
    let mss_bytes = conn.mss();
    conn.flow.0.cc.cwnd_segs = flight;
    conn.flow.0.cc.ssthresh_segs = 2;
    conn.send(mss_bytes, mss_bytes);
    conn.flow.0.right_edge = conn.seq(2 * mss_bytes);
    let shown = conn.peer_ack(2 * mss_bytes);
    assert_eq!(conn.shown_bytes(&shown), flight * mss_bytes);
    conn.send_segs(2, 2 + flight);
    conn
}

#[test]
fn a_grown_window_is_shown() {
    let mut conn = held_back(emitting(|_| ()), 3);
    assert!(quiet(&conn.deadline()), "the window is shown already");
    conn.flow.0.cc.cwnd_segs = 7;
    let action = conn.deadline();
    assert_eq!((action.update, action.dupacks), (1, 0));
    assert_eq!(conn.shown_bytes(&action), 7 * conn.mss());
    assert_eq!(conn.flow.window_shown, action.window);
    assert_eq!(conn.flow.right_edge, conn.flow.snd_una + 7 * conn.mss());
    assert!(quiet(&conn.deadline()), "once");
    // A duplicate ACK repeats the window (law 4), and the right edge stays (law 2).
    let mss_bytes = conn.mss();
    let duplicate = conn.peer_ack(2 * mss_bytes);
    assert_eq!((duplicate.window, is_dropped(&duplicate)), (action.window, false));
    conn.flow.0.cc.cwnd_segs = 1;
    let next = conn.peer_ack(3 * mss_bytes);
    assert_eq!(conn.shown_edge(3 * mss_bytes, &next), 9 * mss_bytes);
}

#[test]
fn an_update_is_never_above_the_receivers_window() {
    let mut conn = held_back(emitting(|_| ()), 3);
    conn.flow.0.cc.cwnd_segs = 60_000;
    let action = conn.deadline();
    assert_eq!(action.update, 1);
    let said_bytes = (u32::from(PEER_WINDOW) << PEER_WSCALE).min(65535 << conn.flow.wscale_shown);
    assert_eq!(conn.shown_bytes(&action), said_bytes);
    // Nor above the cap.
    let mut conn = held_back(emitting(|p| p.window_cap_bytes = 8000), 3);
    conn.flow.0.cc.cwnd_segs = 600;
    let action = conn.deadline();
    assert_eq!((action.update, conn.shown_bytes(&action)), (1, 8000 / conn.mss() * conn.mss()));
    // The receiver offers exactly the shown window, so there is no update.
    let mut conn = waiting(emitting(|_| ()), 0);
    conn.flow.0.right_edge = conn.flow.snd_una;
    conn.send_segs(1, 3);
    conn.guest_gets(conn.ack(3 * conn.mss()).win(4));
    conn.send_segs(3, 6);
    assert!(quiet(&conn.deadline()));
}

#[test]
fn no_updates_without_reason() {
    let quiet_after = |change: &dyn Fn(&mut Conn)| {
        let mut conn = held_back(emitting(|_| ()), 3);
        conn.flow.0.cc.cwnd_segs = 7;
        change(&mut conn);
        quiet(&conn.deadline())
    };
    assert!(!quiet_after(&|_| ()));
    assert!(quiet_after(&|conn| conn.params.0.emit = 0), "only if enabled");
    assert!(quiet_after(&|conn| conn.params.0.mode = Mode::Shadow.number()), "shadow");
    assert!(quiet_after(&|conn| conn.flow.0.cc.cwnd_segs = 3), "it is no larger");
    assert!(quiet_after(&|conn| conn.flow.0.cc.cwnd_segs = 2), "it is smaller");
    assert!(quiet_after(&|conn| conn.flow.0.right_edge += conn.mss()), "the guest has room");
    assert!(
        quiet_after(&|conn| {
            conn.guest_gets(conn.ack(2 * conn.mss()).win(0));
        }),
        "never from zero: the peer sends that update"
    );
    assert!(quiet_after(&|conn| conn.flow.0.dupacks = 1), "law 4");
    assert!(quiet_after(&|conn| conn.flow.0.ca_state = sys::CA_CWR as u8), "PRR decides");
    let mut fresh = Conn::established(emitting(|_| ()), 5);
    fresh.send_segs(0, 10);
    assert!(quiet(&fresh.deadline()), "no window was shown yet");
    let mut idle = held_back(emitting(|_| ()), 3);
    idle.peer_ack_segs(5);
    idle.flow.0.cc.cwnd_segs = 50;
    assert!(quiet(&idle.deadline()), "nothing in flight: the last ACK showed the window");
}

#[test]
fn no_update_between_duplicates() {
    // A changed window would keep the guest from counting them (RFC 5681, 2).
    let mut conn = held_back(emitting(|_| ()), 6);
    conn.flow.0.cc.cwnd_segs = 9;
    conn.wait_us(AFTER_US + 1000);
    let action = conn.deadline();
    assert_eq!((action.dupacks, action.update), (3, 0));
    assert!(quiet(&conn.deadline()), "the guest may still count");
    conn.peer_ack_segs(3);
    conn.flow.0.right_edge = conn.flow.snd_nxt;
    conn.flow.0.window_shown = 1;
    assert_eq!(conn.deadline().update, 1, "not any more");
}

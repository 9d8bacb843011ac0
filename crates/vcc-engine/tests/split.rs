//! Acknowledgements in the peer's name: what is promised, and what the guest is shown of the peer's.

use crate::common::*;
use vcc_engine::{Action, Buffer, BufferPolicy, Hold, Recovery, sys};

struct Shell {
    conn: Conn,
    hold: Hold,
    buffer: Buffer,
}

impl Shell {
    fn new() -> Self {
        let conn = Conn::new(params(|p| p.act = sys::ACT_SPLIT as u8), 5);
        let buffer = Buffer::new(4 << 20, BufferPolicy::Fair);
        let mut shell = Shell { conn, hold: Hold::default(), buffer };
        shell.conn.guest_syn(linux_syn());
        let answer = linux_syn().seq(PEER_ISS).ack(shell.conn.seq(0));
        shell.gets(answer);
        shell.conn.guest_acks(0);
        assert!(!shell.judges());
        assert!(shell.hold.retains(), "split repairs");
        shell
    }

    /// Whether what is retained must be discarded.
    fn judges(&mut self) -> bool {
        let (now_us, Conn { flow, params, .. }) = (self.conn.now_us as u32, &self.conn);
        flow.repair_judge(&mut self.hold, &mut Recovery::default(), params, now_us)
    }

    fn gets(&mut self, segment: Seg) -> Action {
        let segment = segment.at_us(self.conn.now_us).0;
        let Conn { flow, params, .. } = &mut self.conn;
        let mut action = Action::default();
        flow.hold_to_guest(&mut self.hold, &self.buffer, params, &segment, &mut action);
        action
    }

    /// The guest's first `segs` segments are held.
    fn keep(&mut self, segs: u32) {
        let bytes = segs * self.conn.mss();
        let data = self.conn.data(0, bytes);
        let Conn { flow, params, .. } = &self.conn;
        flow.hold_kept(&mut self.hold, &mut self.buffer, params, &data.0, bytes);
    }

    /// After a segment of the guest, of which the shell has everything before `end` segments.
    fn promises(&mut self, from: u32, end: u32) -> bool {
        let mss_bytes = self.conn.mss();
        let segment = self.conn.data(from * mss_bytes, mss_bytes).0;
        let end = self.conn.seq(end * mss_bytes);
        let Conn { flow, params, .. } = &mut self.conn;
        flow.split_promises(&mut self.hold, &self.buffer, params, &segment, end)
    }
}

#[test]
fn a_promise_is_given_once_and_repeated_when_the_guest_repeats() {
    let mut shell = Shell::new();
    let mss_bytes = shell.conn.mss();
    shell.keep(3);
    shell.conn.send_segs(0, 1);
    assert!(shell.promises(2, 3));
    assert_eq!(shell.hold.0.promised, shell.conn.seq(3 * mss_bytes));
    assert!(shell.conn.flow.split_owes(&shell.hold));
    assert!(!shell.promises(3, 3), "nothing new");
    assert!(shell.promises(0, 3), "a retransmission");
}

/// Before the shell retained, or without room for it.
#[test]
fn nothing_is_promised_behind_what_is_not_retained() {
    let mut shell = Shell::new();
    shell.conn.send_segs(0, 2);
    shell.hold.0.kept_from = shell.conn.flow.snd_nxt;
    shell.keep(3);
    assert!(!shell.promises(2, 3));
    shell.conn.wait_us(1000);
    let ack = shell.conn.ack(2 * shell.conn.mss());
    shell.gets(ack);
    assert!(shell.promises(2, 3));
}

#[test]
fn the_peers_acks_are_absorbed_until_the_window_has_doubled() {
    let mut shell = Shell::new();
    let mss_bytes = shell.conn.mss();
    shell.keep(3);
    shell.conn.send_segs(0, 3);
    assert!(shell.promises(2, 3));
    let before = shell.conn.flow.right_edge;
    shell.conn.wait_us(1000);
    let ack = shell.conn.ack(mss_bytes);
    let action = shell.gets(ack);
    assert_eq!(u32::from(action.verdict), sys::VCC_CONSUME);
    assert_eq!(shell.conn.flow.right_edge, before, "not shown, so not noted");
    // Beside data it is shown, at what was promised.
    let data = shell.conn.ack(2 * mss_bytes).len(100);
    let action = shell.gets(data);
    assert_eq!(u32::from(action.verdict), sys::VCC_PASS);
    let shown = shell.hold.split_ack(data.0.ack);
    assert_eq!(shown, shell.conn.seq(3 * mss_bytes));
    let edge = shown.wrapping_add(shell.conn.shown_bytes(&action));
    assert!(edge.wrapping_sub(before) as i32 >= 0, "law 2");
}

/// Keep-alives and retransmissions of a guest whose peer has shut its window (RFC 9293, 3.8.6.1).
#[test]
fn what_is_held_and_not_in_flight_is_acknowledged_again() {
    let mut shell = Shell::new();
    shell.keep(3);
    assert!(shell.promises(2, 3));
    assert!(shell.promises(0, 3), "a retransmission");
}

/// What has left without being retained can be lost, and only the guest can repair it.
#[test]
fn duplicate_acks_of_what_the_guest_repairs_are_shown() {
    let mut shell = Shell::new();
    shell.buffer = Buffer::new(64 << 10, BufferPolicy::Fair);
    let mss_bytes = shell.conn.mss();
    shell.keep(3);
    shell.conn.send_segs(0, 3);
    assert!(shell.promises(2, 3));
    shell.conn.wait_us(1000);
    let ack = shell.conn.ack(3 * mss_bytes);
    shell.gets(ack);
    shell.conn.send_segs(3, 5);
    shell.hold.0.kept_from = shell.conn.flow.snd_nxt;
    shell.hold.0.held_bytes = 0;
    let before = shell.conn.flow.window_shown;
    for _ in 0..3 {
        let action = shell.gets(ack);
        assert_eq!(u32::from(action.verdict), sys::VCC_PASS);
        assert_eq!(action.window, before, "law 4, though the buffer has more room");
    }
}

/// Law 3 would have the acknowledgement show a window, which the guest would fill with small segments.
#[test]
fn without_room_nothing_is_acknowledged_until_something_has_left() {
    let mut shell = Shell::new();
    let mss_bytes = shell.conn.mss();
    // A share of 8 segments, of which one is kept back.
    shell.buffer = Buffer::new(16 * mss_bytes, BufferPolicy::Fair);
    shell.keep(8);
    shell.conn.flow.0.right_edge = shell.conn.seq(8 * mss_bytes);
    assert!(!shell.promises(7, 8));
    assert_eq!(shell.hold.0.promises, 0);
    // Two are acknowledged, and their room is free.
    shell.conn.send_segs(0, 8);
    shell.conn.wait_us(1000);
    let ack = shell.conn.ack(4 * mss_bytes);
    shell.gets(ack);
    shell.hold.left(&mut shell.buffer, 4 * mss_bytes);
    assert!(shell.promises(7, 8));
}

#[test]
fn a_promise_is_kept_when_the_treatment_changes() {
    let mut shell = Shell::new();
    shell.keep(3);
    shell.conn.send_segs(0, 3);
    assert!(shell.promises(2, 3));
    shell.conn.params.0.act = sys::ACT_WINDOW as u8;
    assert!(!shell.judges());
    let Conn { flow, params, .. } = &shell.conn;
    assert!(flow.is_holding(&shell.hold, params));
    shell.conn.wait_us(1000);
    let ack = shell.conn.ack(3 * shell.conn.mss());
    shell.gets(ack);
    assert!(shell.judges(), "what is retained is no longer needed");
    assert!(!shell.promises(2, 4));
}

//! Segments that the shell holds until the underlay's window admits them (vFlood, section 3).

use crate::common::*;
use std::collections::VecDeque;
use vcc_engine::{Action, Buffer, BufferPolicy, Hold, sys};

const BUFFER_BYTES: u32 = 4 << 20;

/// A shell in numbers: the FIFO is a list of segments.
struct Shell {
    conn: Conn,
    hold: Hold,
    buffer: Buffer,
    fifo: VecDeque<Seg>,
}

fn holding(p: &mut sys::vcc_params) {
    p.act = sys::ACT_HOLD as u8;
    p.rto_min_us = 200_000;
}

/// What a flow alone is granted of a fair buffer before it has used anything, as data.
fn first_grant_bytes(shell: &Shell) -> u32 {
    let size_bytes = shell.buffer.size_bytes();
    let share_bytes = size_bytes / 2;
    let charge_bytes = share_bytes.min((share_bytes / 2).max(128 << 10));
    let mss_bytes = u64::from(shell.conn.mss());
    let per_segment_bytes = mss_bytes + u64::from(sys::HELD_FRAME_BYTES + sys::HELD_HEADER_BYTES);
    (u64::from(charge_bytes - charge_bytes / 16) * mss_bytes / per_segment_bytes) as u32
}

impl Shell {
    fn with(buffer: Buffer, change: impl FnOnce(&mut sys::vcc_params)) -> Self {
        Self::opened(buffer, change, linux_syn(), linux_syn().ece())
    }

    fn opened(
        buffer: Buffer,
        change: impl FnOnce(&mut sys::vcc_params),
        syn: Seg,
        answer: Seg,
    ) -> Self {
        let mut shell = Self::answered(buffer, change, syn, answer);
        let least_bytes = first_grant_bytes(&shell);
        let Conn { flow, params, .. } = &mut shell.conn;
        assert!(flow.hold_opens(&shell.hold, &shell.buffer, params), "a SYN-ACK has less");
        let shown_bytes = u32::from(flow.window_shown) << flow.wscale_shown;
        let wanted_bytes = least_bytes.min(u32::from(u16::MAX) << flow.wscale_shown);
        assert!(shown_bytes >= wanted_bytes);
        shell.settle();
        shell.conn.guest_acks(0);
        shell
    }

    /// The answer to the guest's SYN has passed; the guest has not acknowledged it.
    fn answered(
        buffer: Buffer,
        change: impl FnOnce(&mut sys::vcc_params),
        syn: Seg,
        answer: Seg,
    ) -> Self {
        let treatment = |p: &mut sys::vcc_params| {
            holding(p);
            change(p);
        };
        let conn = Conn::new(params(treatment), 5);
        let mut shell = Shell { conn, hold: Hold::default(), buffer, fifo: VecDeque::new() };
        shell.conn.guest_syn(syn);
        shell.answer(answer);
        shell
    }

    fn answer(&mut self, answer: Seg) {
        self.guest_gets(answer.seq(PEER_ISS).ack(self.conn.seq(0)));
    }

    fn new() -> Self {
        Self::with(Buffer::new(BUFFER_BYTES, BufferPolicy::Fair), |_| ())
    }

    fn guest_gets(&mut self, segment: Seg) -> Action {
        let segment = segment.at_us(self.conn.now_us).0;
        let Conn { flow, params, .. } = &mut self.conn;
        let mut action = Action::default();
        flow.hold_to_guest(&mut self.hold, &self.buffer, params, &segment, &mut action);
        self.settle();
        action
    }

    fn settle(&mut self) {
        let Conn { flow, params, .. } = &self.conn;
        let now_ms = (self.conn.now_us / 1000) as u32;
        flow.hold_settle(&mut self.hold, &mut self.buffer, params, now_ms);
    }

    fn admit(&mut self, segment: Seg) -> sys::vcc_admission {
        let segment = segment.at_us(self.conn.now_us).0;
        let Conn { flow, params, .. } = &mut self.conn;
        flow.hold_admit(&mut self.hold, params, &segment)
    }

    /// The guest's segment number `number` is held.
    fn hold_seg(&mut self, number: u32) {
        let mss_bytes = self.conn.mss();
        let data = self.conn.data(number * mss_bytes, mss_bytes);
        let fate = self.admit(data);
        assert!(fate.hold && fate.pass_bytes == 0 && fate.drop_bytes == 0, "{fate:?}");
        let Conn { flow, params, .. } = &self.conn;
        flow.hold_kept(&mut self.hold, &mut self.buffer, params, &data.0, mss_bytes);
        self.settle();
        self.fifo.push_back(data);
    }

    fn hold_segs(&mut self, from: u32, to: u32) {
        (from..to).for_each(|number| self.hold_seg(number));
    }

    /// Lets go what may leave; returns how many segments that were.
    fn release(&mut self) -> u32 {
        let mut left = 0;
        while let Some(&first) = self.fifo.front() {
            let segment = first.at_us(self.conn.now_us);
            let Conn { flow, params, .. } = &self.conn;
            let bytes = flow.hold_leaves_bytes(&self.hold, params, &segment.0);
            if bytes == 0 {
                break;
            }
            assert_eq!(bytes, first.0.payload_bytes, "whole segments");
            self.fifo.pop_front();
            self.hold.left(&mut self.buffer, bytes);
            self.conn.guest_sends(first);
            left += 1;
        }
        self.settle();
        left
    }

    /// The peer acknowledges the first `segs` segments.
    fn ack_segs(&mut self, segs: u32) -> Action {
        let ack = self.conn.ack(segs * self.conn.mss());
        self.guest_gets(ack)
    }

    /// The full segments beyond its window for which the flow's part of the buffer has room.
    fn room_segs(&self) -> u32 {
        let Conn { flow, params, .. } = &self.conn;
        flow.hold_room_bytes(&self.hold, &self.buffer, params, flow.right_edge.wrapping_add(1))
            / self.conn.mss()
    }

    fn state(&self) -> u32 {
        self.hold.0.state.into()
    }

    /// The segments that the guest may have sent, by the window of an ACK.
    fn shown_segs(&self, acked: u32, action: &Action) -> u32 {
        acked + self.conn.shown_bytes(action) / self.conn.mss()
    }
}

#[test]
fn the_underlays_window_leaves_and_the_rest_is_held() {
    let mut shell = Shell::new();
    shell.hold_segs(0, 50);
    assert_eq!(shell.release(), 10, "RFC 6928");
    assert_eq!(shell.conn.flow.flight_bytes(), 10 * shell.conn.mss());
    shell.conn.wait_us(1000);
    // Slow start: two leave for each that is acknowledged.
    for acked in 1..=10 {
        shell.ack_segs(acked);
        assert_eq!(shell.release(), 2);
    }
    assert_eq!(shell.fifo.len(), 20);
    assert_eq!(shell.buffer.used_bytes(), 20 * shell.conn.mss());
}

#[test]
fn after_idle_time_the_restart_window_leaves() {
    let mut shell = Shell::new();
    shell.hold_segs(0, 30);
    shell.release();
    shell.conn.wait_us(1000);
    for acked in [10, 30] {
        shell.ack_segs(acked);
        shell.release();
    }
    assert!(shell.conn.cwnd() > 20);
    shell.conn.wait_us(3_000_000);
    shell.hold_segs(30, 60);
    assert_eq!(shell.release(), 10, "RFC 5681, 4.1");
}

/// A small RTO_min is for the shell's repairs. A guest that is off its core for tens of milliseconds
/// leaves the shell nothing to send, and that says nothing about the path.
#[test]
fn a_small_rto_min_does_not_shorten_the_idle_time() {
    for (idle_us, valid) in [(60_000, true), (300_000, false)] {
        let buffer = Buffer::new(BUFFER_BYTES, BufferPolicy::Fair);
        let mut shell = Shell::with(buffer, |p| p.rto_min_us = 1_000);
        shell.hold_segs(0, 30);
        shell.release();
        for acked in [10, 30] {
            shell.conn.wait_us(1000);
            shell.ack_segs(acked);
            shell.release();
        }
        let cwnd_segs = shell.conn.cwnd();
        assert!(cwnd_segs > 20);
        // Between two absences, the guest uses little of the window.
        shell.conn.wait_us(idle_us);
        shell.hold_segs(30, 31);
        shell.release();
        shell.conn.wait_us(1000);
        shell.ack_segs(31);
        shell.conn.wait_us(idle_us);
        shell.hold_segs(31, 90);
        assert_eq!(shell.release(), if valid { cwnd_segs } else { 10 }, "after {idle_us} us");
    }
}

#[test]
fn the_guest_is_shown_its_share_of_the_buffer() {
    let mut shell = Shell::new();
    let Conn { flow, params, .. } = &mut shell.conn;
    assert!(!flow.hold_opens(&shell.hold, &shell.buffer, params), "the guest has answered");

    shell.hold_segs(0, 20);
    shell.release();
    shell.conn.wait_us(1000);
    let action = shell.ack_segs(1);
    assert!(action.window > PEER_WINDOW, "more than the peer's");
    assert_eq!(shell.state(), sys::HOLD_ACTIVE);
}

/// Comparisons of sequence numbers end at 2 GiB (RFC 9293, 3.4).
#[test]
fn what_is_shown_ends_at_the_largest_window() {
    const GIB: u32 = 1 << 30;
    let mut shell = Shell::with(Buffer::new(GIB, BufferPolicy::Fair), |_| ());
    for offset in (0..GIB).step_by(1 << 20) {
        let data = shell.conn.data(offset, 1 << 20);
        shell.conn.guest_sends(data);
    }
    let shown_edge = shell.conn.flow.right_edge;
    let action = shell.ack_segs(0);
    let edge = shell.conn.seq(0).wrapping_add(shell.conn.shown_bytes(&action));
    assert!(action.window > 1 && edge.wrapping_sub(shown_edge) as i32 >= 0, "{action:?}");
}

/// Equations 1 to 3 of the paper, with alpha = 1: a flow alone has half the buffer.
#[test]
fn the_share_is_filled_and_no_more() {
    let mss_bytes = Shell::new().conn.mss();
    let mut shell = Shell::with(Buffer::new(100 * mss_bytes, BufferPolicy::Fair), |_| ());
    let shown = shell.conn.flow.right_edge.wrapping_sub(shell.conn.seq(0)) / mss_bytes;
    // Of 50 segments of the buffer, 15/16 are granted; they hold 41 with what a frame takes besides its data.
    assert_eq!(shown, 10 + 41, "the first window of the underlay, and the share of the buffer");
    shell.hold_segs(0, 30);
    assert_eq!(shell.release(), 10);
    shell.conn.wait_us(1000);
    shell.ack_segs(10);
    assert_eq!(shell.release(), 20);
    // The test's segments take no more than their data, which the flow has learned.
    let action = shell.ack_segs(20);
    assert_eq!(shell.shown_segs(20, &action), 30 + 20 + 46, "20 may leave at once");
    shell.hold_segs(30, 50);
    assert_eq!(shell.release(), 20);
    shell.hold_segs(50, 99);
    assert_eq!(shell.state(), sys::HOLD_ACTIVE);
    shell.hold_seg(99);
    assert_eq!(shell.state(), sys::HOLD_NO_BUFFER);
    assert_eq!((shell.hold.0.no_buffer, shell.room_segs()), (1, 0));
    // Two may leave, which is not enough to grant another one.
    let action = shell.ack_segs(21);
    assert_eq!(shell.shown_segs(21, &action), 100);
}

/// A flow with each alpha, opened one after the other at one buffer.
fn sharing(mut buffer: Buffer, alphas: &[u16]) -> Vec<Shell> {
    let open = |alpha: &u16| {
        let treatment = |p: &mut sys::vcc_params| p.buffer_alpha = *alpha;
        let mut shell = Shell::answered(buffer, treatment, linux_syn(), linux_syn().ece());
        let Conn { flow, params, .. } = &mut shell.conn;
        flow.hold_opens(&shell.hold, &shell.buffer, params);
        shell.settle();
        shell.conn.guest_acks(0);
        buffer = shell.buffer;
        shell
    };
    let mut shells: Vec<Shell> = alphas.iter().map(open).collect();
    shells.iter_mut().for_each(|shell| shell.buffer = buffer);
    shells
}

#[test]
fn what_one_flow_was_granted_no_other_one_gets() {
    let buffer = Buffer::new(100 << 10, BufferPolicy::Fair);
    let mut shells = sharing(buffer, &[1; 3]);
    let granted = [0, 1, 2].map(|at: usize| shells[at].hold.0.granted_bytes);
    // 15/16 of half of what is left, in whole segments.
    let mut left_bytes = 100 << 10;
    for granted_bytes in granted {
        let share_bytes = left_bytes / 2;
        assert!(granted_bytes <= share_bytes - share_bytes / 16, "{granted:?}");
        assert!(granted_bytes > share_bytes - share_bytes / 16 - 3000, "{granted:?}");
        left_bytes -= granted_bytes;
    }
    let buffer = shells[2].buffer;
    assert_eq!(buffer.granted_bytes(), granted.iter().sum::<u32>());
    // The first one uses its grant, and has the room for it although its share is smaller now.
    let first = &mut shells[0];
    let share_bytes = first.conn.flow.hold_share_bytes(&first.hold, &buffer, &first.conn.params);
    assert!(share_bytes < granted[0]);
    let segs = 10 + granted[0] / first.conn.mss();
    first.hold_segs(0, segs);
    first.release();
    assert_eq!(first.room_segs(), 0);
    assert!(first.buffer.used_bytes() <= granted[0] && first.buffer.used_bytes() > share_bytes);
    assert!(first.buffer.used_bytes() + first.buffer.granted_bytes() <= buffer.size_bytes());
    // The others have what they were granted.
    shells[1].buffer = shells[0].buffer;
    assert!(shells[1].room_segs() >= granted[1] / shells[1].conn.mss());
}

#[test]
fn without_a_policy_the_first_flow_is_granted_everything() {
    let shells = sharing(Buffer::new(100 << 10, BufferPolicy::None), &[1; 2]);
    let granted = [0, 1].map(|at: usize| shells[at].hold.0.granted_bytes);
    assert!(granted[0] > 92 << 10 && granted[1] < 7 << 10, "{granted:?}");
    // The underlay's window remains.
    let second = &shells[1].conn;
    assert!(second.flow.right_edge.wrapping_sub(second.seq(0)) >= 10 * second.mss());
}

#[test]
fn alpha_weighs_the_shares() {
    let shells = sharing(Buffer::new(100 << 10, BufferPolicy::Fair), &[4, 1]);
    let granted = [0, 1].map(|at: usize| shells[at].hold.0.granted_bytes >> 10);
    assert!((72..=75).contains(&granted[0]) && (10..=12).contains(&granted[1]), "{granted:?}");
}

#[test]
fn a_flow_is_granted_more_once_it_has_made_use_of_what_it_was_granted() {
    let mut shell = Shell::with(Buffer::new(1 << 20, BufferPolicy::Fair), |_| ());
    let first_bytes = shell.hold.0.granted_bytes;
    // Half of its share, of which 1/16 is kept back.
    let half_bytes = (512 << 10) / 16 * 15 / 2;
    assert!(first_bytes <= half_bytes && first_bytes > half_bytes - 3000, "{first_bytes}");
    shell.hold_segs(0, 150);
    shell.release();
    shell.conn.wait_us(1000);
    shell.ack_segs(1);
    shell.release();
    let used_bytes = shell.hold.0.held_bytes + shell.conn.flow.flight_bytes();
    let has_bytes = shell.hold.0.held_bytes + shell.hold.0.granted_bytes;
    assert!(has_bytes > used_bytes && has_bytes <= 2 * (used_bytes + shell.conn.mss()));
    // Idle, it begins anew.
    shell.hold.gives_back(&mut shell.buffer);
    assert_eq!((shell.buffer.granted_bytes(), shell.hold.0.most_bytes), (0, 0));
}

#[test]
fn a_flow_comes_back_when_its_buffer_has_drained() {
    let mss_bytes = Shell::new().conn.mss();
    let mut shell = Shell::with(Buffer::new(40 * mss_bytes, BufferPolicy::Fair), |_| ());
    shell.hold_segs(0, 30);
    assert_eq!(shell.state(), sys::HOLD_NO_BUFFER);
    shell.release();
    shell.conn.wait_us(1000);
    for acked in 1..=10 {
        shell.ack_segs(acked);
        shell.release();
    }
    assert!(shell.fifo.is_empty());
    let action = shell.ack_segs(11);
    assert_eq!(shell.state(), sys::HOLD_ACTIVE);
    assert!(shell.shown_segs(11, &action) > 30 + 17, "half the buffer beyond what it has sent");
}

#[test]
fn priorities_and_no_policy() {
    let share = |policy, rtt_us| {
        let mss_bytes = Shell::new().conn.mss();
        let mut shell = Shell::with(Buffer::new(100 * mss_bytes, policy), |_| ());
        shell.hold_segs(0, 60);
        shell.release();
        shell.conn.wait_us(rtt_us);
        // 50 are held. The second ACK comes after the RTT was measured.
        shell.ack_segs(1);
        shell.ack_segs(1);
        let action = shell.ack_segs(2);
        shell.shown_segs(2, &action)
    };
    let short_us = 300;
    let fair = share(BufferPolicy::Fair, short_us);
    let prioritized = share(BufferPolicy::Prioritized, short_us);
    assert!(prioritized > fair + 20, "{prioritized}, {fair}");
    assert_eq!(share(BufferPolicy::Prioritized, 5_000), share(BufferPolicy::Fair, 5_000));
    let none = share(BufferPolicy::None, 5_000);
    // Four leave of the 50 that are held. Of the 54 that are free then, 1/16 of all is kept back.
    assert_eq!(none, 60 + 47, "all that is free");
}

#[test]
fn a_loss_takes_the_flow_offline_until_it_is_repaired() {
    let mut shell = Shell::new();
    shell.hold_segs(0, 40);
    shell.release();
    shell.conn.wait_us(1000);
    shell.ack_segs(1);
    shell.release();
    for _ in 0..3 {
        let duplicate = shell.conn.ack(shell.conn.mss()).sack();
        shell.guest_gets(duplicate);
    }
    // The guest repairs it: what has left passes at once.
    let mss_bytes = shell.conn.mss();
    let again = shell.conn.data(mss_bytes, mss_bytes);
    let fate = shell.admit(again);
    assert_eq!((fate.pass_bytes, fate.drop_bytes, fate.hold), (mss_bytes, 0, false));
    shell.conn.guest_sends(again);
    let duplicate = shell.conn.ack(mss_bytes).sack();
    shell.guest_gets(duplicate);
    assert_eq!(shell.state(), sys::HOLD_PACKET_LOSS);
    assert_eq!(shell.hold.0.packet_loss, 1);
    while shell.state() == sys::HOLD_PACKET_LOSS {
        shell.conn.wait_us(1000);
        let left = shell.conn.flow.snd_nxt.wrapping_sub(shell.conn.seq(0)) / mss_bytes;
        shell.ack_segs(left);
        shell.release();
        assert!(left <= 40, "it comes back online");
    }
    assert_eq!(shell.state(), sys::HOLD_ACTIVE);
}

#[test]
fn a_segment_is_split_at_what_left_and_at_what_is_held() {
    let mut shell = Shell::new();
    let mss_bytes = shell.conn.mss();
    shell.hold_segs(0, 15);
    assert_eq!(shell.release(), 10);
    // Two that left, five that are held, and two new ones.
    let again = shell.conn.data(8 * mss_bytes, 9 * mss_bytes).cut(mss_bytes);
    let fate = shell.admit(again);
    assert_eq!((fate.pass_bytes, fate.drop_bytes), (2 * mss_bytes, 5 * mss_bytes));
    assert!(fate.hold && !fate.probe);
    let held = shell.conn.data(12 * mss_bytes, mss_bytes);
    let fate = shell.admit(held);
    assert_eq!((fate.pass_bytes, fate.drop_bytes, fate.hold), (0, mss_bytes, false));
    assert!(!fate.probe, "data is in flight");
    assert!(!fate.gap && shell.admit(shell.conn.data(16 * mss_bytes, mss_bytes)).gap);
    // A bare FIN behind all of it.
    let fin = shell.conn.data(15 * mss_bytes, 0).fin();
    assert!(shell.admit(fin).hold);
}

#[test]
fn what_passes_the_fifo_has_the_number_of_what_left() {
    let mut shell = Shell::new();
    let mss_bytes = shell.conn.mss();
    shell.hold_segs(0, 15);
    shell.release();
    for segment in [seg().ack(shell.conn.peer_seq(0)), seg().rst()] {
        let segment = segment.seq(shell.conn.seq(15 * mss_bytes));
        let fate = shell.admit(segment);
        assert!(!fate.hold && fate.drop_bytes == 0);
        let seq = shell.conn.flow.hold_seq(&shell.hold, &segment.0);
        assert_eq!(seq, shell.conn.flow.snd_nxt);
    }
    let keep_alive = seg().ack(shell.conn.peer_seq(0)).seq(shell.conn.seq(0).wrapping_sub(1));
    let seq = shell.conn.flow.hold_seq(&shell.hold, &keep_alive.0);
    assert_eq!(seq, keep_alive.0.seq);
}

/// Law 14.
#[test]
fn nothing_leaves_beyond_the_peers_window() {
    let mut shell = Shell::new();
    let mss_bytes = shell.conn.mss();
    shell.hold_segs(0, 40);
    shell.release();
    shell.conn.wait_us(1000);
    let scaled = |bytes: u32| (bytes >> PEER_WSCALE) as u16;
    // It shrinks its window to less than what is in flight, and then closes it.
    let shrunk = shell.conn.ack(mss_bytes).win(scaled(3 * mss_bytes));
    let action = shell.guest_gets(shrunk);
    assert_eq!(shell.release(), 0);
    assert!(shell.shown_segs(1, &action) > 40, "the guest sees the buffer");
    let closed = shell.conn.ack(10 * mss_bytes).win(0);
    shell.guest_gets(closed);
    assert_eq!(shell.release(), 0);

    // The guest's retransmission timer asks for the window, with nothing that exceeds it.
    let fate = shell.admit(shell.conn.data(10 * mss_bytes, mss_bytes));
    assert!(fate.probe && !fate.hold);
    // A window smaller than a segment, and nothing in flight.
    let small = shell.conn.ack(10 * mss_bytes).win(1);
    shell.guest_gets(small);
    let Conn { flow, params, .. } = &shell.conn;
    let first = shell.fifo[0];
    assert_eq!(flow.hold_leaves_bytes(&shell.hold, params, &first.0), 1 << PEER_WSCALE);
}

#[test]
fn a_super_segment_leaves_in_bursts_of_half_a_window() {
    let mut shell = Shell::new();
    let mss_bytes = shell.conn.mss();
    let large = shell.conn.data(0, 40 * mss_bytes).cut(mss_bytes);
    assert!(shell.admit(large).hold);
    let Conn { flow, params, .. } = &mut shell.conn;
    let leaves_bytes = flow.hold_leaves_bytes(&shell.hold, params, &large.0);
    assert_eq!(leaves_bytes, 5 * mss_bytes);
}

#[test]
fn a_timeout_leaves_one_segment() {
    let mut shell = Shell::new();
    shell.hold_segs(0, 40);
    shell.release();
    shell.conn.wait_us(1_000_000);
    shell.conn.deadline();
    assert_eq!(u32::from(shell.conn.flow.ca_state), sys::CA_LOSS);
    assert_eq!(shell.release(), 0);
    shell.ack_segs(10);
    assert_eq!(shell.release(), shell.conn.cwnd());
    assert!(shell.conn.cwnd() <= 2);
}

/// A change of the treatment finds the guest with an edge beyond the peer's window.
#[test]
fn a_flow_is_held_until_the_peers_window_reaches_what_the_guest_was_shown() {
    let buffer_bytes = 200 * Shell::new().conn.mss();
    let mut shell = Shell::with(Buffer::new(buffer_bytes, BufferPolicy::Fair), |_| ());
    let mss_bytes = shell.conn.mss();
    let peers = ((50 * mss_bytes) >> PEER_WSCALE) as u16;
    let acked = |shell: &mut Shell, segs: u32| {
        let edge = shell.conn.flow.right_edge;
        let ack = shell.conn.ack(segs * mss_bytes).win(peers);
        let action = shell.guest_gets(ack);
        shell.release();
        let shown = shell.conn.seq(shell.conn.shown_edge(segs * mss_bytes, &action));
        assert!(shown.wrapping_sub(edge) as i32 >= 0, "law 2");
        let Conn { flow, params, .. } = &shell.conn;
        flow.is_holding(&shell.hold, params)
    };
    shell.hold_segs(0, 60);
    shell.release();
    shell.conn.wait_us(1000);
    assert!(acked(&mut shell, 1));
    shell.conn.params.0.act = sys::ACT_WINDOW as u8;
    let shown_segs = shell.conn.flow.right_edge.wrapping_sub(shell.conn.seq(0)) / mss_bytes;
    assert!(shown_segs > 60);
    let mut segs = 1;
    while acked(&mut shell, segs) {
        segs += 1;
        // The guest may send up to the edge that it was shown.
        let next = (shell.conn.flow.snd_nxt.wrapping_sub(shell.conn.seq(0))) / mss_bytes;
        let edge = shell.conn.flow.right_edge.wrapping_sub(shell.conn.seq(0)) / mss_bytes;
        if shell.fifo.is_empty() && next < edge {
            shell.hold_seg(next);
            shell.release();
        }
    }
    assert_eq!(segs, shown_segs - 49, "the peer's 49.5 reach the edge");
    assert!(shell.fifo.is_empty());
}

/// A guest with ECN, which another policy leaves alone.
#[test]
fn what_is_held_of_a_flow_that_is_left_alone_leaves_by_the_peers_window() {
    let overriding = |p: &mut sys::vcc_params| p.guest_ecn = sys::GUEST_ECN_OVERRIDE as u8;
    let buffer = Buffer::new(BUFFER_BYTES, BufferPolicy::Fair);
    let mut shell = Shell::opened(buffer, overriding, linux_syn().asking_ecn(), linux_syn().ece());
    shell.hold_segs(0, 60);
    assert_eq!(shell.release(), 10);
    shell.conn.wait_us(1000);
    let edge = shell.conn.flow.right_edge;
    let mut leaving = shell.conn.params;
    leaving.0.guest_ecn = sys::GUEST_ECN_LEAVE as u8;
    shell.conn.flow.judge_anew(&leaving);
    shell.conn.params = leaving;
    assert!(shell.conn.flow.has(sys::FLOW_LEFT_ALONE));
    let mss_bytes = shell.conn.mss();
    let peers = ((20 * mss_bytes) >> PEER_WSCALE) as u16;
    for acked in (10..=60).step_by(10) {
        let action = shell.guest_gets(shell.conn.ack(acked * mss_bytes).win(peers));
        let shown = shell.conn.seq(shell.conn.shown_edge(acked * mss_bytes, &action));
        assert!(shown.wrapping_sub(edge) as i32 >= 0, "law 2");
        shell.release();
    }
    assert!(shell.fifo.is_empty(), "{} are stuck", shell.fifo.len());
}

/// The guest discards the first answer, whose ECE was lost on its way: by the second, its ECN is its
/// own.
#[test]
fn a_flow_that_is_left_alone_by_a_second_answer_is_not_held() {
    let buffer = Buffer::new(BUFFER_BYTES, BufferPolicy::Fair);
    let mut shell = Shell::answered(buffer, |_| (), linux_syn().asking_ecn(), linux_syn());
    let Conn { flow, params, .. } = &mut shell.conn;
    assert!(flow.hold_opens(&shell.hold, &shell.buffer, params));
    shell.answer(linux_syn().ece());
    assert!(shell.conn.flow.has(sys::FLOW_LEFT_ALONE));
    shell.conn.guest_acks(0);
    let Conn { flow, params, .. } = &shell.conn;
    assert!(!flow.is_holding(&shell.hold, params));
}

#[test]
fn in_other_modes_nothing_is_held() {
    for mode in [sys::MODE_SHADOW, sys::MODE_IGNORE] {
        let mut conn = Conn::established(params(|_| ()), 5);
        conn.params.0.mode = mode as u8;
        conn.params.0.act = sys::ACT_HOLD as u8;
        let (mut hold, buffer) = (Hold::default(), Buffer::new(BUFFER_BYTES, BufferPolicy::Fair));
        let ack = conn.ack(0).at_us(conn.now_us).0;
        let mut action = Action::default();
        conn.flow.hold_to_guest(&mut hold, &buffer, &conn.params, &ack, &mut action);
        assert!(!conn.flow.is_holding(&hold, &conn.params));
    }
}

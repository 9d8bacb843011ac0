//! Losses that the shell repairs: RACK-TLP (RFC 8985), the retransmission timer (RFC 6298), and the
//! windows that a retransmission needs.

use crate::common::*;
use vcc_engine::{Action, Buffer, BufferPolicy, Hold, Recovery, RepairTimer, Retained, sys};

/// A shell in numbers: the scoreboard is a list of facts.
pub struct Shell {
    pub conn: Conn,
    pub hold: Hold,
    pub recovery: Recovery,
    pub sent: Vec<Retained>,
}

pub const RTT_US: u64 = 1000;

impl Shell {
    fn new(answer: Seg, iss: u32) -> Self {
        let repairing = params(|p| {
            p.act = sys::ACT_HOLD as u8;
            p.retransmit = 1;
        });
        let mut conn = Conn::new(repairing, iss);
        let mut hold = Hold::default();
        conn.guest_syn(linux_syn());
        let syn_ack = answer.seq(PEER_ISS).ack(conn.seq(0)).at_us(conn.now_us);
        let buffer = Buffer::new(4 << 20, BufferPolicy::Fair);
        let mut action = Action::default();
        conn.flow.hold_to_guest(&mut hold, &buffer, &conn.params, &syn_ack.0, &mut action);
        conn.guest_acks(0);
        let mut recovery = Recovery::default();
        assert!(!conn.flow.repair_judge(
            &mut hold,
            &mut recovery,
            &conn.params,
            conn.now_us as u32
        ));
        assert!(hold.retains());
        Shell { conn, hold, recovery, sent: Vec::new() }
    }

    pub fn now_us(&self) -> u32 {
        self.conn.now_us as u32
    }

    fn send(&mut self) {
        let (seq, mss_bytes) = (self.conn.flow.snd_nxt, self.conn.mss());
        let end = seq.wrapping_add(mss_bytes);
        let facts = Retained { seq, end, sent_us: self.now_us(), ..Default::default() };
        self.conn.flow.repair_sent(&mut self.hold, &mut self.recovery, &facts);
        self.sent.push(facts);
        self.conn.guest_sends(seg().seq(seq).ack(PEER_ISS.wrapping_add(1)).len(mss_bytes));
    }

    /// The peer acknowledges the first `segs` segments.
    fn ack(&mut self, segs: usize, change: fn(Seg) -> Seg) {
        let before = self.conn.flow;
        let ack = change(self.conn.ack(segs as u32 * self.conn.mss())).at_us(self.conn.now_us).0;
        let buffer = Buffer::new(4 << 20, BufferPolicy::Fair);
        let (now_us, Conn { flow, params, .. }) = (self.now_us(), &mut self.conn);
        flow.hold_to_guest(&mut self.hold, &buffer, params, &ack, &mut Action::default());
        let acked_before = segs.min(self.sent.len());
        for facts in &self.sent[..acked_before] {
            if facts.end.wrapping_sub(before.snd_una) as i32 > 0 {
                self.recovery.acked(facts, now_us);
            }
        }
        flow.repair_on_ack(
            &mut self.hold,
            &mut self.recovery,
            &ack,
            before.snd_una,
            before.ca_state,
        );
    }

    fn sacked(&mut self, segs: std::ops::Range<usize>) {
        let now_us = self.now_us();
        for facts in &mut self.sent[segs] {
            self.recovery.sacked(facts, now_us);
        }
    }

    fn lost_in_us(&self, at: usize) -> Option<u32> {
        self.conn.flow.repair_lost_in_us(&self.recovery, &self.sent[at], self.now_us())
    }

    pub fn leaves_bytes(&self, at: usize) -> u32 {
        let Conn { flow, params, .. } = &self.conn;
        let unit_bytes = self.conn.mss();
        flow.repair_leaves_bytes(&self.hold, &self.recovery, params, &self.sent[at], unit_bytes)
    }

    pub fn due(&self) -> Option<(u32, RepairTimer)> {
        let Conn { flow, params, .. } = &self.conn;
        flow.repair_due(&self.hold, &self.recovery, params, self.now_us(), false)
    }

    /// The timer that runs while something is held.
    fn due_waiting(&self) -> Option<RepairTimer> {
        let Conn { flow, params, .. } = &self.conn;
        let due = flow.repair_due(&self.hold, &self.recovery, params, self.now_us(), true);
        due.map(|(_, timer)| timer)
    }

    pub fn resend(&mut self, at: usize) {
        let (seq, mss_bytes, now_us) = (self.sent[at].seq, self.conn.mss(), self.now_us());
        let before = self.conn.flow.ca_state;
        self.conn.guest_sends(seg().seq(seq).ack(PEER_ISS.wrapping_add(1)).len(mss_bytes));
        let Conn { flow, .. } = &self.conn;
        flow.repair_resent(&mut self.hold, &mut self.recovery, &mut self.sent[at], now_us, before);
    }
}

/// Ten in flight, after an RTT sample.
pub fn flight(answer: Seg) -> Shell {
    flight_from(answer, 5)
}

fn flight_from(answer: Seg, iss: u32) -> Shell {
    let mut shell = Shell::new(answer, iss);
    shell.send();
    shell.conn.wait_us(RTT_US);
    shell.ack(1, |ack| ack);
    (0..10).for_each(|_| shell.send());
    assert_eq!(shell.recovery.0.pipe_bytes, 10 * shell.conn.mss());
    shell
}

#[test]
fn a_segment_is_lost_a_reordering_window_after_one_sent_later_was_delivered() {
    let mut shell = flight(linux_syn());
    shell.conn.wait_us(RTT_US);
    assert_eq!(shell.lost_in_us(1), None);
    shell.sacked(2..4);
    assert_eq!(shell.lost_in_us(1), Some(RTT_US as u32 / 4), "RFC 8985, 6.2, step 4");
    assert_eq!(shell.lost_in_us(4), None, "sent after what was delivered");
    // Three segments are DupThresh: no reordering has been seen.
    shell.sacked(4..5);
    assert_eq!(shell.lost_in_us(1), Some(0));
}

#[test]
fn reordering_that_was_seen_keeps_the_window() {
    [5, 0x7fff_f000, 0x8000_0005, 0xffff_f000].into_iter().for_each(reordering_from);
}

fn reordering_from(iss: u32) {
    let mut shell = flight_from(linux_syn(), iss);
    shell.conn.wait_us(RTT_US);
    shell.sacked(5..9);
    shell.sacked(2..3);
    assert_ne!(shell.recovery.0.reordered, 0);
    assert_eq!(shell.lost_in_us(1), Some(RTT_US as u32 / 4));
    // A spurious retransmission widens it, once a round trip.
    for _ in 0..3 {
        shell.ack(1, |ack| {
            let mut dsack = ack.sack();
            dsack.0.dsack_bytes = 1;
            dsack.0.dsack_seq = dsack.0.ack.wrapping_sub(1);
            dsack
        });
    }
    assert_eq!(shell.lost_in_us(1), Some(2 * RTT_US as u32 / 4));
}

#[test]
fn a_retransmission_that_was_acknowledged_too_early_is_no_evidence() {
    let mut shell = flight(linux_syn());
    shell.conn.wait_us(RTT_US);
    shell.sacked(2..5);
    let now_us = shell.now_us();
    shell.recovery.lost(&mut shell.sent[1]);
    shell.resend(1);
    shell.conn.wait_us(10);
    shell.ack(2, |ack| ack);
    assert_ne!(shell.recovery.0.rack_sent_us, now_us, "RFC 8985, 6.2, step 2");
}

#[test]
fn without_sack_the_head_is_lost_in_recovery() {
    let mut shell = flight(linux_syn().without(sys::OPT_SACK_PERMITTED));
    shell.conn.wait_us(RTT_US);
    for duplicates in 1..=3 {
        shell.ack(1, |ack| ack);
        assert_eq!(shell.lost_in_us(1).is_some(), duplicates == 3, "RFC 6582");
    }
    assert_eq!((shell.lost_in_us(1), shell.lost_in_us(2)), (Some(0), None));
    shell.recovery.lost(&mut shell.sent[1]);
    shell.resend(1);
    assert_eq!(shell.lost_in_us(1), None, "the timer's");
    shell.conn.wait_us(RTT_US);
    shell.ack(3, |ack| ack);
    assert_eq!(shell.lost_in_us(3), Some(0), "a partial ACK");
}

/// A reduction's grant is for retransmissions and for new data.
#[test]
fn one_reduction_and_what_it_grants() {
    let mut shell = flight(linux_syn());
    shell.conn.wait_us(RTT_US);
    shell.sacked(3..11);
    shell.ack(1, Seg::sack);
    for at in [1, 2] {
        shell.recovery.lost(&mut shell.sent[at]);
    }
    assert_eq!(shell.leaves_bytes(1), shell.conn.mss(), "the fast retransmission");
    shell.resend(1);
    assert_eq!(u32::from(shell.conn.flow.ca_state), sys::CA_RECOVERY);
    shell.conn.wait_us(10);
    assert_eq!(shell.leaves_bytes(2), 0, "PRR grants at the next ACK");
    shell.conn.wait_us(RTT_US);
    shell.ack(2, Seg::sack);
    assert!(shell.leaves_bytes(2) > 0);
    shell.resend(2);
    assert_eq!(shell.conn.flow.reductions, 1, "law 6");
}

/// Law 14.
#[test]
fn nothing_is_sent_again_beyond_the_peers_window() {
    let mut shell = flight(linux_syn());
    shell.ack(1, |ack| ack.win(0));
    shell.recovery.lost(&mut shell.sent[1]);
    assert_eq!(shell.leaves_bytes(1), 0);
    shell.ack(1, |ack| ack);
    assert_eq!(shell.leaves_bytes(1), shell.conn.mss());
}

/// The clock has wrapped since the last segment before was delivered.
#[test]
fn what_was_delivered_long_ago_is_no_evidence() {
    let mut shell = flight(linux_syn());
    shell.conn.wait_us(RTT_US);
    shell.ack(11, |ack| ack);
    shell.conn.wait_us(40 * 60 * 1_000_000);
    shell.send();
    shell.conn.wait_us(RTT_US / 2);
    assert_eq!(shell.lost_in_us(11), None);
}

/// All in flight has been reported, so nothing is in the network; the window is open, and the peer
/// may have reneged (RFC 2018, 8).
#[test]
fn the_persist_timer_is_for_a_shut_window() {
    let mut shell = flight(linux_syn());
    shell.conn.flow.repair_probed(&mut shell.recovery);
    shell.sacked(1..11);
    assert_eq!(shell.due_waiting(), Some(RepairTimer::Timeout));
    shell.ack(1, |ack| ack.win(0));
    assert_eq!(shell.due_waiting(), Some(RepairTimer::Persist));
    shell.ack(11, |ack| ack);
    assert_eq!(shell.due_waiting(), Some(RepairTimer::Persist), "nothing is in flight");
}

/// Its timers start when it does.
#[test]
fn what_is_not_retained_is_timed_as_well() {
    let mut shell = flight(linux_syn());
    shell.conn.wait_us(RTT_US);
    shell.ack(11, |ack| ack);
    shell.conn.wait_us(10_000_000);
    let end = shell.conn.flow.snd_nxt.wrapping_add(shell.conn.mss());
    let now_us = shell.now_us();
    shell.conn.flow.repair_passes(&mut shell.hold, &mut shell.recovery, end, now_us);
    shell.conn.send_segs(11, 12);
    assert!(shell.due().is_some_and(|(in_us, _)| in_us > RTT_US as u32), "{:?}", shell.due());
}

#[test]
fn a_probe_then_timeouts_that_back_off_to_a_minute() {
    let mut shell = flight(linux_syn());
    assert_eq!(shell.due(), Some((2 * RTT_US as u32, RepairTimer::Probe)), "RFC 8985, 7.2");
    shell.conn.flow.repair_probed(&mut shell.recovery);
    let mut waits_us = Vec::new();
    for _ in 0..12 {
        let Some((in_us, RepairTimer::Timeout)) = shell.due() else { panic!("a timeout") };
        waits_us.push(in_us);
        shell.conn.wait_us(in_us.into());
        let now_us = shell.now_us();
        shell.conn.flow.repair_timeout(&mut shell.recovery, now_us);
        for facts in &mut shell.sent[1..] {
            shell.recovery.forget_sack(facts);
        }
        assert_eq!(shell.recovery.0.pipe_bytes, 0);
        assert_eq!(shell.leaves_bytes(1), shell.conn.mss());
        shell.resend(1);
        assert_eq!(shell.leaves_bytes(2), 0, "a window of one segment");
    }
    let first_us = waits_us[0];
    assert!((200_000..210_000).contains(&first_us), "rto_min: {first_us}");
    for (doublings, &wait_us) in waits_us.iter().enumerate() {
        let expected_us = (u64::from(first_us) << doublings).min(sys::RTO_MAX_US.into());
        assert_eq!(u64::from(wait_us), expected_us);
    }
    assert_eq!(shell.conn.flow.reductions, 1, "law 6");
}

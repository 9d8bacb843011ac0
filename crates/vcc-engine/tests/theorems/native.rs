use super::guest::{Sent, Sequence};
use super::reno::{MIN_SSTHRESH, Window};

/// News of marks in one ACK, in segments.
#[derive(Clone, Copy, Default, Debug)]
pub struct Marks {
    pub reported: u64,
    pub marked: u64,
    /// The ACK reports congestion, even if it acknowledges nothing.
    pub has_congestion: bool,
}

/// DCTCP's alpha (RFC 8257, 3.3), in 1/1024 and with Linux's rounding.
#[derive(Clone, Debug)]
pub struct Alpha {
    pub value: u64,
    reported: u64,
    marked: u64,
    window_end: Option<u64>,
}

impl Alpha {
    fn new() -> Self {
        Alpha { value: 1024, reported: 0, marked: 0, window_end: None }
    }

    fn on_marks(&mut self, marks: Marks, at: Sequence) {
        self.reported += marks.reported;
        self.marked += marks.marked.min(marks.reported);
        if self.reported == 0 || self.window_end.is_some_and(|end| at.una < end) {
            return;
        }
        let decay = self.value / 16;
        self.value -= if decay == 0 { self.value } else { decay };
        self.value = (self.value + self.marked * 64 / self.reported).min(1024);
        (self.reported, self.marked, self.window_end) = (0, 0, Some(at.nxt));
    }

    /// cwnd * alpha / 2, rounded down; to nearest for the smallest windows.
    fn cut(&self, cwnd: u64) -> u64 {
        (cwnd * self.value + if cwnd <= 2 { 1024 } else { 0 }) / 2048
    }
}

/// As Linux names them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    Open,
    /// Reduced for a mark.
    Cwr,
    Recovery,
    /// After a timeout.
    Loss,
}

/// A sender of its own that has negotiated ECN: NewReno (RFC 3168, 6.1.2; RFC 6582), or DCTCP if
/// `alpha` is there. Where the papers leave a choice, it is Linux's: one reduction a window of data
/// for any reason, a window that is not used does not grow and shrinks after an RTO of that.
#[derive(Clone, Debug)]
pub struct Native {
    pub window: Window,
    pub alpha: Option<Alpha>,
    pub at: Sequence,
    pub state: State,
    pub recover: u64,
    pub usage: Usage,
    /// The sender was idle, and its reduction only awaits its end.
    is_restarted: bool,
    /// A loss was answered by the reduction for a mark.
    pub answered: bool,
    head_due: bool,
    dupacks: u64,
    window_field: u16,
    /// Segments sent since a timeout, and those of them that were acknowledged: only these make the
    /// window grow (RFC 3465, 2.3).
    sent_since: u64,
    acked_since: u64,
    initial_segs: u64,
}

/// How much of the window is used (RFC 7661), as Linux's `tcp_cwnd_validate` has it.
#[derive(Clone, Default, Debug)]
pub struct Usage {
    is_limited: bool,
    flight_max: u64,
    round_end: u64,
    used_max: u64,
    sent_us: u64,
    validated_us: u64,
    /// Reductions of a window that was not used.
    pub unused: u64,
    /// Credit of the larger window from before is left, as `snd_cwnd_cnt` is in Linux.
    old_credit: bool,
}

impl Native {
    /// The SYN-ACK's window field was `window_field`.
    pub fn new(initial_segs: u64, dctcp: bool, window_field: u16) -> Self {
        Native {
            window: Window::new(initial_segs),
            alpha: dctcp.then(Alpha::new),
            at: Sequence::default(),
            state: State::Open,
            recover: 0,
            usage: Usage::default(),
            is_restarted: false,
            answered: false,
            head_due: false,
            dupacks: 0,
            window_field,
            sent_since: 0,
            acked_since: 0,
            initial_segs,
        }
    }

    fn is_window_limited(&self) -> bool {
        let Window { cwnd, ssthresh, .. } = self.window;
        self.usage.is_limited || (cwnd < ssthresh && cwnd < 2 * self.usage.flight_max)
    }

    fn reduce(&mut self, state: State) {
        let cwnd = self.window.cwnd;
        self.window.ssthresh = match &self.alpha {
            None => (cwnd / 2).max(MIN_SSTHRESH),
            Some(alpha) if state == State::Cwr => (cwnd - alpha.cut(cwnd)).max(1),
            Some(_) => (cwnd / 2).max(1),
        };
        self.window.cwnd = cwnd.min(self.window.ssthresh);
        self.window.credit = 0;
        (self.state, self.recover) = (state, self.at.nxt);
        self.is_restarted = false;
    }

    /// An ACK of everything before segment `ack`. Returns whether it is a duplicate.
    pub fn on_ack(&mut self, ack: u64, field: u16, marks: Marks, now_us: u64, rto_us: u64) -> bool {
        let before = self.state;
        let acked = ack - self.at.una;
        let mut uncounted = acked;
        let duplicate = acked == 0 && self.at.flight() > 0 && field == self.window_field;
        self.window_field = field;
        if acked > 0 {
            self.at.acked(ack);
            if self.dupacks > 0 {
                // Duplicates have counted what left the network beyond the hole.
                uncounted = acked.saturating_sub(self.dupacks).max(1);
                let left = self.dupacks.saturating_sub(acked - 1);
                self.dupacks = if before == State::Recovery { left } else { 0 };
            }
        } else if duplicate {
            self.dupacks += 1;
        }
        self.end_reduction(now_us);
        let was_limited = self.is_window_limited();
        if let Some(alpha) = &mut self.alpha {
            alpha.on_marks(marks, self.at);
        }
        if marks.has_congestion && self.state == State::Open {
            self.reduce(State::Cwr);
        }
        if self.dupacks >= 3 {
            self.recover_from_loss();
        }
        if acked > 0 && self.state == State::Recovery && self.is_recovering() {
            self.head_due = true;
        }
        if acked > 0 && matches!(self.state, State::Open | State::Loss) {
            let counted = match before {
                State::Open => acked,
                State::Loss => acked.min(self.sent_since.saturating_sub(self.acked_since)),
                State::Cwr | State::Recovery => acked.min(uncounted),
            };
            self.acked_since += counted;
            if was_limited {
                self.window.grow(counted);
            }
        }
        if self.at.flight() >= self.window.cwnd {
            self.use_window(now_us, rto_us);
        }
        duplicate
    }

    /// Data beyond `recover` is acknowledged: strictly beyond, or stale ECE would count again.
    fn end_reduction(&mut self, now_us: u64) {
        if self.state == State::Open || self.at.una <= self.recover {
            return;
        }
        if self.state != State::Loss && !self.is_restarted {
            self.window.cwnd = self.window.ssthresh;
            self.usage.validated_us = now_us;
        }
        self.window.credit = 0;
        self.state = State::Open;
        self.dupacks = 0;
    }

    /// The third duplicate ACK. A reduction for a mark answers it too (RFC 8257, 3.5).
    fn recover_from_loss(&mut self) {
        match self.state {
            State::Open => self.reduce(State::Recovery),
            // What is lost was sent after the mark was answered.
            State::Cwr if self.is_restarted => self.reduce(State::Recovery),
            State::Cwr => {
                (self.state, self.recover) = (State::Recovery, self.at.nxt);
                self.answered = true;
            }
            State::Recovery | State::Loss => return,
        }
        self.head_due = true;
    }

    /// Is the loss not repaired yet? From the full ACK on, its reduction only waits for its end.
    pub fn is_recovering(&self) -> bool {
        self.state == State::Recovery && self.at.una < self.recover
    }

    /// The window, inflated by what duplicates report during a recovery (RFC 6582, 3.2).
    pub fn admits(&self) -> u64 {
        self.window.cwnd + if self.is_recovering() { self.left() } else { 0 }
    }

    /// What a guest is shown of it: after the full ACK, too, what duplicates reported.
    pub fn shows(&self) -> u64 {
        self.window.cwnd + if self.state == State::Recovery { self.left() } else { 0 }
    }

    fn left(&self) -> u64 {
        self.dupacks.min(self.at.flight())
    }

    pub fn on_timeout(&mut self, now_us: u64) {
        if self.state == State::Open || self.at.una >= self.recover {
            self.window.ssthresh = (self.window.cwnd / 2).max(MIN_SSTHRESH);
        } else if self.state == State::Cwr {
            self.answered = true;
        }
        self.window.collapse();
        (self.state, self.recover) = (State::Loss, self.at.nxt);
        (self.dupacks, self.sent_since, self.acked_since) = (0, 0, 0);
        (self.head_due, self.is_restarted) = (false, false);
        self.at.resend = self.at.una;
        self.usage.validated_us = now_us;
    }

    pub fn on_idle(&mut self, now_us: u64) {
        self.window.restart(self.initial_segs);
        // The window of data that was reduced is gone. Duplicates of its last segment are stale (RFC
        // 6582, 3.2), like its ECE.
        if self.state == State::Recovery {
            self.state = State::Loss;
        }
        self.is_restarted = self.state == State::Cwr;
        (self.dupacks, self.sent_since, self.acked_since) = (0, 0, 0);
        (self.usage.used_max, self.usage.validated_us) = (0, now_us);
    }

    /// What it would send now to a peer that takes `offered` segments.
    pub fn would_send(&mut self, written: u64, offered: u64) -> Sent {
        let head = std::mem::take(&mut self.head_due);
        self.at.due(self.admits().min(offered), written, head)
    }

    /// It has sent this much, or its application had no more for it.
    pub fn sends(&mut self, sent: &Sent, now_us: u64, rto_us: u64) {
        self.sent_since += (sent.again.len() + sent.new.len()) as u64;
        let again = Sent { again: sent.again.clone(), new: Vec::new() };
        self.at.sent(&again);
        for &segment in &sent.new {
            self.at.sent(&Sent { again: Vec::new(), new: vec![segment] });
            self.use_window(now_us, rto_us);
        }
    }

    fn use_window(&mut self, now_us: u64, rto_us: u64) {
        const BURST_US: u64 = 1000;
        if now_us - self.usage.sent_us >= BURST_US {
            self.use_in_part(rto_us);
        }
        let flight = self.at.flight();
        let limited = flight >= self.window.cwnd;
        let usage = &mut self.usage;
        let more = !usage.is_limited && flight > usage.flight_max;
        if self.at.una >= usage.round_end || limited || more {
            (usage.is_limited, usage.flight_max, usage.round_end) = (limited, flight, self.at.nxt);
        }
        usage.sent_us = now_us;
        usage.used_max = usage.used_max.max(flight);
        if self.is_window_limited() {
            (self.usage.used_max, self.usage.validated_us) = (0, now_us);
        }
    }

    /// After an RTO of partial use, the window drops halfway to its use. Called before each ACK.
    pub fn use_in_part(&mut self, rto_us: u64) {
        let unused_us = self.usage.sent_us.saturating_sub(self.usage.validated_us);
        if self.is_window_limited() || unused_us < rto_us {
            return;
        }
        let used = self.usage.used_max.max(self.initial_segs);
        (self.usage.used_max, self.usage.validated_us) = (0, self.usage.sent_us);
        let Window { cwnd, ssthresh, .. } = self.window;
        if self.state != State::Open || used >= cwnd {
            return;
        }
        self.window.ssthresh = ssthresh.max(cwnd / 2 + cwnd / 4);
        self.window.cwnd = (cwnd + used) / 2;
        self.usage.unused += 1;
        self.usage.old_credit = true;
    }

    /// Is there credit of a larger window that was not used?
    pub fn has_old_credit(&mut self) -> bool {
        self.usage.old_credit &= self.window.credit > 0;
        self.usage.old_credit
    }
}

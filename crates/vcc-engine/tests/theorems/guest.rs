use super::reno::{MIN_SSTHRESH, Window};

/// What a sender transmits at one event, by the numbers of segments.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Sent {
    pub again: Vec<u64>,
    pub new: Vec<u64>,
}

/// Numbers of segments that every sender keeps. `resend` is below `nxt` after a timeout, while what
/// was in flight is sent once more.
#[derive(Clone, Copy, Default, Debug)]
pub struct Sequence {
    pub una: u64,
    pub nxt: u64,
    pub resend: u64,
}

impl Sequence {
    pub fn flight(&self) -> u64 {
        self.nxt - self.una
    }

    pub fn acked(&mut self, ack: u64) {
        self.una = ack;
        self.resend = self.resend.max(ack);
    }

    /// What a window of `segs` admits of `written` segments, after a fast retransmission of the
    /// first, if that is due.
    pub fn due(&self, segs: u64, written: u64, head: bool) -> Sent {
        let edge = self.una + segs;
        let mut again: Vec<u64> = (self.resend..edge.min(self.nxt)).collect();
        if head {
            again.insert(0, self.una);
        }
        let caught_up = edge.min(self.nxt) >= self.nxt || self.resend == self.nxt;
        let new = if caught_up { (self.nxt..edge.min(written)).collect() } else { Vec::new() };
        Sent { again, new }
    }

    pub fn sent(&mut self, sent: &Sent) {
        if let Some(last) = sent.again.last() {
            self.resend = self.resend.max(last + 1);
        }
        if let Some(last) = sent.new.last() {
            (self.nxt, self.resend) = (last + 1, last + 1);
        }
    }
}

/// What a loss halves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Halves {
    /// cwnd, as Linux does.
    Window,
    /// The flight (RFC 5681, equation 4; vCC, equations 6 and 10).
    Flight,
}

/// The paper's guest: NewReno without ECN and without SACK (vCC, A.2 and A.5). Where the paper says
/// nothing, it does as Linux: once it has sent a segment again, a timeout leaves ssthresh alone (RFC
/// 5681, 3.1); an ACK beyond a recovery's end counts like any other; after a timeout, it sends all
/// that was in flight again.
#[derive(Clone, Debug)]
pub struct Guest {
    pub window: Window,
    pub at: Sequence,
    pub in_recovery: bool,
    /// One past the highest segment when the last recovery or timeout began.
    pub recover: Option<u64>,
    head_due: bool,
    dupacks: u64,
    /// The window field of the last ACK, in bytes.
    shown_bytes: u64,
    halves: Halves,
    mss_bytes: u64,
    initial_segs: u64,
}

impl Guest {
    /// The SYN-ACK showed a window of `shown_bytes`.
    pub fn new(initial_segs: u64, mss_bytes: u64, shown_bytes: u64, halves: Halves) -> Self {
        Guest {
            window: Window::new(initial_segs),
            at: Sequence::default(),
            in_recovery: false,
            recover: None,
            head_due: false,
            dupacks: 0,
            shown_bytes,
            halves,
            mss_bytes,
            initial_segs,
        }
    }

    fn halve(&mut self) {
        let lost = match self.halves {
            Halves::Window => self.window.cwnd,
            Halves::Flight => self.at.flight(),
        };
        self.window.ssthresh = (lost / 2).max(MIN_SSTHRESH);
        self.window.credit = 0;
    }

    /// An ACK of everything before segment `ack`, with a window of `shown_bytes`.
    pub fn on_ack(&mut self, ack: u64, shown_bytes: u64) {
        if ack > self.at.una {
            let acked = ack - self.at.una;
            // Duplicates have counted what left the network beyond the hole.
            let uncounted = match self.dupacks {
                0 => acked,
                dupacks => acked.saturating_sub(dupacks).max(1),
            };
            self.at.acked(ack);
            if !self.in_recovery {
                self.window.grow(acked);
                self.dupacks = 0;
            } else if Some(ack) >= self.recover {
                self.in_recovery = false;
                self.window.cwnd = self.window.ssthresh;
                if Some(ack) > self.recover {
                    self.window.grow(uncounted);
                }
                self.dupacks = 0;
            } else {
                self.window.cwnd += 1;
                self.head_due = true;
                self.dupacks = self.dupacks.saturating_sub(acked - 1);
            }
        } else if ack == self.at.una && self.at.flight() > 0 && shown_bytes == self.shown_bytes {
            self.on_duplicate();
        }
        self.shown_bytes = shown_bytes;
    }

    /// RFC 5681, 2 and 3.2; RFC 6582, 3.2.
    fn on_duplicate(&mut self) {
        self.dupacks += 1;
        if self.in_recovery {
            self.window.cwnd += 1;
        } else if self.dupacks == 3 && Some(self.at.una) > self.recover {
            self.halve();
            self.window.cwnd = self.window.ssthresh + 3;
            self.recover = Some(self.at.nxt);
            self.in_recovery = true;
            self.head_due = true;
        }
    }

    pub fn on_timeout(&mut self) {
        if Some(self.at.una) >= self.recover {
            self.halve();
        }
        self.window.collapse();
        self.recover = Some(self.at.nxt);
        self.in_recovery = false;
        self.dupacks = 0;
        self.at.resend = self.at.una;
    }

    pub fn on_idle(&mut self) {
        self.window.restart(self.initial_segs);
    }

    /// Sends what its window and the one that it is shown admit (equation 2).
    pub fn send(&mut self, written: u64) -> Sent {
        let segs = self.window.cwnd.min(self.shown_bytes / self.mss_bytes);
        let sent = self.at.due(segs, written, std::mem::take(&mut self.head_due));
        self.at.sent(&sent);
        sent
    }
}

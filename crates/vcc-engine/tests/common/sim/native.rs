/// The sending half of a Linux host whose congestion control is NewReno with ECN, in whole
/// segments: what the engine has to compute in such a host's place (law 11).
#[derive(Default)]
pub struct Native {
    pub cwnd: i64,
    pub ssthresh: i64,
    credit: i64,
    prior_cwnd: i64,
    prr_delivered: i64,
    prr_out: i64,
    high_seq: i64,
    pub in_cwr: bool,
    pub reductions: u32,
    cwnd_usage_seq: i64,
    max_packets_out: i64,
    is_cwnd_limited: bool,
}

impl Native {
    pub fn new(initial_cwnd_segs: i64) -> Self {
        Native { cwnd: initial_cwnd_segs, ssthresh: i64::from(i32::MAX), ..Native::default() }
    }

    /// `tcp_ack` in the order of Linux: the end of CWR, its begin, then cwnd.
    /// Returns whether CWR is due.
    pub fn on_ack(
        &mut self,
        newly_acked_segs: i64,
        ece: bool,
        una: i64,
        nxt: i64,
        in_flight: i64,
    ) -> bool {
        if self.in_cwr && una > self.high_seq {
            self.cwnd = self.ssthresh;
            self.in_cwr = false;
        }
        let begins = ece && !self.in_cwr;
        if begins {
            self.prior_cwnd = self.cwnd;
            self.ssthresh = (self.cwnd / 2).max(2);
            self.prr_delivered = 0;
            self.prr_out = 0;
            self.credit = 0;
            self.high_seq = nxt;
            self.in_cwr = true;
            self.reductions += 1;
        }
        if self.in_cwr {
            self.reduce(newly_acked_segs, in_flight);
        } else if self.is_limited() {
            self.grow(newly_acked_segs);
        }
        begins
    }

    /// `tcp_cwnd_reduction`, without losses.
    fn reduce(&mut self, newly_acked_segs: i64, in_flight: i64) {
        if newly_acked_segs <= 0 {
            return;
        }
        let delta = self.ssthresh - in_flight;
        self.prr_delivered += newly_acked_segs;
        let sndcnt = if delta < 0 {
            (self.ssthresh * self.prr_delivered + self.prior_cwnd - 1) / self.prior_cwnd
                - self.prr_out
        } else {
            delta.min((self.prr_delivered - self.prr_out).max(newly_acked_segs) + 1)
        };
        self.cwnd = in_flight + sndcnt.max(i64::from(self.prr_out == 0));
    }

    /// `tcp_reno_cong_avoid`.
    fn grow(&mut self, acked_segs: i64) {
        let in_slow_start = acked_segs.min((self.ssthresh - self.cwnd).max(0));
        self.cwnd += in_slow_start;
        self.credit += acked_segs - in_slow_start;
        if self.cwnd >= self.ssthresh && self.credit >= self.cwnd {
            self.credit -= self.cwnd;
            self.cwnd += 1;
        }
    }

    /// `tcp_is_cwnd_limited`.
    fn is_limited(&self) -> bool {
        self.is_cwnd_limited || (self.cwnd < self.ssthresh && self.cwnd < 2 * self.max_packets_out)
    }

    /// `tcp_cwnd_validate`, after as much as possible was sent.
    pub fn on_sent(&mut self, sent_segs: i64, una: i64, nxt: i64, in_flight: i64) {
        self.prr_out += if self.in_cwr { sent_segs } else { 0 };
        let limited = in_flight >= self.cwnd;
        // tcp_write_xmit: only if something was sent, or would have been.
        if sent_segs == 0 && !limited {
            return;
        }
        let more = !self.is_cwnd_limited && in_flight > self.max_packets_out;
        if una >= self.cwnd_usage_seq || limited || more {
            self.is_cwnd_limited = limited;
            self.max_packets_out = in_flight;
            self.cwnd_usage_seq = nxt;
        }
    }
}

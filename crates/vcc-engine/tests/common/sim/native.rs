/// The sender of a Linux host with NewReno and ECN, in whole segments: the engine must compute its
/// window in shadow mode (law 11).
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
    initial_cwnd: i64,
    cwnd_used: i64,
    cwnd_stamp_us: u64,
    srtt_us8: u64,
    rttvar_us4: u64,
}

impl Native {
    pub fn new(initial_cwnd_segs: i64, now_us: u64) -> Self {
        Native {
            cwnd: initial_cwnd_segs,
            initial_cwnd: initial_cwnd_segs,
            ssthresh: i64::from(i32::MAX),
            cwnd_stamp_us: now_us,
            ..Native::default()
        }
    }

    /// `tcp_rtt_estimator`, as RFC 6298 has it.
    pub fn on_sample(&mut self, rtt_us: u64) {
        if self.srtt_us8 == 0 {
            (self.srtt_us8, self.rttvar_us4) = (rtt_us * 8, rtt_us * 2);
            return;
        }
        let srtt_us = self.srtt_us8 / 8;
        self.rttvar_us4 = self.rttvar_us4 - self.rttvar_us4 / 4 + srtt_us.abs_diff(rtt_us);
        self.srtt_us8 = self.srtt_us8 - srtt_us + rtt_us;
    }

    fn rto_us(&self) -> u64 {
        const RTO_MIN_US: u64 = 200_000;
        const RTO_INITIAL_US: u64 = 1_000_000;
        match self.srtt_us8 {
            0 => RTO_INITIAL_US,
            srtt_us8 => srtt_us8 / 8 + self.rttvar_us4.max(RTO_MIN_US),
        }
    }

    /// `tcp_ack` in Linux's order: end of CWR, start of CWR, then cwnd. Returns whether CWR is due.
    pub fn on_ack(
        &mut self,
        now_us: u64,
        newly_acked_segs: i64,
        ece: bool,
        una: i64,
        nxt: i64,
        in_flight: i64,
    ) -> bool {
        if self.in_cwr && una > self.high_seq {
            self.cwnd = self.ssthresh;
            self.cwnd_stamp_us = now_us;
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

    /// `tcp_cwnd_validate`, after sending as much as possible.
    pub fn on_sent(&mut self, now_us: u64, sent_segs: i64, una: i64, nxt: i64, in_flight: i64) {
        self.prr_out += if self.in_cwr { sent_segs } else { 0 };
        let limited = in_flight >= self.cwnd;
        // tcp_write_xmit: only if something was or would have been sent.
        if sent_segs == 0 && !limited {
            return;
        }
        let more = !self.is_cwnd_limited && in_flight > self.max_packets_out;
        if una >= self.cwnd_usage_seq || limited || more {
            self.is_cwnd_limited = limited;
            self.max_packets_out = in_flight;
            self.cwnd_usage_seq = nxt;
        }
        if self.is_limited() {
            (self.cwnd_used, self.cwnd_stamp_us) = (0, now_us);
            return;
        }
        self.cwnd_used = self.cwnd_used.max(in_flight);
        if now_us - self.cwnd_stamp_us >= self.rto_us() {
            self.application_limited();
            self.cwnd_stamp_us = now_us;
        }
    }

    /// `tcp_cwnd_application_limited`.
    fn application_limited(&mut self) {
        if self.in_cwr {
            return;
        }
        let used = self.cwnd_used.max(self.initial_cwnd);
        if used < self.cwnd {
            self.ssthresh = self.ssthresh.max(self.cwnd / 2 + self.cwnd / 4);
            self.cwnd = (self.cwnd + used) / 2;
        }
        self.cwnd_used = 0;
    }
}

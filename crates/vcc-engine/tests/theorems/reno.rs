use vcc_engine::sys;

/// The window of a sender in whole segments, with Reno's growth (vCC, equations 3 and 4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Window {
    pub cwnd: u64,
    /// Acknowledged segments that have not become growth.
    pub credit: u64,
    pub ssthresh: u64,
}

/// The smallest ssthresh of a loss (RFC 5681, equation 4).
pub const MIN_SSTHRESH: u64 = 2;

impl Window {
    pub fn new(initial_segs: u64) -> Self {
        Window { cwnd: initial_segs, credit: 0, ssthresh: sys::SSTHRESH_INFINITE.into() }
    }

    pub fn grow(&mut self, acked: u64) {
        let in_slow_start = acked.min(self.ssthresh.saturating_sub(self.cwnd));
        self.cwnd += in_slow_start;
        self.credit += acked - in_slow_start;
        if self.cwnd >= self.ssthresh && self.credit >= self.cwnd {
            self.credit -= self.cwnd;
            self.cwnd += 1;
        }
    }

    /// One segment after a timeout; the caller sets ssthresh (equation 9).
    pub fn collapse(&mut self) {
        (self.cwnd, self.credit) = (1, 0);
    }

    /// The restart window after an idle period (equations 11 and 12).
    pub fn restart(&mut self, initial_segs: u64) {
        (self.cwnd, self.credit) = (self.cwnd.min(initial_segs), 0);
    }
}

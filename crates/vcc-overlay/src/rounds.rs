//! Divides a connection into round trips: each starts with the next data sent and ends when that is
//! acknowledged.

use crate::observation::{Observation, is_after};

/// One round trip.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Round {
    /// When it ended.
    pub at_us: u64,
    pub length_us: u64,
    /// Largest flight at acknowledgements of new data. During duplicates the flight grows by
    /// segments that have left the network (RFC 5681, 3.2), so it is no window then.
    pub peak_segs: f64,
    /// Smallest flight after an acknowledgement.
    pub least_segs: f64,
    /// Mean bytes per acknowledgement, in segments: the size of bursts, which queue as a whole.
    pub burst_segs: f64,
    /// The smallest of its samples, or SRTT if it has none.
    pub rtt_us: u32,
    /// The largest flight relative to the window shown at that time, and that window.
    pub filled: f64,
    pub shown_bytes: u32,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Rounds {
    last: Option<Observation>,
    begun_us: u64,
    begun_seq: u32,
    end_seq: u32,
    acks: u32,
    now: Round,
}

impl Rounds {
    /// Returns the round trip that ended with this observation.
    pub fn note(&mut self, observed: &Observation) -> Option<Round> {
        let Some(last) = self.last.replace(*observed) else {
            self.begin(observed);
            return None;
        };
        if observed.mss_bytes == 0 || !is_after(observed.snd_una, last.snd_una) {
            return None;
        }
        let segs = |bytes: u32| f64::from(bytes) / f64::from(observed.mss_bytes);
        let now = &mut self.now;
        self.acks += 1;
        now.peak_segs = now.peak_segs.max(segs(observed.flight_bytes));
        now.least_segs = now.least_segs.min(segs(observed.snd_nxt.wrapping_sub(observed.snd_una)));
        if last.window_shown_bytes > 0 {
            // The window in effect when the data was sent, before this acknowledgement changed it.
            let filled = f64::from(observed.flight_bytes) / f64::from(last.window_shown_bytes);
            if filled > now.filled {
                (now.filled, now.shown_bytes) = (filled, last.window_shown_bytes);
            }
        }
        if let Some(rtt_us) = observed.rtt_us {
            now.rtt_us = if now.rtt_us == 0 { rtt_us } else { now.rtt_us.min(rtt_us) };
        }
        if is_after(self.end_seq, observed.snd_una) {
            return None;
        }
        let mut round = self.now;
        round.at_us = observed.at_us;
        round.length_us = observed.at_us.saturating_sub(self.begun_us);
        round.burst_segs =
            segs(observed.snd_una.wrapping_sub(self.begun_seq)) / f64::from(self.acks);
        if round.rtt_us == 0 {
            round.rtt_us = observed.srtt_us;
        }
        self.begin(observed);
        Some(round)
    }

    /// Starts a new round trip with this observation and discards the current one.
    pub fn restart(&mut self, observed: &Observation) {
        self.begin(observed);
    }

    /// The largest flight since the last round trip ended.
    pub fn peak_segs(&self) -> f64 {
        self.now.peak_segs
    }

    fn begin(&mut self, observed: &Observation) {
        self.begun_us = observed.at_us;
        (self.begun_seq, self.end_seq) = (observed.snd_una, observed.snd_nxt);
        self.acks = 0;
        self.now = Round { least_segs: f64::INFINITY, ..Round::default() };
    }
}

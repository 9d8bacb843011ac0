//! Divides a connection into round trips: each starts with the next data sent and ends when that is
//! acknowledged.

use crate::look::{Look, is_after};

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
    last: Option<Look>,
    begun_us: u64,
    begun_seq: u32,
    end_seq: u32,
    acks: u32,
    now: Round,
}

impl Rounds {
    /// Returns the round trip that ended with this look.
    pub fn note(&mut self, look: &Look) -> Option<Round> {
        let Some(last) = self.last.replace(*look) else {
            self.begin(look);
            return None;
        };
        if look.mss_bytes == 0 || !is_after(look.snd_una, last.snd_una) {
            return None;
        }
        let segs = |bytes: u32| f64::from(bytes) / f64::from(look.mss_bytes);
        let now = &mut self.now;
        self.acks += 1;
        now.peak_segs = now.peak_segs.max(segs(look.flight_bytes));
        now.least_segs = now.least_segs.min(segs(look.snd_nxt.wrapping_sub(look.snd_una)));
        if last.window_shown_bytes > 0 {
            // The window in effect when the data was sent, before this acknowledgement changed it.
            let filled = f64::from(look.flight_bytes) / f64::from(last.window_shown_bytes);
            if filled > now.filled {
                (now.filled, now.shown_bytes) = (filled, last.window_shown_bytes);
            }
        }
        if let Some(rtt_us) = look.rtt_us {
            now.rtt_us = if now.rtt_us == 0 { rtt_us } else { now.rtt_us.min(rtt_us) };
        }
        if is_after(self.end_seq, look.snd_una) {
            return None;
        }
        let mut round = self.now;
        round.at_us = look.at_us;
        round.length_us = look.at_us.saturating_sub(self.begun_us);
        round.burst_segs = segs(look.snd_una.wrapping_sub(self.begun_seq)) / f64::from(self.acks);
        if round.rtt_us == 0 {
            round.rtt_us = look.srtt_us;
        }
        self.begin(look);
        Some(round)
    }

    /// Starts a new round trip with this look and discards the current one.
    pub fn restart(&mut self, look: &Look) {
        self.begin(look);
    }

    /// The largest flight since the last round trip ended.
    pub fn peak_segs(&self) -> f64 {
        self.now.peak_segs
    }

    fn begin(&mut self, look: &Look) {
        self.begun_us = look.at_us;
        (self.begun_seq, self.end_seq) = (look.snd_una, look.snd_nxt);
        self.acks = 0;
        self.now = Round { least_segs: f64::INFINITY, ..Round::default() };
    }
}

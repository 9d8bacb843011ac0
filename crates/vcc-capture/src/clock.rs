//! The clock of a port, which never runs back, from the times of packets, which may.

/// When a file begins: a port has no time before 0.
pub(crate) const START_NS: u64 = 1_000_000_000;
/// Packets in disorder, as several queues of a device deliver them, are less apart than this. A longer step
/// is one of the clock itself.
const DISORDER_NS: i128 = 1_000_000_000;

#[derive(Clone, Debug)]
pub(crate) struct Clock {
    /// Added to the times of packets.
    shift_ns: i128,
    now_ns: u64,
}

impl Clock {
    /// For a file that begins at `epoch_ns`.
    pub(crate) fn new(epoch_ns: u64) -> Self {
        Self { shift_ns: i128::from(START_NS) - i128::from(epoch_ns), now_ns: 0 }
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Sets the clock to a packet's time, or leaves it where it is if that is earlier. Returns by how much.
    pub(crate) fn advance(&mut self, time_ns: u64) -> u64 {
        let at_ns = i128::from(time_ns) + self.shift_ns;
        let back_ns = i128::from(self.now_ns) - at_ns;
        if back_ns > DISORDER_NS {
            self.shift_ns += back_ns;
        }
        self.now_ns = at_ns.clamp(self.now_ns.into(), u64::MAX.into()) as u64;
        back_ns.clamp(0, u64::MAX.into()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn it_never_runs_back() {
        let mut clock = Clock::new(100 * S);
        assert_eq!((clock.advance(100 * S), clock.now_ns()), (0, S));
        assert_eq!((clock.advance(103 * S), clock.now_ns()), (0, 4 * S));
        assert_eq!((clock.advance(103 * S - 5), clock.now_ns()), (5, 4 * S), "disorder");
        assert_eq!((clock.advance(103 * S + 7), clock.now_ns()), (0, 4 * S + 7));
        assert_eq!((clock.advance(50 * S), clock.now_ns()), (53 * S + 7, 4 * S + 7), "a step");
        assert_eq!((clock.advance(52 * S), clock.now_ns()), (0, 6 * S + 7));
    }
}

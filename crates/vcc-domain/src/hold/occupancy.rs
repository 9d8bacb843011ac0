//! How much of its port's buffer a flow has over time (vFlood, figure 4).

/// Sums over the time in which the flow has something in the buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// What it has, times the time.
    pub byte_ns: u64,
    /// The time.
    pub held_ns: u64,
    /// Of it, that with more than its share (`hold_exceeds_share`).
    pub above_share_ns: u64,
    since_ns: u64,
    held_bytes: u32,
    exceeds_share: bool,
}

impl Occupancy {
    /// From now on the flow has this much.
    pub(crate) fn note(&mut self, now_ns: u64, held_bytes: u32, exceeds_share: bool) {
        let for_ns = now_ns - self.since_ns;
        if self.held_bytes > 0 {
            self.byte_ns += u64::from(self.held_bytes) * for_ns;
            self.held_ns += for_ns;
        }
        if self.exceeds_share {
            self.above_share_ns += for_ns;
        }
        (self.since_ns, self.held_bytes, self.exceeds_share) = (now_ns, held_bytes, exceeds_share);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_counts_while_something_is_held() {
        let mut occupancy = Occupancy::default();
        for (now_ns, held_bytes, exceeds) in
            [(100, 10, false), (200, 50, true), (300, 0, false), (900, 10, false), (901, 0, false)]
        {
            occupancy.note(now_ns, held_bytes, exceeds);
        }
        assert_eq!((occupancy.byte_ns, occupancy.held_ns), (1000 + 5000 + 10, 201));
        assert_eq!(occupancy.above_share_ns, 100);
    }
}

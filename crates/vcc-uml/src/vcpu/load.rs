//! CPU load of a virtual CPU besides the network.

/// A load generator with a duty cycle (vFlood, 5): it computes for a time, sleeps for a time, and
/// repeats. It computes until it has had that much CPU time, so contention lengthens its cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    pub busy_ns: u64,
    /// 0: it never sleeps.
    pub idle_ns: u64,
    /// Start of its first computation.
    pub begins_at_ns: u64,
}

impl Load {
    /// Computes all the time.
    pub const fn full(begins_at_ns: u64) -> Self {
        Self { busy_ns: u64::MAX, idle_ns: 0, begins_at_ns }
    }

    /// Computes for this percentage of each period. Above 99 it never sleeps.
    pub fn percent(percent: u32, period_ns: u64, begins_at_ns: u64) -> Self {
        let busy_ns = period_ns * u64::from(percent.min(100)) / 100;
        match period_ns - busy_ns {
            0 => Self::full(begins_at_ns),
            idle_ns => Self { busy_ns, idle_ns, begins_at_ns },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_a_period() {
        let load = Load::percent(60, 30_000_000, 5);
        assert_eq!(load, Load { busy_ns: 18_000_000, idle_ns: 12_000_000, begins_at_ns: 5 });
        assert_eq!(Load::percent(100, 30_000_000, 5), Load::full(5));
    }
}

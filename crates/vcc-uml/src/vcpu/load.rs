//! What burns a virtual CPU's time beside the network.

/// A program that computes for so long, sleeps for so long, and begins again: a load generator with
/// a duty cycle (vFlood, 5). It computes for as long as it takes to have had that much of the core,
/// so under contention its cycle gets longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    pub busy_ns: u64,
    /// 0: it never sleeps.
    pub idle_ns: u64,
    /// When it first computes.
    pub begins_at_ns: u64,
}

impl Load {
    /// Computes all the time.
    pub const fn full(begins_at_ns: u64) -> Self {
        Self { busy_ns: u64::MAX, idle_ns: 0, begins_at_ns }
    }

    /// Of each period this share, of 100. More than 99 never sleeps.
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

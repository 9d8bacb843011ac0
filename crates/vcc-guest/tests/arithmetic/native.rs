//! Bindings of native.c.

/// `struct illinois` of guest/illinois.h.
#[repr(C)]
#[derive(Clone, Debug, Default)]
pub struct IllinoisState {
    pub alpha: u32,
    pub beta: u32,
    pub base_rtt_us: u32,
    pub max_rtt_us: u32,
    sum_rtt_us: u64,
    samples: u32,
    rounds_low: u32,
    was_large: bool,
}

/// `struct vegas` of guest/vegas.h.
#[repr(C)]
#[derive(Clone, Debug)]
pub struct VegasState {
    pub base_rtt_us: u32,
    pub min_rtt_us: u32,
    samples: u32,
}

/// `struct vegas_window` of guest/vegas.h.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub cwnd_segs: u32,
    pub ssthresh_segs: u32,
}

mod c {
    use super::{IllinoisState, VegasState, Window};

    unsafe extern "C" {
        pub safe fn native_dctcp_next_alpha(alpha: u32, delivered_segs: u32, ce_segs: u32) -> u32;
        pub safe fn native_dctcp_reduced_segs(cwnd_segs: u32, alpha: u32) -> u32;
        pub safe fn native_highspeed_row(cwnd_segs: u32) -> u32;
        pub fn native_highspeed_row_cwnd_segs(row: u32) -> u32;
        pub safe fn native_highspeed_a_segs(row: u32) -> u32;
        pub safe fn native_highspeed_reduced_segs(cwnd_segs: u32, row: u32) -> u32;
        pub safe fn native_illinois_init(ca: &mut IllinoisState);
        pub safe fn native_illinois_be_reno(ca: &mut IllinoisState);
        pub safe fn native_illinois_sample(ca: &mut IllinoisState, rtt_us: u32);
        pub safe fn native_illinois_end_round(ca: &mut IllinoisState, cwnd_segs: u32);
        pub safe fn native_illinois_growth_segs(
            ca: &IllinoisState,
            cwnd_segs: u32,
            acked_segs: u32,
        ) -> u32;
        pub safe fn native_illinois_reduced_segs(ca: &IllinoisState, cwnd_segs: u32) -> u32;
        pub safe fn native_vegas_start_round(v: &mut VegasState);
        pub safe fn native_vegas_sample(v: &mut VegasState, rtt_us: u32);
        pub safe fn native_vegas_decide(v: &VegasState, w: &mut Window) -> bool;
    }
}

pub use c::{
    native_dctcp_next_alpha as dctcp_next_alpha, native_dctcp_reduced_segs as dctcp_reduced_segs,
    native_highspeed_a_segs as highspeed_a_segs,
    native_highspeed_reduced_segs as highspeed_reduced_segs, native_highspeed_row as highspeed_row,
};

/// HIGHSPEED_ROWS of guest/highspeed.h.
pub const HIGHSPEED_ROWS: u32 = 72;

pub fn highspeed_row_cwnd_segs(row: u32) -> u32 {
    assert!(row < HIGHSPEED_ROWS);
    // SAFETY: the table has that row.
    unsafe { c::native_highspeed_row_cwnd_segs(row) }
}

impl IllinoisState {
    pub fn new() -> Self {
        let mut state = Self::default();
        c::native_illinois_init(&mut state);
        state
    }

    pub fn be_reno(&mut self) {
        c::native_illinois_be_reno(self);
    }

    /// A round trip at `cwnd_segs` with identical samples.
    pub fn round(&mut self, cwnd_segs: u32, rtt_us: u32) {
        for _ in 0..3 {
            c::native_illinois_sample(self, rtt_us);
        }
        c::native_illinois_end_round(self, cwnd_segs);
    }

    pub fn growth_segs(&self, cwnd_segs: u32, acked_segs: u32) -> u32 {
        c::native_illinois_growth_segs(self, cwnd_segs, acked_segs)
    }

    pub fn reduced_segs(&self, cwnd_segs: u32) -> u32 {
        c::native_illinois_reduced_segs(self, cwnd_segs)
    }
}

impl VegasState {
    pub fn new(base_rtt_us: u32) -> Self {
        Self { base_rtt_us, min_rtt_us: u32::MAX, samples: 0 }
    }

    /// The window after a round trip of these samples. Returns true if slow start continues.
    pub fn round(&mut self, rtts_us: &[u32], window: &mut Window) -> bool {
        c::native_vegas_start_round(self);
        for &rtt_us in rtts_us {
            c::native_vegas_sample(self, rtt_us);
        }
        c::native_vegas_decide(self, window)
    }
}

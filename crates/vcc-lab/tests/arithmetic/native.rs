//! Bindings of native.c.

/// `struct flood` of guest/flood.h.
#[repr(C)]
#[derive(Clone, Debug, Default)]
pub struct FloodState {
    pub cwnd_segs: u32,
    acked_segs: u32,
    pub ssthresh_segs: u32,
    initial_segs: u32,
    pub recover_fs_segs: u32,
    prr_delivered_segs: u32,
    undo_cwnd_segs: u32,
    undo_ssthresh_segs: u32,
    pub host_segs: u32,
    pub is_online: bool,
}

/// `struct flood_ack` of guest/flood.h.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct FloodAck {
    pub delivered_segs: u32,
    pub in_flight_segs: u32,
    pub prr_out_segs: u32,
    pub most_out_segs: u32,
    pub is_safe: bool,
}

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
    use super::{FloodAck, FloodState, IllinoisState, VegasState, Window};

    unsafe extern "C" {
        pub safe fn native_dctcp_next_alpha(alpha: u32, delivered_segs: u32, ce_segs: u32) -> u32;
        pub safe fn native_dctcp_reduced_segs(cwnd_segs: u32, alpha: u32) -> u32;
        pub safe fn native_flood_init(f: &mut FloodState, initial_segs: u32);
        pub safe fn native_flood_on_ack(f: &mut FloodState, ack: &FloodAck) -> u32;
        pub safe fn native_flood_reduce(f: &mut FloodState) -> u32;
        pub safe fn native_flood_undo(f: &mut FloodState) -> u32;
        pub safe fn native_flood_set_state(f: &mut FloodState, state: u8, cwnd_segs: u32) -> u32;
        pub safe fn native_flood_restart(f: &mut FloodState, rtos: u32);
        pub safe fn native_flood_granted_segs(grant_bytes: u32, mss_bytes: u32) -> u32;
        pub safe fn native_flood_window_segs(f: &FloodState) -> u32;
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
    native_flood_granted_segs as flood_granted_segs, native_highspeed_a_segs as highspeed_a_segs,
    native_highspeed_reduced_segs as highspeed_reduced_segs, native_highspeed_row as highspeed_row,
};

/// HIGHSPEED_ROWS of guest/highspeed.h.
pub const HIGHSPEED_ROWS: u32 = 72;

pub fn highspeed_row_cwnd_segs(row: u32) -> u32 {
    assert!(row < HIGHSPEED_ROWS);
    // SAFETY: the table has that row.
    unsafe { c::native_highspeed_row_cwnd_segs(row) }
}

impl FloodState {
    pub fn new(initial_segs: u32) -> Self {
        let mut state = Self::default();
        c::native_flood_init(&mut state, initial_segs);
        state
    }

    /// The window after an ACK.
    pub fn on_ack(&mut self, ack: FloodAck) -> u32 {
        c::native_flood_on_ack(self, &ack)
    }

    /// ssthresh after a loss or mark.
    pub fn reduce(&mut self) -> u32 {
        c::native_flood_reduce(self)
    }

    /// The window after a reduction is undone.
    pub fn undo(&mut self) -> u32 {
        c::native_flood_undo(self)
    }

    /// The window in the state that TCP enters.
    pub fn set_state(&mut self, state: u8, cwnd_segs: u32) -> u32 {
        c::native_flood_set_state(self, state, cwnd_segs)
    }

    pub fn restart(&mut self, rtos: u32) {
        c::native_flood_restart(self, rtos);
    }

    pub fn window_segs(&self) -> u32 {
        c::native_flood_window_segs(self)
    }
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

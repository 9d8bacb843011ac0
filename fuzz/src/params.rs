//! Parameters within the bounds that policies have.

use vcc_engine::{Params, Underlay, sys};

use crate::input::Input;

/// Treatments of flows that may share a pool of `pool_bytes`.
pub fn params(input: &mut Input, pool_bytes: u32) -> Params {
    let underlays: Vec<u8> = Underlay::all().map(Underlay::number).collect();
    let bits = input.u16();
    let bit = |at: u32| (bits >> at & 1) as u8;
    Params::with(|p| {
        p.underlay = input.pick(&underlays);
        p.mode = input.pick(&[sys::MODE_ENFORCE, 0, 0, 0, 1, 2, 3]) as u8;
        p.act = input.pick(&[sys::ACT_WINDOW, 0, 0, 1, 2]) as u8;
        // What most have is 0, so that a short input is an ordinary case.
        p.guest_ecn = bit(0);
        p.prr = 1 - bit(1);
        p.pace_push = 1 - bit(2);
        p.feedback = 1 - bit(3);
        p.police = bit(4);
        p.emit = bit(5);
        p.undo = 1 - bit(6);
        p.delays = 1 - bit(7);
        p.retransmit = bit(8);
        p.receive = bit(9) * (1 + bit(13) + (bit(13) & bit(8)));
        p.on_full = bit(10);
        p.on_unknown = bit(15);
        p.unknown_grace_s = 0;
        p.accecn = 1 - bit(14);
        if bit(11) != 0 {
            p.beta_1024 = input.u16() % (sys::BETA_ONE as u16 + 1);
            p.window_floor_segs = input.pick(&[1, 0, 2, 1000]);
            p.initial_window_segs = input.pick(&[10, 1, 3, 1000]);
            p.window_max_bytes = input.pick(&[2 << 20, 1 << 16, 1 << 30]);
            p.window_cap_bytes = input.pick(&[0, 1, 3000, 1 << 20, u32::MAX]);
            p.rtt_target_us = input.pick(&[0, 1, 100, 10_000, u32::MAX]);
            p.rate_cap_bytes_per_ms = input.pick(&[0, 1, 1250, 1 << 20, u32::MAX]);
        }
        if bit(12) != 0 {
            p.rto_min_us = input.pick(&[1000, 5000, 200_000, 60_000_000]);
            p.emit_after_us = input.pick(&[0, 1, 10_000, u32::MAX]);
            let idle_ms = &[0, 1, 1000, 5 * 24 * 3600 * 1000, u32::MAX];
            p.idle_established_ms = input.pick(idle_ms);
            p.idle_half_closed_ms = input.pick(idle_ms);
            p.idle_handshake_ms = input.pick(idle_ms);
            p.idle_closed_ms = input.pick(idle_ms);
        }
        if pool_bytes > 0 {
            // If a flow's segments are held, the shell that holds them decides what its guest is
            // shown.
            p.act = sys::ACT_WINDOW as u8;
            p.pool_bytes = pool_bytes;
            p.pool_weight = input.pick(&[1, 1, 3, 0, 1000]);
        }
    })
}

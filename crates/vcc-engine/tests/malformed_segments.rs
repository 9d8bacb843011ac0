//! Segments that no TCP sends. No law may break (they are checked in debug builds), nothing may
//! overflow, and a foreign flow stays untouched.

use crate::common::sim::Rng;
use crate::common::*;
use vcc_engine::{FlowState, Mode, Params, Segment, Underlay, sys};

const NUMBERS: [u32; 8] = [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ff00, u32::MAX - 1, u32::MAX, 5];

/// A number near one that the flow knows, so that random segments are meaningful.
fn number(rng: &mut Rng, flow: &FlowState) -> u32 {
    let known =
        [flow.snd_una, flow.snd_nxt, flow.right_edge, flow.recover, flow.rcv_nxt, flow.round_end];
    match rng.range(0, 4) {
        0 => rng.pick(&NUMBERS),
        1 => rng.next() as u32,
        _ => rng.pick(&known).wrapping_add(rng.range(0, 6000) as u32).wrapping_sub(3000),
    }
}

fn random_segment(rng: &mut Rng, flow: &FlowState, now_us: u64) -> Segment {
    let mut flags = sys::TCP_ACK as u16;
    if rng.chance(300) {
        flags = rng.next() as u16 & 0x1ff;
    } else if rng.chance(300) {
        flags |= rng.next() as u16 & (sys::TCP_ECE | sys::TCP_CWR | sys::TCP_PSH) as u16;
    }
    let payload_bytes = rng.pick(&[0, 0, 1, 100, 1448, 1460, 8948, 65_535, 262_144]);
    Segment {
        now_us,
        seq: number(rng, flow),
        ack: number(rng, flow),
        payload_bytes,
        dsack_bytes: match rng.range(0, 20) {
            0 => rng.range(1, 1 << 20) as u32,
            1 => flow.undo_bytes,
            _ => 0,
        },
        dsack_seq: if rng.chance(500) { flow.undo_from } else { number(rng, flow) },
        seg_bytes: if payload_bytes > 8948 { rng.pick(&[1, 536, 1448, 65_535]) } else { 0 },
        window: rng.pick(&[0, 1, 100, 2048, u16::MAX]),
        flags,
        mss: rng.pick(&[0, 1, 13, 536, 1460, 8960, u16::MAX]),
        wscale: rng.pick(&[0, 1, 7, 10, 14, 15, 255]),
        options: rng.next() as u16 & 0x1fff,
        hello: rng.range(0, 3) as u8,
        option_room_bytes: rng.pick(&[0, 7, 8, 28, 40]),
        at_tick: 0,
        ip_ecn: rng.range(0, 4) as u8,
        feedback: sys::vcc_feedback {
            ect0_bytes: rng.pick(&[0, 1, 1449, 0xff_ffff, u32::MAX]),
            ce_bytes: rng.pick(&[0, 1, 1448, 0x80_0000]),
        },
        tsval: rng.next() as u32,
        tsecr: if rng.chance(500) { flow.rcv_tsval } else { rng.next() as u32 },
        pool_bytes: rng.pick(&[0, 0, 1, 1448, 100_000, u32::MAX]),
        pool_taken_bytes: 0,
    }
}

fn random_params(rng: &mut Rng) -> Params {
    let underlays: Vec<Underlay> = Underlay::all().collect();
    params(|p| {
        p.underlay = rng.pick(&underlays).number();
        p.mode = rng.pick(&[Mode::Enforce, Mode::Enforce, Mode::Shadow, Mode::Drain]).number();
        p.guest_ecn = rng.range(0, 2) as u8;
        p.prr = rng.range(0, 2) as u8;
        p.pace_push = rng.range(0, 2) as u8;
        p.undo = rng.range(0, 2) as u8;
        p.window_floor_segs = rng.pick(&[0, 1, 2, 1000]);
        p.initial_window_segs = rng.pick(&[0, 1, 10, 65_535]);
        p.window_max_bytes = rng.pick(&[0, 1, 65_535, 2 << 20, 1 << 30, u32::MAX]);
        p.feedback = rng.range(0, 2) as u8;
        p.accecn = rng.range(0, 2) as u8;
        p.police = rng.range(0, 2) as u8;
        p.emit = rng.range(0, 2) as u8;
        p.beta_1024 = rng.pick(&[0, 512, 1024, u16::MAX]);
        p.window_cap_bytes = rng.pick(&[0, 1, 20_000, u32::MAX]);
        p.rate_cap_bytes_per_ms = rng.pick(&[0, 1, 12_500, u32::MAX]);
        p.emit_after_us = rng.pick(&[0, 10_000, u32::MAX]);
        p.rto_min_us = rng.pick(&[0, 1000, 200_000, u32::MAX]);
    })
}

#[test]
fn random_segments_break_nothing() {
    for seed in 0..3000 {
        let mut rng = Rng::new(seed);
        let params = random_params(&mut rng);
        let mut conn = if rng.chance(500) {
            Conn::established(params, rng.pick(&NUMBERS))
        } else {
            Conn::new(params, rng.pick(&NUMBERS))
        };
        for step in 0..100 {
            conn.now_us += rng.pick(&[0, 1, 1000, 100_000, 3_000_000]);
            let now_us = conn.now_us - rng.range(0, 5);
            let segment = random_segment(&mut rng, &conn.flow, now_us);
            let offered_bytes = u64::from(segment.window) << conn.flow.wscale_peer;
            let is_syn = u32::from(segment.flags) & sys::TCP_SYN != 0;
            let forget = match rng.range(0, 5) {
                0..2 => {
                    let action = conn.flow.from_guest(&conn.params, &segment);
                    assert_eq!(action.window, segment.window, "seed {seed}, step {step}");
                    let policed = params.0.police != 0 && action.police != 0;
                    assert_eq!(is_dropped(&action), policed, "seed {seed}, step {step}");
                    action.forget
                }
                2..4 => {
                    let action = conn.flow.to_guest(&conn.params, &segment);
                    if !is_syn {
                        let shown_bytes = u64::from(action.window) << conn.flow.wscale_shown;
                        assert!(shown_bytes <= offered_bytes, "seed {seed}, step {step}");
                        let both_zero = (action.window == 0) == (segment.window == 0);
                        assert!(both_zero, "seed {seed}, step {step}");
                    } else if segment.pool_bytes == 0 && !limits_first_flight(&params) {
                        assert_eq!(action.window, segment.window, "seed {seed}, step {step}");
                    } else {
                        let both_zero = (action.window == 0) == (segment.window == 0);
                        assert!(
                            action.window <= segment.window && both_zero,
                            "seed {seed}, step {step}"
                        );
                    }
                    if u32::from(params.0.mode) == sys::MODE_SHADOW {
                        assert_untouched(&action, &segment);
                    }
                    action.forget
                }
                _ => conn.deadline().forget,
            };
            if forget != 0 {
                conn.flow = FlowState::default();
            }
            let flow = &conn.flow;
            if u32::from(flow.stage) != sys::STAGE_NONE {
                assert!(flow.mss_bytes >= 1, "seed {seed}, step {step}: MSS 0");
                assert!(flow.cc.cwnd_segs >= 1, "seed {seed}, step {step}: cwnd 0");
            }
            assert!(flow.wscale_shown <= flow.wscale_peer && flow.wscale_peer <= 14);
            let in_flight_bytes = flow.flight_bytes();
            assert!(in_flight_bytes < 1 << 31, "seed {seed}, step {step}: snd_una passed snd_nxt");
        }
    }
}

#[test]
fn a_flow_that_was_never_opened_stays_untouched() {
    // Law 8, with every combination of flags without SYN.
    for flags in 0..0x200 {
        if flags & sys::TCP_SYN as u16 != 0 {
            continue;
        }
        let mut conn = Conn::new(Params::default(), 5);
        let mut segment = conn.data(0, 1000).ce().sack().0;
        segment.flags = flags;
        assert_untouched(&conn.flow.from_guest(&conn.params, &segment), &segment);
        assert_untouched(&conn.flow.to_guest(&conn.params, &segment), &segment);
        assert!(!conn.flow.is_managed());
    }
}

#[test]
fn impossible_flags_on_a_live_flow_do_not_end_it() {
    // All flags, SYN with FIN, SYN with RST: the guest discards them.
    let base = sys::TCP_SYN | sys::TCP_ACK;
    for extra in [sys::TCP_FIN, sys::TCP_RST, 0x1ff, sys::TCP_FIN | sys::TCP_RST] {
        for with_ack in [true, false] {
            let mut conn = Conn::established(Params::default(), 5);
            conn.send_segs(0, 3);
            let mut segment = conn.ack(0).0;
            segment.flags = (base | extra) as u16;
            if !with_ack {
                segment.flags &= !(sys::TCP_ACK as u16);
            }
            let action = conn.flow.to_guest(&conn.params, &segment);
            assert_eq!(action.forget, 0, "flags {:#x}", segment.flags);
            conn.guest_gets(conn.ack(conn.mss()).ece());
            assert_eq!(conn.flow.reductions, 1, "flags {:#x}", segment.flags);
            assert!(conn.flow.is_managed());
        }
    }
}

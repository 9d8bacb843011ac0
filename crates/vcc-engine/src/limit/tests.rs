use super::*;
use crate::Underlay;

const NOW_US: u64 = 50_000_000;

/// 10 of 10 segments are in flight, and the receiver offers 100.
fn busy() -> sys::vcc_flow {
    let dctcp: Underlay = "dctcp".parse().expect("an underlay");
    sys::vcc_flow {
        flags: sys::FLOW_WINDOW_SHOWN | sys::FLOW_SYN_SEEN_GUEST,
        stage: sys::STAGE_ESTABLISHED as u8,
        underlay: dctcp.number(),
        snd_una: u32::MAX - 999,
        snd_nxt: 14_400 - 1000,
        mss_bytes: 1440,
        last_seen_ms: 50_000,
        progress_us: NOW_US as u32,
        srtt_us8: 8 * 1000,
        window_shown: 14_400 >> 5,
        wscale_shown: 5,
        window_received: (144_000 >> 7) as u16,
        wscale_peer: 7,
        cc: sys::vcc_cc_state { cwnd_segs: 10, ssthresh_segs: 10, ..Default::default() },
        ..Default::default()
    }
}

fn limit(state: sys::vcc_flow) -> Limit {
    FlowState(state).limited_by(&Params::default(), None, NOW_US)
}

fn limit_with(state: sys::vcc_flow, params: Params) -> Limit {
    FlowState(state).limited_by(&params, None, NOW_US)
}

fn underlay(cwnd_segs: u32, phase: Phase) -> Limit {
    underlay_1024(cwnd_segs * sys::SEGMENT_1024, u64::from(cwnd_segs) * 1440, phase)
}

fn underlay_1024(cwnd_1024: u32, cwnd_bytes: u64, phase: Phase) -> Limit {
    Limit::Underlay { cwnd_1024, cwnd_bytes, phase }
}

#[test]
fn the_underlays_window() {
    assert_eq!(limit(busy()), underlay(10, Phase::CongestionAvoidance));
    let mut state = busy();
    state.cc.ssthresh_segs = sys::SSTHRESH_INFINITE;
    assert_eq!(limit(state), underlay(10, Phase::SlowStart));
    let reducing = sys::vcc_flow { ca_state: sys::CA_CWR as u8, ..busy() };
    assert_eq!(limit(reducing), underlay(10, Phase::Reduced));
    let mut least = busy();
    (least.cc.cwnd_segs, least.snd_nxt, least.window_shown) = (1, 440, 1440 >> 5);
    assert_eq!(limit(least), underlay(1, Phase::SlowStart));
    for (part_1024, cwnd_1024, cwnd_bytes) in [(-768, 256, 360), (512, 1536, 2160)] {
        least.cc.part_1024 = part_1024;
        assert_eq!(limit(least), underlay_1024(cwnd_1024, cwnd_bytes, Phase::SlowStart));
    }
}

#[test]
fn a_batch_of_acks_does_not_hide_that_the_window_was_full() {
    let mut state = busy();
    state.snd_nxt = state.snd_una;
    state.flight_max_bytes = 14_400;
    assert_eq!(limit(state).name(), "underlay");
    state.flight_max_bytes = 1440;
    state.flags |= sys::FLOW_WINDOW_LIMITED;
    assert_eq!(limit(state).name(), "underlay");
}

#[test]
fn a_guest_with_tso_holds_a_third_back() {
    let with_flight = |state: sys::vcc_flow, flight_bytes: u32| {
        let snd_nxt = state.snd_una.wrapping_add(flight_bytes);
        limit(sys::vcc_flow { snd_nxt, ..state }).name()
    };
    let by_receiver = sys::vcc_flow { window_received: (14_400 >> 7) as u16, ..busy() };
    assert_eq!(with_flight(by_receiver, 9_601), "receiver");
    assert_eq!(with_flight(by_receiver, 9_600), "guest");
    // Whether the underlay's window is used, the engine remembers itself.
    assert_eq!(with_flight(busy(), 12_961), "underlay");
    assert_eq!(with_flight(busy(), 12_960), "guest");
    let flags = busy().flags | sys::FLOW_WINDOW_LIMITED;
    assert_eq!(with_flight(sys::vcc_flow { flags, ..busy() }, 9_601), "underlay");
}

#[test]
fn the_guest_itself() {
    let state = sys::vcc_flow { snd_nxt: busy().snd_una.wrapping_add(2000), ..busy() };
    let unused = Unused::Window { used_bytes: 2000, window_bytes: 14_400 };
    assert_eq!(limit(state), Limit::Guest(unused));
    let unseen = sys::vcc_flow { flags: 0, ..busy() };
    assert_eq!(limit(unseen), Limit::Guest(Unused::NoWindowShown));
}

#[test]
fn the_receiver() {
    let state = sys::vcc_flow { window_received: (14_400 >> 7) as u16, ..busy() };
    // The offer, 14,336 bytes, is less than the window that was shown before.
    assert_eq!(limit(state), Limit::Receiver { window_bytes: 14_400 });
    let closed = sys::vcc_flow { window_received: 0, window_shown: 0, ..busy() };
    assert_eq!(limit(closed), Limit::Receiver { window_bytes: 0 });
    // A guest that may send nothing is not idle.
    let waiting = sys::vcc_flow { snd_nxt: closed.snd_una, last_seen_ms: 0, ..closed };
    assert_eq!(limit(waiting), Limit::Receiver { window_bytes: 0 });
    let unused = sys::vcc_flow { snd_nxt: state.snd_una.wrapping_add(100), ..state };
    assert_eq!(limit(unused).name(), "guest");
}

#[test]
fn the_largest_window() {
    let mut state = busy();
    (state.window_shown, state.window_received) = (u16::MAX, u16::MAX);
    (state.cc.cwnd_segs, state.snd_nxt) = (5000, state.snd_una.wrapping_add(2_090_000));
    assert_eq!(limit(state), Limit::WindowMax { window_bytes: u32::from(u16::MAX) << 5 });
}

#[test]
fn caps_pools_policing_and_shadow_mode() {
    let mut params = Params::default();
    params.0.window_cap_bytes = 14_400;
    let mut state = busy();
    // A cap of the window's size takes nothing away.
    assert_eq!(limit_with(state, params).name(), "underlay");
    state.cc.cwnd_segs = 20;
    let cap = Limit::Cap { cap_bytes: 14_400, cwnd_bytes: 28_800 };
    assert_eq!(limit_with(state, params), cap);
    // 14.4 MB/s over 1 ms.
    (params.0.window_cap_bytes, params.0.rate_cap_bytes_per_ms) = (0, 14_400);
    assert_eq!(limit_with(state, params), cap);
    state.flags |= sys::FLOW_WITHHOLDING;
    assert_eq!(limit_with(state, params), Limit::Policing { window_bytes: 14_400 });
    let mut pooled = Params::default();
    (pooled.0.pool_weight, pooled.0.pool_bytes) = (3, 1 << 20);
    state.flags &= !sys::FLOW_WITHHOLDING;
    let pool = Limit::Pool { share_bytes: 14_400, pool_bytes: 1 << 20, weight: 3 };
    assert_eq!(limit_with(state, pooled), pool);
    assert_eq!(limit_with(busy(), pooled).name(), "underlay");
    let mut shadow = Params::default();
    shadow.0.mode = Mode::Shadow.number();
    assert_eq!(limit_with(busy(), shadow), Limit::Guest(Unused::Shadow));
}

#[test]
fn losses() {
    for (ca_state, rto_backoff, repair) in [
        (sys::CA_RECOVERY, 0, Repair::FastRecovery),
        (sys::CA_LOSS, 0, Repair::Timeout { backoff: 0 }),
        (sys::CA_LOSS, 3, Repair::Timeout { backoff: 3 }),
    ] {
        let state = sys::vcc_flow { ca_state: ca_state as u8, rto_backoff, ..busy() };
        assert_eq!(limit(state), Limit::Loss(repair));
    }
}

#[test]
fn nothing_in_flight() {
    let idle = |since_us: u64, srtt_us: u32| {
        let then_us = NOW_US - since_us;
        limit(sys::vcc_flow {
            snd_nxt: busy().snd_una,
            progress_us: then_us as u32,
            last_seen_ms: (then_us / 1000) as u32,
            srtt_us8: srtt_us * 8,
            ..busy()
        })
    };
    assert_eq!(idle(3_200_000, 1000), Limit::Idle { idle_us: 3_200_000 });
    assert_eq!(idle(100_000, 1000).name(), "guest");
    assert_eq!(idle(300_000, 200_000).name(), "guest", "not yet two round trips");
    assert_eq!(idle(401_000, 200_000).name(), "idle");
    // The clock of another CPU may be slightly ahead.
    let mut ahead = busy();
    (ahead.snd_nxt, ahead.progress_us) = (ahead.snd_una, NOW_US as u32 + 50);
    assert_eq!(limit(ahead).name(), "guest");
}

#[test]
fn before_and_after_the_transfer() {
    let at = |stage: u32, flags: u32| sys::vcc_flow { stage: stage as u8, flags, ..busy() };
    let released = busy().flags | sys::FLOW_RELEASED;
    for (state, expected) in [
        (at(sys::STAGE_NONE, 0), Limit::Handshake(Awaited::Syn)),
        (at(sys::STAGE_SYN_SENT, sys::FLOW_SYN_SEEN_GUEST), Limit::Handshake(Awaited::SynAck)),
        (at(sys::STAGE_SYN_RECEIVED, 0), Limit::Handshake(Awaited::GuestSynAck)),
        (at(sys::STAGE_SYN_RECEIVED, sys::FLOW_SYN_SEEN_GUEST), Limit::Handshake(Awaited::Ack)),
        (at(sys::STAGE_CLOSED, 0), Limit::Closed),
        (
            at(sys::STAGE_ESTABLISHED, sys::FLOW_LEFT_ALONE),
            Limit::Untranslated(Untranslated::GuestEcn),
        ),
        (at(sys::STAGE_ESTABLISHED, released), Limit::Untranslated(Untranslated::Released)),
        (
            sys::vcc_flow {
                sends: sys::SENDS_FRAGMENTS as u8,
                ..at(sys::STAGE_ESTABLISHED, released)
            },
            Limit::Untranslated(Untranslated::Fragments),
        ),
    ] {
        assert_eq!(limit(state), expected);
        assert!(Limit::NAMES.contains(&expected.name()));
    }
    let transparent: Underlay = "transparent".parse().expect("an underlay");
    let state = sys::vcc_flow { underlay: transparent.number(), ..busy() };
    assert_eq!(limit(state), Limit::Untranslated(Untranslated::Underlay));
}

use vcc_engine::Underlay;

use super::*;

const NOW_US: u64 = 50_000_000;

/// A connection at 10 of 10 segments in flight, of a receiver that would take 100.
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

#[track_caller]
fn assert_limited(state: sys::vcc_flow, by: Limit, text: &str) {
    assert_limited_with(state, Params::default(), by, text);
}

#[track_caller]
fn assert_limited_with(state: sys::vcc_flow, params: Params, by: Limit, text: &str) {
    let found = limited(&FlowState(state), &params, NOW_US);
    assert_eq!((found.by, found.text.as_str()), (by, text));
}

#[test]
fn the_underlays_window() {
    let avoiding = "the underlay's window, 10 segments, 14.4 kB: congestion avoidance";
    assert_limited(busy(), Limit::Underlay, avoiding);
    let mut state = busy();
    state.cc.ssthresh_segs = sys::SSTHRESH_INFINITE;
    let starting = "the underlay's window, 10 segments, 14.4 kB: slow start";
    assert_limited(state, Limit::Underlay, starting);
    let reducing = sys::vcc_flow { ca_state: sys::CA_CWR as u8, ..busy() };
    let text = "the underlay's window, 10 segments, 14.4 kB: reduced after a mark";
    assert_limited(reducing, Limit::Underlay, text);
    let mut least = busy();
    (least.cc.cwnd_segs, least.snd_nxt, least.window_shown) = (1, 440, 1440 >> 5);
    let text = "the underlay's window, 1 segment, 1.44 kB: slow start";
    assert_limited(least, Limit::Underlay, text);
}

#[test]
fn a_batch_of_acks_does_not_hide_that_the_window_was_full() {
    let mut state = busy();
    state.snd_nxt = state.snd_una;
    state.flight_max_bytes = 14_400;
    assert_eq!(limited(&FlowState(state), &Params::default(), NOW_US).by, Limit::Underlay);
    state.flight_max_bytes = 1440;
    state.flags |= sys::FLOW_WINDOW_LIMITED;
    assert_eq!(limited(&FlowState(state), &Params::default(), NOW_US).by, Limit::Underlay);
}

#[test]
fn a_guest_with_tso_holds_a_third_back() {
    let with_flight = |state: sys::vcc_flow, flight_bytes: u32| {
        let snd_nxt = state.snd_una.wrapping_add(flight_bytes);
        limited(&FlowState(sys::vcc_flow { snd_nxt, ..state }), &Params::default(), NOW_US).by
    };
    let by_receiver = sys::vcc_flow { window_received: (14_400 >> 7) as u16, ..busy() };
    assert_eq!(with_flight(by_receiver, 9_601), Limit::Receiver);
    assert_eq!(with_flight(by_receiver, 9_600), Limit::Guest);
    // Of the underlay's window the engine says itself whether it is used.
    assert_eq!(with_flight(busy(), 12_961), Limit::Underlay);
    assert_eq!(with_flight(busy(), 12_960), Limit::Guest);
    let flags = busy().flags | sys::FLOW_WINDOW_LIMITED;
    assert_eq!(with_flight(sys::vcc_flow { flags, ..busy() }, 9_601), Limit::Underlay);
}

#[test]
fn the_guest_itself() {
    let state = sys::vcc_flow { snd_nxt: busy().snd_una.wrapping_add(2000), ..busy() };
    let text = "the guest itself: it has 2.00 kB in flight and may have 14.4 kB";
    assert_limited(state, Limit::Guest, text);
    let unseen = sys::vcc_flow { flags: 0, ..busy() };
    let text = "the guest itself: no window has been shown to it yet";
    assert_limited(unseen, Limit::Guest, text);
}

#[test]
fn the_receiver() {
    let state = sys::vcc_flow { window_received: (14_400 >> 7) as u16, ..busy() };
    // What the receiver offers is a little less than what could be shown of it.
    assert_limited(state, Limit::Receiver, "the receiver's window of 14.4 kB");
    let closed = sys::vcc_flow { window_received: 0, window_shown: 0, ..busy() };
    assert_limited(closed, Limit::Receiver, "the receiver: its window is closed");
    // Nor is the guest idle for it, which may send nothing.
    let waiting = sys::vcc_flow { snd_nxt: closed.snd_una, last_seen_ms: 0, ..closed };
    assert_limited(waiting, Limit::Receiver, "the receiver: its window is closed");
    let unused = sys::vcc_flow { snd_nxt: state.snd_una.wrapping_add(100), ..state };
    assert_eq!(limited(&FlowState(unused), &Params::default(), NOW_US).by, Limit::Guest);
}

#[test]
fn the_largest_window() {
    let mut state = busy();
    (state.window_shown, state.window_received) = (u16::MAX, u16::MAX);
    (state.cc.cwnd_segs, state.snd_nxt) = (5000, state.snd_una.wrapping_add(2_090_000));
    let text = "the largest window that the port shows, 2.10 MB (--window-max)";
    assert_limited(state, Limit::WindowMax, text);
}

#[test]
fn what_the_operator_asked_for() {
    let mut params = Params::default();
    params.0.cap_bytes = 14_400;
    let mut state = busy();
    // A cap just at the window takes nothing of it.
    assert_eq!(limited(&FlowState(state), &params, NOW_US).by, Limit::Underlay);
    state.cc.cwnd_segs = 20;
    let text = "the port's cap of 14.4 kB; the underlay would admit 28.8 kB";
    assert_limited_with(state, params, Limit::Cap, text);
    // 14.4 MB/s over 1 ms.
    (params.0.cap_bytes, params.0.cap_bytes_per_ms) = (0, 14_400);
    assert_limited_with(state, params, Limit::Cap, text);
    state.flags |= sys::FLOW_WITHHOLDING;
    assert_eq!(limited(&FlowState(state), &params, NOW_US).by, Limit::Policing);
    let mut shadow = Params::default();
    shadow.0.mode = Mode::Shadow.number();
    let text = "the guest itself: vcc only looks on (--shadow)";
    assert_limited_with(busy(), shadow, Limit::Guest, text);
}

#[test]
fn losses() {
    for (ca_state, rto_backoff, text) in [
        (sys::CA_RECOVERY, 0, "loss: what is missing is being sent again"),
        (sys::CA_LOSS, 0, "loss: slow start after a timeout"),
        (sys::CA_LOSS, 1, "loss: a timeout, and nothing acknowledged since"),
        (sys::CA_LOSS, 3, "loss: 3 timeouts, and nothing acknowledged since the first"),
    ] {
        let state = sys::vcc_flow { ca_state: ca_state as u8, rto_backoff, ..busy() };
        assert_limited(state, Limit::Loss, text);
    }
}

#[test]
fn nothing_in_flight() {
    let idle = |since_us: u64, srtt_us: u32| {
        let then_us = NOW_US - since_us;
        let state = sys::vcc_flow {
            snd_nxt: busy().snd_una,
            progress_us: then_us as u32,
            last_seen_ms: (then_us / 1000) as u32,
            srtt_us8: srtt_us * 8,
            ..busy()
        };
        limited(&FlowState(state), &Params::default(), NOW_US)
    };
    assert_eq!(idle(3_200_000, 1000).text, "idle: the guest has sent nothing for 3.20 s");
    assert_eq!(idle(100_000, 1000).by, Limit::Guest);
    assert_eq!(idle(300_000, 200_000).by, Limit::Guest, "not yet two round trips");
    assert_eq!(idle(401_000, 200_000).by, Limit::Idle);
    // The clock of another CPU may lie a little ahead.
    let mut ahead = busy();
    (ahead.snd_nxt, ahead.progress_us) = (ahead.snd_una, NOW_US as u32 + 50);
    assert_eq!(limited(&FlowState(ahead), &Params::default(), NOW_US).by, Limit::Guest);
}

#[test]
fn before_and_after() {
    let at = |stage: u32, flags: u32| sys::vcc_flow { stage: stage as u8, flags, ..busy() };
    for (state, by, text) in [
        (at(sys::STAGE_NONE, 0), Limit::Handshake, "handshake: it has not begun"),
        (
            at(sys::STAGE_SYN_SENT, sys::FLOW_SYN_SEEN_GUEST),
            Limit::Handshake,
            "handshake: the guest's SYN is not answered yet",
        ),
        (
            at(sys::STAGE_SYN_RECEIVED, 0),
            Limit::Handshake,
            "handshake: the guest has not answered the peer's SYN yet",
        ),
        (
            at(sys::STAGE_SYN_RECEIVED, sys::FLOW_SYN_SEEN_GUEST),
            Limit::Handshake,
            "handshake: the guest's SYN-ACK is not acknowledged yet",
        ),
        (at(sys::STAGE_CLOSED, 0), Limit::Closed, "the connection has ended"),
        (
            at(sys::STAGE_ESTABLISHED, sys::FLOW_LEFT_ALONE),
            Limit::Untranslated,
            "not by vcc: the guest uses ECN itself and is left alone",
        ),
    ] {
        assert_limited(state, by, text);
    }
    let transparent: Underlay = "transparent".parse().expect("an underlay");
    let state = sys::vcc_flow { underlay: transparent.number(), ..busy() };
    let text = "not by vcc: its underlay leaves it to the guest";
    assert_limited(state, Limit::Untranslated, text);
}

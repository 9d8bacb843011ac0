//! What a flow's rate is limited by at present, as far as its state tells.

use std::fmt;

use vcc_engine::{FlowState, Mode, Params, sys};

use crate::units;

/// How long nothing must be in flight for the flow to be called idle, and how many round trips.
const IDLE_US: u64 = 100_000;
const IDLE_ROUND_TRIPS: u64 = 2;

/// A guest with TSO keeps a room of less than a third of its window back until the next ACK, but
/// no whole super-segment; see `window_full` in engine/track.h.
const TSO_WIN_DIVISOR: u32 = 3;
const GSO_MAX_BYTES: u32 = 65_536;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    Handshake,
    Closed,
    /// vcc computes no window for it.
    Untranslated,
    /// Nothing is in flight.
    Idle,
    /// What was lost is being sent again.
    Loss,
    Receiver,
    /// The largest window that the port shows.
    WindowMax,
    Policing,
    Cap,
    /// What its pool leaves it.
    Pool,
    Underlay,
    /// The guest uses less than it may.
    Guest,
}

impl Limit {
    pub const ALL: [Self; 12] = [
        Self::Handshake,
        Self::Closed,
        Self::Untranslated,
        Self::Idle,
        Self::Loss,
        Self::Receiver,
        Self::WindowMax,
        Self::Policing,
        Self::Cap,
        Self::Pool,
        Self::Underlay,
        Self::Guest,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Closed => "closed",
            Self::Untranslated => "untranslated",
            Self::Idle => "idle",
            Self::Loss => "loss",
            Self::Receiver => "receiver",
            Self::WindowMax => "window-max",
            Self::Policing => "policing",
            Self::Cap => "cap",
            Self::Pool => "pool",
            Self::Underlay => "underlay",
            Self::Guest => "guest",
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A limit, and in words how it comes about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limited {
    pub by: Limit,
    pub text: String,
}

impl Limited {
    fn new(by: Limit, text: impl Into<String>) -> Self {
        Self { by, text: text.into() }
    }
}

/// `now_us` is of the clock that the state was written with: CLOCK_MONOTONIC in the kernel.
pub fn limited(state: &FlowState, params: &Params, now_us: u64) -> Limited {
    not_sending_yet_or_any_more(state)
        .or_else(|| closed_window(state))
        .or_else(|| idle(state, now_us))
        .or_else(|| repairing(state))
        .unwrap_or_else(|| by_window(state, params))
}

fn not_sending_yet_or_any_more(state: &FlowState) -> Option<Limited> {
    let handshake = |text: &str| Some(Limited::new(Limit::Handshake, format!("handshake: {text}")));
    match state.stage.into() {
        sys::STAGE_NONE => handshake("it has not begun"),
        sys::STAGE_SYN_SENT => handshake("the guest's SYN is not answered yet"),
        sys::STAGE_SYN_RECEIVED if state.has(sys::FLOW_SYN_SEEN_GUEST) => {
            handshake("the guest's SYN-ACK is not acknowledged yet")
        }
        sys::STAGE_SYN_RECEIVED => handshake("the guest has not answered the peer's SYN yet"),
        sys::STAGE_CLOSED => Some(Limited::new(Limit::Closed, "the connection has ended")),
        _ if state.flags & sys::FLOW_RELEASED != 0 => {
            let text = "not by vcc: its rule leaves it to the guest; only its handshake is kept to";
            Some(Limited::new(Limit::Untranslated, text))
        }
        _ if !state.is_managed() => {
            let why = if state.has(sys::FLOW_LEFT_ALONE) {
                "the guest uses ECN itself and is left alone"
            } else {
                "its underlay leaves it to the guest"
            };
            Some(Limited::new(Limit::Untranslated, format!("not by vcc: {why}")))
        }
        _ => None,
    }
}

/// Whoever may send nothing is not idle, however long that lasts.
fn closed_window(state: &FlowState) -> Option<Limited> {
    let closed = state.has(sys::FLOW_WINDOW_SHOWN) && state.window_received == 0;
    closed.then(|| Limited::new(Limit::Receiver, "the receiver: its window is closed"))
}

fn idle(state: &FlowState, now_us: u64) -> Option<Limited> {
    if state.flight_bytes() != 0 {
        return None;
    }
    // Both clocks wrap, the finer one within the hour; and it may lie a little ahead of ours.
    let since = |then: u32, now: u64| (now as u32).wrapping_sub(then).cast_signed().max(0) as u64;
    let seen_us = since(state.last_seen_ms, now_us / 1000) * 1000;
    let idle_us = since(state.progress_us, now_us).max(seen_us);
    let enough_us = IDLE_US.max(IDLE_ROUND_TRIPS * u64::from(state.srtt_us8 / 8));
    let told = units::duration(idle_us as f64);
    (idle_us > enough_us)
        .then(|| Limited::new(Limit::Idle, format!("idle: the guest has sent nothing for {told}")))
}

fn repairing(state: &FlowState) -> Option<Limited> {
    let text = match (u32::from(state.ca_state), state.rto_backoff) {
        (sys::CA_LOSS, 0) => "loss: slow start after a timeout".to_owned(),
        (sys::CA_LOSS, 1) => "loss: a timeout, and nothing acknowledged since".to_owned(),
        (sys::CA_LOSS, times) => {
            format!("loss: {times} timeouts, and nothing acknowledged since the first")
        }
        (sys::CA_RECOVERY, _) => "loss: what is missing is being sent again".to_owned(),
        _ => return None,
    };
    Some(Limited::new(Limit::Loss, text))
}

/// Of a connection that has been sending within its last round trip.
fn by_window(state: &FlowState, params: &Params) -> Limited {
    if !state.has(sys::FLOW_WINDOW_SHOWN) {
        return Limited::new(Limit::Guest, "the guest itself: no window has been shown to it yet");
    }
    let shown_bytes = state.window_shown_bytes();
    let window = units::bytes(f64::from(shown_bytes));
    let by_receiver = shown_bytes >= receivers_bytes(state);
    let used_bytes = state.flight_bytes().max(state.flight_max_bytes);
    if !by_receiver && params.0.mode == Mode::Shadow.number() {
        return Limited::new(Limit::Guest, "the guest itself: vcc only looks on (--shadow)");
    }
    // Of its own window the engine knows better, for it sees whether super-segments come.
    let is_engines = !by_receiver && state.window_shown != u16::MAX && cap(state, params).is_none();
    let held_back_bytes =
        if is_engines { 0 } else { (shown_bytes / TSO_WIN_DIVISOR).min(GSO_MAX_BYTES) };
    let room_bytes = held_back_bytes.max(state.mss_bytes.into());
    let is_full = used_bytes + room_bytes > shown_bytes || state.has(sys::FLOW_WINDOW_LIMITED);
    if !is_full {
        let used = units::bytes(f64::from(used_bytes));
        let text = format!("the guest itself: it has {used} in flight and may have {window}");
        return Limited::new(Limit::Guest, text);
    }
    if by_receiver {
        return Limited::new(Limit::Receiver, format!("the receiver's window of {window}"));
    }
    if state.window_shown == u16::MAX {
        let text = format!("the largest window that the port shows, {window} (--window-max)");
        return Limited::new(Limit::WindowMax, text);
    }
    if state.has(sys::FLOW_WITHHOLDING) {
        let text = format!("policing: what was sent beyond the window is withheld; {window}");
        return Limited::new(Limit::Policing, text);
    }
    by_pool(state, params).unwrap_or_else(|| by_underlay_or_cap(state, params))
}

/// Less than the underlay would admit, by a segment at the least.
fn by_pool(state: &FlowState, params: &Params) -> Option<Limited> {
    let shown_bytes = state.window_shown_bytes();
    let cwnd_bytes = u64::from(state.cc.cwnd_segs) * u64::from(state.mss_bytes);
    let shown = u64::from(shown_bytes) + u64::from(state.mss_bytes);
    if params.0.pool_weight == 0 || shown >= cwnd_bytes || cap(state, params).is_some() {
        return None;
    }
    let sizes = [f64::from(shown_bytes), f64::from(params.0.pool_bytes)];
    let [share, pool] = sizes.map(units::bytes);
    let text = format!("its pool: {share} of {pool}, with weight {}", params.0.pool_weight);
    Some(Limited::new(Limit::Pool, text))
}

/// What the receiver's last window means at the scale at which it is shown.
fn receivers_bytes(state: &FlowState) -> u32 {
    let received_bytes = u64::from(state.window_received) << state.wscale_peer;
    u32::try_from(received_bytes).unwrap_or(u32::MAX)
}

fn by_underlay_or_cap(state: &FlowState, params: &Params) -> Limited {
    let cwnd_segs = state.cc.cwnd_segs;
    let mss_bytes = u64::from(state.mss_bytes);
    if let Some(cap_bytes) = cap(state, params) {
        let sizes = [cap_bytes, u64::from(cwnd_segs) * mss_bytes];
        let [cap, cwnd] = sizes.map(|bytes| units::bytes(bytes as f64));
        let text = format!("the port's cap of {cap}; the underlay would admit {cwnd}");
        return Limited::new(Limit::Cap, text);
    }
    let size = units::bytes((u64::from(cwnd_segs) * mss_bytes) as f64);
    let segments = if cwnd_segs == 1 { "segment" } else { "segments" };
    let phase = if u32::from(state.ca_state) == sys::CA_CWR {
        "reduced after a mark"
    } else if cwnd_segs < state.cc.ssthresh_segs {
        "slow start"
    } else {
        "congestion avoidance"
    };
    let text = format!("the underlay's window, {cwnd_segs} {segments}, {size}: {phase}");
    Limited::new(Limit::Underlay, text)
}

/// The cap, as engine/cap.h has it, where it leaves less than the underlay.
fn cap(state: &FlowState, params: &Params) -> Option<u64> {
    let params = &params.0;
    let fixed = (params.cap_bytes != 0).then_some(u64::from(params.cap_bytes));
    let srtt_us = u64::from(state.srtt_us8 / 8);
    let has_rate = params.cap_bytes_per_ms != 0 && srtt_us != 0;
    let by_rate = has_rate.then(|| u64::from(params.cap_bytes_per_ms) * srtt_us / 1000);
    let cap_bytes = fixed.into_iter().chain(by_rate).min()?;
    let cap_segs = (cap_bytes / u64::from(state.mss_bytes.max(1))).max(1);
    (cap_segs < state.cc.cwnd_segs.into()).then_some(cap_bytes)
}

#[cfg(test)]
mod tests;

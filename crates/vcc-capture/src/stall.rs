//! Stalls: silences of a connection while something is awaited.

use vcc_engine::{FlowState, Stage};

use crate::segment::Segment;

/// Linux's least retransmission timeout. A shorter silence may be a delayed ACK (RFC 1122, 4.2.3.2).
const LEAST_NS: u64 = 200_000_000;
/// Nor is it unusual on a long path.
const ROUND_TRIPS: u64 = 2;
const NS_PER_US: u64 = 1000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stalls {
    pub count: u32,
    pub total_ns: u64,
    pub longest: Option<Stall>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Since the capture's start.
    pub began_ns: u64,
    pub lasted_ns: u64,
    pub cause: Cause,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A SYN or SYN-ACK was not answered.
    Handshake,
    /// The peer's window was closed.
    Window,
    /// The guest's retransmission ended it: a segment or its ACK was lost.
    Loss,
    /// The ACK of what was in flight came late.
    LateAck,
}

impl Cause {
    pub fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Window => "window",
            Self::Loss => "loss",
            Self::LateAck => "late-ack",
        }
    }
}

impl Stalls {
    /// Judges the silence before a segment, since `seen_ns`. `before`: the state during it.
    pub(crate) fn note(
        &mut self,
        (seen_ns, now_ns): (u64, u64),
        before: &FlowState,
        segment: &Segment,
        from_guest: bool,
    ) {
        let lasted_ns = now_ns.saturating_sub(seen_ns);
        let srtt_us = u64::from(before.srtt_us().unwrap_or(0));
        if lasted_ns < LEAST_NS.max(ROUND_TRIPS * srtt_us * NS_PER_US) {
            return;
        }
        let Some(cause) = cause(before, segment, from_guest) else { return };
        let stall = Stall { began_ns: seen_ns, lasted_ns, cause };
        self.count = self.count.saturating_add(1);
        self.total_ns += lasted_ns;
        if self.longest.is_none_or(|longest| longest.lasted_ns < lasted_ns) {
            self.longest = Some(stall);
        }
    }
}

/// None: nothing was awaited.
fn cause(before: &FlowState, segment: &Segment, from_guest: bool) -> Option<Cause> {
    let stage = before.stage();
    if stage == Stage::Closed {
        return None;
    }
    if stage < Stage::Established {
        return Some(Cause::Handshake);
    }
    if before.window_received_bytes() == Some(0) {
        return Some(Cause::Window);
    }
    if before.flight_bytes() == 0 {
        return None;
    }
    let is_repeated = from_guest
        && segment.payload_bytes > 0
        && vcc_net::seq::before(segment.seq, before.snd_nxt);
    Some(if is_repeated { Cause::Loss } else { Cause::LateAck })
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use vcc_engine::sys;

    use super::*;

    const MS: u64 = 1_000_000;

    fn state(change: impl FnOnce(&mut sys::vcc_flow)) -> FlowState {
        let mut state = sys::vcc_flow {
            flags: sys::FLOW_WINDOW_SHOWN,
            stage: sys::STAGE_ESTABLISHED as u8,
            snd_nxt: 1000,
            window_received: 500,
            ..Default::default()
        };
        change(&mut state);
        FlowState(state)
    }

    fn longest(silence_ns: u64, before: &FlowState, seq: u32, from_guest: bool) -> Option<Cause> {
        let end = SocketAddr::from(([10, 0, 0, 1], 1));
        let (vlan, ack, ip_ecn, macs) = Default::default();
        let (flags, payload_bytes) = (sys::TCP_ACK, 100);
        let segment =
            Segment { from: end, to: end, vlan, seq, ack, flags, payload_bytes, ip_ecn, macs };
        let mut stalls = Stalls::default();
        stalls.note((7, 7 + silence_ns), before, &segment, from_guest);
        assert_eq!(stalls.total_ns, stalls.longest.map_or(0, |stall| stall.lasted_ns));
        stalls.longest.map(|stall| stall.cause)
    }

    #[test]
    fn a_silence_has_a_cause() {
        let sending = state(|_| {});
        assert_eq!(longest(300 * MS, &sending, 0, true), Some(Cause::Loss));
        assert_eq!(longest(300 * MS, &sending, 1000, true), Some(Cause::LateAck));
        assert_eq!(longest(300 * MS, &sending, 0, false), Some(Cause::LateAck));
        let closed = state(|it| it.window_received = 0);
        assert_eq!(longest(300 * MS, &closed, 0, true), Some(Cause::Window));
        let opening = state(|it| it.stage = sys::STAGE_SYN_SENT as u8);
        assert_eq!(longest(300 * MS, &opening, 0, true), Some(Cause::Handshake));
    }

    #[test]
    fn not_every_silence_is_a_stall() {
        assert_eq!(longest(199 * MS, &state(|_| {}), 0, true), None, "short");
        let slow = state(|it| it.srtt_us8 = 8 * 200_000);
        assert_eq!(longest(399 * MS, &slow, 0, true), None, "the path is long");
        assert_eq!(longest(400 * MS, &slow, 0, true), Some(Cause::Loss));
        let idle = state(|it| it.snd_nxt = 0);
        assert_eq!(longest(300 * MS, &idle, 0, true), None, "nothing is in flight");
        let over = state(|it| it.stage = sys::STAGE_CLOSED as u8);
        assert_eq!(longest(300 * MS, &over, 0, true), None);
    }

    #[test]
    fn the_longest_is_kept() {
        let mut stalls = Stalls::default();
        let end = SocketAddr::from(([10, 0, 0, 1], 1));
        let (vlan, seq, ack, flags, payload_bytes, ip_ecn, macs) = Default::default();
        let segment =
            Segment { from: end, to: end, vlan, seq, ack, flags, payload_bytes, ip_ecn, macs };
        for (seen_ms, now_ms) in [(0, 300), (300, 400), (400, 900), (900, 1150)] {
            stalls.note((seen_ms * MS, now_ms * MS), &state(|_| {}), &segment, false);
        }
        assert_eq!((stalls.count, stalls.total_ns), (3, 1050 * MS));
        let longest = stalls.longest.expect("a stall");
        assert_eq!((longest.began_ns, longest.lasted_ns), (400 * MS, 500 * MS));
    }
}

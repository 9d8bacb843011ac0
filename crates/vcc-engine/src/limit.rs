//! What limits a flow's rate at present, decided from the flow's state alone.

use crate::clock::since;
use crate::{FlowState, Mode, Params, native, sys};

/// A flow without anything in flight is idle after this time, and after so many round trips.
const IDLE_US: u64 = 100_000;
const IDLE_ROUND_TRIPS: u64 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Handshake(Awaited),
    Closed,
    /// vcc computes no window for the flow.
    Untranslated(Untranslated),
    /// The same, because segments of one end do not pass this port.
    OneDirection(Elsewhere),
    /// Nothing is in flight.
    Idle {
        idle_us: u64,
    },
    Loss(Repair),
    /// The receiver's window; 0 if it is closed.
    Receiver {
        window_bytes: u32,
    },
    /// The largest window that the scale shown to the guest can express.
    WindowMax {
        window_bytes: u32,
    },
    Policing {
        window_bytes: u32,
    },
    Cap {
        cap_bytes: u64,
        cwnd_bytes: u64,
    },
    Pool {
        share_bytes: u32,
        pool_bytes: u32,
        weight: u16,
    },
    Underlay {
        /// In 1/1024 of a segment.
        cwnd_1024: u32,
        cwnd_bytes: u64,
        phase: Phase,
    },
    /// The guest uses less than it may.
    Guest(Unused),
}

/// What a handshake waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    Syn,
    /// The peer's answer to the guest's SYN.
    SynAck,
    /// The guest's answer to the peer's SYN.
    GuestSynAck,
    /// The ACK of the guest's SYN-ACK.
    Ack,
}

/// Why no window is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untranslated {
    /// Its rule no longer controls it; only what the handshake negotiated is still translated.
    Released,
    /// The guest's segments leave in IP fragments.
    Fragments,
    GuestEcn,
    Underlay,
}

/// Whose segments do not pass this port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elsewhere {
    Guest,
    Peer,
}

/// How a loss is repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    FastRecovery,
    /// Slow start after this many timeouts, if nothing was acknowledged since the first; else 0.
    Timeout {
        backoff: u8,
    },
}

/// The underlay's phase (RFC 5681, 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    SlowStart,
    CongestionAvoidance,
    /// Within the round trip of a reduction for a mark.
    Reduced,
}

/// Why the guest's window is not used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unused {
    NoWindowShown,
    /// In shadow mode vcc limits nothing.
    Shadow,
    Window {
        used_bytes: u32,
        window_bytes: u32,
    },
}

macro_rules! names {
    ($($variant:ident: $name:literal,)*) => {
        impl Limit {
            /// In the order in which they are decided.
            pub const NAMES: &[&str] = &[$($name),*];

            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $name,)*
                }
            }
        }
    };
}

names! {
    Handshake: "handshake",
    Closed: "closed",
    Untranslated: "untranslated",
    OneDirection: "one-direction",
    Idle: "idle",
    Loss: "loss",
    Receiver: "receiver",
    Guest: "guest",
    WindowMax: "window-max",
    Policing: "policing",
    Cap: "cap",
    Pool: "pool",
    Underlay: "underlay",
}

impl FlowState {
    /// `now_us` is of the segments' clock. `leaving_bytes`: what may be in flight at a port that holds, whose
    /// guest is shown the room of a buffer ([`FlowState::hold_leaving_bytes`]); None at others.
    pub fn limited_by(&self, params: &Params, leaving_bytes: Option<u32>, now_us: u64) -> Limit {
        self.limited_by_stage()
            .or_else(|| self.limited_by_closed_window())
            .or_else(|| self.limited_by_idle_guest(now_us))
            .or_else(|| self.limited_by_loss())
            .unwrap_or_else(|| self.limited_by_window(params, leaving_bytes))
    }

    fn limited_by_stage(&self) -> Option<Limit> {
        let awaited = match self.stage.into() {
            sys::STAGE_NONE => Awaited::Syn,
            sys::STAGE_SYN_SENT if u32::from(self.sends) & sys::SENDS_UNANSWERED != 0 => {
                return Some(Limit::OneDirection(Elsewhere::Peer));
            }
            sys::STAGE_SYN_SENT => Awaited::SynAck,
            sys::STAGE_SYN_RECEIVED if self.has(sys::FLOW_SYN_SEEN_GUEST) => Awaited::Ack,
            sys::STAGE_SYN_RECEIVED
                if self.has(sys::FLOW_WINDOW_SHOWN)
                    || u32::from(self.sends) & sys::SENDS_UNANSWERED != 0 =>
            {
                return Some(Limit::OneDirection(Elsewhere::Guest));
            }
            sys::STAGE_SYN_RECEIVED => Awaited::GuestSynAck,
            sys::STAGE_CLOSED => return Some(Limit::Closed),
            _ if self.flags & sys::FLOW_RELEASED != 0
                && u32::from(self.sends) & sys::SENDS_FRAGMENTS != 0 =>
            {
                return Some(Limit::Untranslated(Untranslated::Fragments));
            }
            _ if self.flags & sys::FLOW_RELEASED != 0 => {
                return Some(Limit::Untranslated(Untranslated::Released));
            }
            _ if self.is_managed() => return None,
            _ if self.has(sys::FLOW_LEFT_ALONE) => {
                return Some(Limit::Untranslated(Untranslated::GuestEcn));
            }
            _ => return Some(Limit::Untranslated(Untranslated::Underlay)),
        };
        Some(Limit::Handshake(awaited))
    }

    /// Before [`Self::limited_by_idle_guest`]: a guest that may send nothing is not idle.
    fn limited_by_closed_window(&self) -> Option<Limit> {
        let is_closed = self.window_received_bytes() == Some(0);
        is_closed.then_some(Limit::Receiver { window_bytes: 0 })
    }

    fn limited_by_idle_guest(&self, now_us: u64) -> Option<Limit> {
        if self.flight_bytes() != 0 {
            return None;
        }
        let seen_us = since(self.last_seen_ms, now_us / 1000) * 1000;
        let idle_us = since(self.progress_us, now_us).max(seen_us);
        let srtt_us = u64::from(self.srtt_us().unwrap_or(0));
        (idle_us > IDLE_US.max(IDLE_ROUND_TRIPS * srtt_us)).then_some(Limit::Idle { idle_us })
    }

    fn limited_by_loss(&self) -> Option<Limit> {
        match self.ca_state.into() {
            sys::CA_LOSS => Some(Limit::Loss(Repair::Timeout { backoff: self.rto_backoff })),
            sys::CA_RECOVERY => Some(Limit::Loss(Repair::FastRecovery)),
            _ => None,
        }
    }

    /// Of a flow that has been sending within its last round trip.
    fn limited_by_window(&self, params: &Params, leaving_bytes: Option<u32>) -> Limit {
        let (Some(window_bytes), Some(received_bytes)) =
            (leaving_bytes.or(self.window_shown_bytes()), self.window_received_bytes())
        else {
            return Limit::Guest(Unused::NoWindowShown);
        };
        let by_receiver = u64::from(window_bytes) >= received_bytes;
        if !by_receiver && params.0.mode == Mode::Shadow.number() {
            return Limit::Guest(Unused::Shadow);
        }
        let cap_segs = self.cap_segs(params);
        let is_widest = leaving_bytes.is_none() && self.window_shown == u16::MAX;
        let by_underlay = !by_receiver && !is_widest && cap_segs.is_none();
        let used_bytes = self.flight_bytes().max(self.flight_max_bytes);
        if !self.fills(window_bytes, used_bytes, by_underlay) {
            return Limit::Guest(Unused::Window { used_bytes, window_bytes });
        }
        if by_receiver {
            return Limit::Receiver { window_bytes };
        }
        if is_widest {
            return Limit::WindowMax { window_bytes };
        }
        if self.has(sys::FLOW_WITHHOLDING) {
            return Limit::Policing { window_bytes };
        }
        let mss_bytes = u64::from(self.mss_bytes);
        let (Some(cwnd_1024), Some(cwnd_bytes)) = (self.cwnd_1024(), self.cwnd_bytes()) else {
            unreachable!("limited_by_stage() returns for a flow without a cwnd");
        };
        if let Some(cap_segs) = cap_segs {
            return Limit::Cap { cap_bytes: u64::from(cap_segs) * mss_bytes, cwnd_bytes };
        }
        let is_pools = params.0.pool_weight != 0;
        if is_pools && u64::from(window_bytes) + mss_bytes < cwnd_bytes {
            let (pool_bytes, weight) = (params.0.pool_bytes, params.0.pool_weight);
            return Limit::Pool { share_bytes: window_bytes, pool_bytes, weight };
        }
        let phase = if u32::from(self.ca_state) == sys::CA_CWR {
            Phase::Reduced
        } else if self.cc.cwnd_segs < self.cc.ssthresh_segs {
            Phase::SlowStart
        } else {
            Phase::CongestionAvoidance
        };
        Limit::Underlay { cwnd_1024, cwnd_bytes, phase }
    }

    /// Does the guest use all of a window? Of the underlay's the engine remembers it, since it sees
    /// whether super-segments come; with another window, a guest may hold back what one with TSO
    /// may.
    fn fills(&self, window_bytes: u32, used_bytes: u32, by_underlay: bool) -> bool {
        // SAFETY: it points to a live value of the C type for the length of the call.
        let fills =
            unsafe { native::fills_window(&self.0, window_bytes, used_bytes, !by_underlay) };
        fills || self.has(sys::FLOW_WINDOW_LIMITED)
    }

    /// The operator's cap, where it grants less than the underlay.
    fn cap_segs(&self, params: &Params) -> Option<u32> {
        let cwnd_segs = self.cc.cwnd_segs;
        if self.mss_bytes == 0 {
            return None;
        }
        // SAFETY: both point to live values of the C types for the length of the call.
        let cap_segs = unsafe { native::cap_segs(&self.0, &params.0, cwnd_segs) };
        (cap_segs < cwnd_segs).then_some(cap_segs)
    }
}

#[cfg(test)]
mod tests;

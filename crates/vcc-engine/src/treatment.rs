//! What becomes of connections: the engine's parameters, as the rest of vcc says them.

use std::num::NonZeroU32;

use crate::{GuestEcn, Mode, OnFull, Params, Underlay, sys};

/// A connection's part in a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolShare {
    /// Its index among the policy's pools.
    pub pool: usize,
    /// How much it gets beside others, from 1 to 1000.
    pub weight: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Treatment {
    pub mode: Mode,
    /// The congestion control that the fabric shall see.
    pub underlay: Underlay,
    /// What becomes of a guest that negotiates ECN itself.
    pub guest_ecn: GuestEcn,
    /// Reduce the window by RFC 6937 instead of at once.
    pub prr: bool,
    /// Take a reduction back where DSACK says that nothing was lost.
    pub undo: bool,
    /// Set PSH as a native sender of the underlay's bursts would.
    pub pace_push: bool,
    /// Offer and accept feedback of marked bytes between two ends under vcc.
    pub feedback: bool,
    /// Drop data beyond the window that the guest was shown. Only where enforced.
    pub police: bool,
    /// Make duplicate ACKs and window updates for the guest, which the shell sends. Only where
    /// enforced.
    pub emit: bool,
    /// Without an acknowledgement for so long, duplicate ACKs are due.
    pub emit_after_us: u32,
    /// AC/DC's beta of `dctcp-priority`, in 1/1024: 0 to 1024.
    pub beta_1024: u16,
    /// No window is larger.
    pub cap_bytes: Option<NonZeroU32>,
    /// No window is larger than this rate times the RTT.
    pub cap_bytes_per_ms: Option<NonZeroU32>,
    /// Windows up to this size are shown to the guest exactly.
    pub window_max_bytes: u32,
    pub initial_window_segs: u32,
    /// No window that the guest is shown is smaller.
    pub window_floor_segs: u32,
    pub rto_min_us: u32,
    /// How long a connection may be silent before it is forgotten.
    pub established_idle_ms: u32,
    pub handshake_idle_ms: u32,
    pub closed_idle_ms: u32,
    /// Of a new connection, where the port's table has no room for it.
    pub on_full: OnFull,
    /// Only where enforced, and under a policy.
    pub pool: Option<PoolShare>,
}

impl Default for Treatment {
    fn default() -> Self {
        let params = Params::default().0;
        Self {
            mode: Mode::Enforce,
            underlay: Underlay::default(),
            guest_ecn: GuestEcn::Leave,
            prr: params.prr != 0,
            undo: params.undo != 0,
            pace_push: params.pace_push != 0,
            feedback: params.feedback != 0,
            police: params.police != 0,
            emit: params.emit != 0,
            emit_after_us: params.emit_after_us,
            beta_1024: params.beta_1024,
            cap_bytes: None,
            cap_bytes_per_ms: None,
            window_max_bytes: params.window_max_bytes,
            initial_window_segs: params.initial_window_segs,
            window_floor_segs: params.window_floor_segs,
            rto_min_us: params.rto_min_us,
            established_idle_ms: params.established_idle_ms,
            handshake_idle_ms: params.handshake_idle_ms,
            closed_idle_ms: params.closed_idle_ms,
            on_full: OnFull::Pass,
            pool: None,
        }
    }
}

impl Treatment {
    /// What any host can receive (RFC 9293, 3.7.1); segments are hardly ever smaller.
    const LEAST_SEGMENT_BYTES: u32 = 536;

    /// Of any connection. It wins over whatever else limits a window.
    pub fn least_floor_bytes(&self) -> u32 {
        self.window_floor_segs.saturating_mul(Self::LEAST_SEGMENT_BYTES)
    }

    /// The same as the engine wants to hear it, but for the pool, of which only a policy knows the
    /// window.
    pub fn params(&self) -> Params {
        Params(sys::vcc_params {
            underlay: self.underlay.number(),
            mode: self.mode.number(),
            guest_ecn: self.guest_ecn.number(),
            prr: self.prr.into(),
            undo: self.undo.into(),
            pace_push: self.pace_push.into(),
            feedback: self.feedback.into(),
            police: self.police.into(),
            emit: self.emit.into(),
            emit_after_us: self.emit_after_us,
            beta_1024: self.beta_1024.min(sys::BETA_ONE as u16),
            cap_bytes: self.cap_bytes.map_or(0, NonZeroU32::get),
            cap_bytes_per_ms: self.cap_bytes_per_ms.map_or(0, NonZeroU32::get),
            window_floor_segs: self.window_floor_segs,
            initial_window_segs: self.initial_window_segs,
            window_max_bytes: self.window_max_bytes,
            rto_min_us: self.rto_min_us,
            established_idle_ms: self.established_idle_ms,
            handshake_idle_ms: self.handshake_idle_ms,
            closed_idle_ms: self.closed_idle_ms,
            on_full: self.on_full.number().into(),
            ..Params::default().0
        })
    }

    /// AC/DC's beta, where the underlay heeds it.
    pub fn priority(&self) -> Option<f64> {
        let heeds = self.underlay.name() == Self::UNDERLAY_WITH_PRIORITY;
        heeds.then(|| f64::from(self.beta_1024) / f64::from(sys::BETA_ONE))
    }

    pub const UNDERLAY_WITH_PRIORITY: &str = "dctcp-priority";
}

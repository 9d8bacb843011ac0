//! What becomes of the connections that a rule matches.

use std::fmt;
use std::num::NonZeroU32;

use vcc_engine::{GuestEcn, Mode, Params, Underlay, sys};

use crate::units::{BytesPerMs, duration, size};

/// Whether a rule's connections are changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleMode {
    /// The underlay is enforced.
    Enforce,
    /// Everything is computed, nothing changed.
    Shadow,
    /// They pass untouched, and nothing is kept of them.
    Ignore,
}

impl RuleMode {
    pub(crate) const ALL: [(&str, RuleMode); 3] =
        [("enforce", Self::Enforce), ("shadow", Self::Shadow), ("ignore", Self::Ignore)];
}

impl fmt::Display for RuleMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            RuleMode::Enforce => "enforce",
            RuleMode::Shadow => "shadow",
            RuleMode::Ignore => "ignore",
        })
    }
}

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
    pub mode: RuleMode,
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
    /// Make duplicate ACKs and window updates for the guest. Only where enforced.
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
    /// Only where enforced.
    pub pool: Option<PoolShare>,
}

impl Default for Treatment {
    fn default() -> Self {
        let params = Params::default().0;
        Self {
            mode: RuleMode::Enforce,
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
            pool: None,
        }
    }
}

impl Treatment {
    /// The same as the engine wants to hear it. It knows nothing of connections to ignore, so
    /// should it see one, it changes nothing.
    pub fn params(&self) -> Params {
        let mode = match self.mode {
            RuleMode::Enforce => Mode::Enforce,
            RuleMode::Shadow | RuleMode::Ignore => Mode::Shadow,
        };
        Params(sys::vcc_params {
            underlay: self.underlay.number(),
            mode: mode.number(),
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
            ..Params::default().0
        })
    }

    /// AC/DC's beta, where the underlay heeds it.
    pub fn priority(&self) -> Option<f64> {
        let heeds = self.underlay.name() == Self::UNDERLAY_WITH_PRIORITY;
        heeds.then(|| f64::from(self.beta_1024) / f64::from(sys::BETA_ONE))
    }

    pub(crate) const UNDERLAY_WITH_PRIORITY: &str = "dctcp-priority";

    /// Keys and values of what differs from the defaults, as the file would say it; mode, underlay
    /// and pool left out.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let default = Treatment::default();
        let mut settings = Vec::new();
        let mut say = |differs: bool, key: &'static str, value: String| {
            if differs {
                settings.push((key, value));
            }
        };
        say(self.guest_ecn != default.guest_ecn, "guest_ecn", format!("\"{}\"", self.guest_ecn));
        for (key, value, default) in [
            ("prr", self.prr, default.prr),
            ("undo", self.undo, default.undo),
            ("pace_push", self.pace_push, default.pace_push),
            ("feedback", self.feedback, default.feedback),
            ("police", self.police, default.police),
            ("emit", self.emit, default.emit),
        ] {
            say(value != default, key, value.to_string());
        }
        let priority = self.priority().unwrap_or(1.0);
        say(self.beta_1024 != default.beta_1024, "priority", format!("{priority}"));
        if let Some(bytes) = self.cap_bytes {
            say(true, "window_cap", format!("\"{}\"", size::display(bytes.get())));
        }
        if let Some(rate) = self.cap_bytes_per_ms {
            say(true, "rate_cap", format!("\"{}\"", BytesPerMs::from(rate)));
        }
        for (key, value, default) in [
            ("window_floor_segments", self.window_floor_segs, default.window_floor_segs),
            ("initial_window_segments", self.initial_window_segs, default.initial_window_segs),
        ] {
            say(value != default, key, value.to_string());
        }
        let window_max = size::display(self.window_max_bytes);
        let differs = self.window_max_bytes != default.window_max_bytes;
        say(differs, "window_max", format!("\"{window_max}\""));
        for (key, value, default, unit_us) in [
            ("emit_after", self.emit_after_us, default.emit_after_us, 1),
            ("rto_min", self.rto_min_us, default.rto_min_us, 1),
            ("idle_established", self.established_idle_ms, default.established_idle_ms, 1000),
            ("idle_handshake", self.handshake_idle_ms, default.handshake_idle_ms, 1000),
            ("idle_closed", self.closed_idle_ms, default.closed_idle_ms, 1000),
        ] {
            let time = duration::display(u64::from(value) * unit_us);
            say(value != default, key, format!("\"{time}\""));
        }
        settings
    }
}

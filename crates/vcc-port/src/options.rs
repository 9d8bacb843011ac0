//! What an attachment shall do.

use vcc_engine::{GuestEcn, Mode, Params, Underlay, sys};

#[derive(Clone, Debug)]
pub struct AttachOptions {
    /// The congestion control that the fabric shall see.
    pub underlay: Underlay,
    pub mode: Mode,
    /// What becomes of a guest that negotiates ECN itself.
    pub guest_ecn: GuestEcn,
    /// Reduce the window by RFC 6937 instead of at once.
    pub prr: bool,
    /// Set PSH as a native sender of the underlay's bursts would.
    pub pace_push: bool,
    /// Windows up to this size are shown to the guest exactly.
    pub window_max_bytes: u32,
    /// Connections that this port tracks at a time; those beyond pass untouched.
    pub max_flows: u32,
    pub initial_window_segs: u32,
    /// No window that the guest is shown is smaller.
    pub window_floor_segs: u32,
    pub rto_min_us: u32,
    /// How long a connection may be silent before it is forgotten.
    pub established_idle_ms: u32,
    pub handshake_idle_ms: u32,
    pub closed_idle_ms: u32,
}

impl Default for AttachOptions {
    fn default() -> Self {
        let params = Params::default().0;
        Self {
            underlay: Underlay::default(),
            mode: Mode::Enforce,
            guest_ecn: GuestEcn::Leave,
            prr: params.prr != 0,
            pace_push: params.pace_push != 0,
            window_max_bytes: params.window_max_bytes,
            max_flows: 65_536,
            initial_window_segs: params.initial_window_segs,
            window_floor_segs: params.window_floor_segs,
            rto_min_us: params.rto_min_us,
            established_idle_ms: params.established_idle_ms,
            handshake_idle_ms: params.handshake_idle_ms,
            closed_idle_ms: params.closed_idle_ms,
        }
    }
}

impl AttachOptions {
    pub(crate) fn params(&self) -> Params {
        Params(sys::vcc_params {
            underlay: self.underlay.number(),
            mode: self.mode.number(),
            guest_ecn: self.guest_ecn.number(),
            prr: self.prr.into(),
            pace_push: self.pace_push.into(),
            reserved: [0; 3],
            window_floor_segs: self.window_floor_segs,
            initial_window_segs: self.initial_window_segs,
            window_max_bytes: self.window_max_bytes,
            rto_min_us: self.rto_min_us,
            established_idle_ms: self.established_idle_ms,
            handshake_idle_ms: self.handshake_idle_ms,
            closed_idle_ms: self.closed_idle_ms,
        })
    }
}

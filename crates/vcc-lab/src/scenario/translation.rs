//! How vcc treats one guest.

use vcc_domain::BufferSpec;
use vcc_engine::{Act, FlowState, Mode, Params, Segment, Underlay, sys};

/// Connections that a port tracks. Flows are read many times a second, and the kernel goes through
/// the whole table for that.
pub const MAX_FLOWS: u32 = 1024;

#[derive(Debug, Clone)]
pub struct Translation {
    pub params: Params,
    /// Its share in a pool of window, if it has one.
    pub share: Option<PoolShare>,
    /// The buffer of its port, if the port holds segments.
    pub buffer: BufferSpec,
}

/// A host's part in a pool of shared window.
#[derive(Debug, Clone)]
pub struct PoolShare {
    pub pool: String,
    pub window_bytes: u32,
    pub weight: u16,
}

impl Translation {
    pub fn underlay(&self) -> Underlay {
        self.params.underlay().expect("set by its name")
    }

    /// Whether it shares a window, which takes the datapath's ledger.
    pub fn is_pooled(&self) -> bool {
        self.share.is_some()
    }

    /// Whether it takes a port that keeps frames: one that holds its guest's segments, or
    /// acknowledges in its name.
    pub fn keeps_frames(&self) -> bool {
        self.params.0.act != Act::Window.number() || self.params.0.receive != 0
    }

    /// Whether it computes everything and changes nothing.
    pub fn is_shadow(&self) -> bool {
        self.params.mode() == Some(Mode::Shadow)
    }

    /// Whether it computes a window that is compared with its host's own.
    pub fn is_compared(&self) -> bool {
        self.is_shadow() && self.underlay().controls()
    }

    /// Whether it changes what its host sends and receives.
    pub fn enforces(&self) -> bool {
        self.params.mode() == Some(Mode::Enforce)
    }

    /// Whether it makes a guest without ECN an ECN one to the fabric. The engine is asked: does
    /// a plain SYN leave it as an ECN-setup SYN (RFC 3168, 6.1.1)?
    pub fn gives_ecn(&self) -> bool {
        let mut params = Params::default();
        params.0.underlay = self.params.0.underlay;
        params.0.mode = self.params.0.mode;
        params.0.migratable = self.params.0.migratable;
        let syn = Segment { now_us: 1, flags: sys::TCP_SYN as u16, ..Segment::default() };
        let action = FlowState::default().from_guest(&params, &syn);
        let ecn_setup = (sys::TCP_ECE | sys::TCP_CWR) as u16;
        action.flags & ecn_setup == ecn_setup
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gives_ecn(mode: Mode, underlay: &str) -> bool {
        let underlay: Underlay = underlay.parse().expect("an underlay");
        let mut params = Params::default();
        (params.0.mode, params.0.underlay) = (mode.number(), underlay.number());
        Translation { params, share: None, buffer: BufferSpec::default() }.gives_ecn()
    }

    #[test]
    fn the_engine_says_who_gets_ecn() {
        assert!(gives_ecn(Mode::Enforce, "reno-ecn"));
        assert!(!gives_ecn(Mode::Enforce, "reno"));
        assert!(!gives_ecn(Mode::Enforce, "transparent"));
        assert!(!gives_ecn(Mode::Shadow, "reno-ecn"));
        let mut params = Params::default();
        params.0.migratable = 1;
        assert!(!Translation { params, share: None, buffer: BufferSpec::default() }.gives_ecn());
    }
}
